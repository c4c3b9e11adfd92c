"""Pinned copies to and from the host against a bare loop of asynchronous copies (memcpy_loop.c),
and our copy and triad against such a loop within the device, whose bytes count twice as ours do.

usage: python -m benchmarks.gpu.against_copies [PAIRS] (default: 11)
"""

import os
import subprocess
import tempfile
from functools import partial
from pathlib import Path

from benchmarks.arguments import given_number
from benchmarks.gpu.trials import BYTES, SECONDS, Row, Table, at_least, device, giga, gpu_bench
from benchmarks.pairs import Comparison, interleaved
from benchmarks.programs import Events

SOURCE = Path(__file__).with_name("memcpy_loop.c")
# Our case, the loop's way, how often a byte of the loop counts, the least ratio.
CASES = (
    ("host_to_device --host-memory pinned", "h2d", 1, 0.98),
    ("device_to_host --host-memory pinned", "d2h", 1, 0.98),
    ("copy", "d2d", 2, 1.0),
    ("triad", "d2d", 2, 1.0),
)


def build(directory: Path) -> Path:
    program = directory / "memcpy_loop"
    subprocess.run(["gcc", "-O2", "-o", program, SOURCE, "-ldl"], check=True)
    return program


def loop(program: Path, way: str, size: int, counted: int) -> float:
    command = [str(program), way, str(size), f"{SECONDS:g}"]
    seen = {**os.environ, "CUDA_VISIBLE_DEVICES": str(device().uuid)}
    ran = subprocess.run(command, capture_output=True, text=True, env=seen)
    if ran.returncode:
        raise SystemExit(f"{program.name} {way}: {ran.stderr.strip()}")
    return float(ran.stdout) * counted


def ours(command: str) -> float:
    events: Events = gpu_bench(command)
    return float(events["end"]["metrics"][BYTES])


def main() -> None:
    pairs = given_number(11)
    if device().backend != "cuda" or not device().uuid:
        raise SystemExit(f"{device().name} is no card of CUDA's: nothing is measured")
    table = Table("against_copies", ("case", "ours, GB/s", "bare loop"))
    with tempfile.TemporaryDirectory() as directory:
        program = build(Path(directory))
        for command, way, counted, least in CASES:
            size = int(gpu_bench(command)["start"]["params"]["size_bytes"])
            theirs = partial(loop, program, way, size, counted)
            found = interleaved(pairs, partial(ours, command), theirs)
            values = (tuple(a for a, _ in found), tuple(b for _, b in found))
            compared = Comparison(at_least(least), *values)
            commands = (f"gpu-bench {command}", f"memcpy_loop {way} {size} {SECONDS:g}")
            cells = (command, giga(compared.ours), giga(compared.theirs))
            table.add(Row(cells, compared, commands))
    table.end()


if __name__ == "__main__":
    main()
