"""Our figures against nvbandwidth and PyTorch, each in turn, those that are installed. clpeak's are
of other conditions than ours and have no ratio.

usage: python -m benchmarks.gpu.against_peers [PAIRS [TOOL ...]] (default: 7, all)
"""

import subprocess
import sys
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.arguments import given_number
from benchmarks.gpu.trials import Row, Table, at_least, device, giga, gpu_bench
from benchmarks.pairs import Comparison, Target, interleaved
from benchmarks.programs import Unsupported
from hostbench.model.trial import Beside
from hostbench.programs.peer import BadOutput, Params, Peer
from services.gpu.peers import peers

PINNED, PAGEABLE = "--host-memory pinned", "--host-memory pageable"
# Our cases; which peer stands beside each is the peers' own affair.
CASES = (
    "fma --dtype fp32",
    "fma --dtype fp64",
    "int_mul_add --dtype int32",
    "read",
    "copy",
    f"host_to_device {PINNED}",
    f"device_to_host {PINNED}",
    f"host_to_device {PAGEABLE}",
    f"device_to_host {PAGEABLE}",
    "gemm --dtype bf16",
)
TARGETS = {"nvbandwidth": at_least(0.98)}


def ask(command: tuple[str, ...]) -> str:
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except OSError:
        return ""
    return answer.stdout + answer.stderr


def theirs(peer: Peer, beside: Beside) -> float:
    command = peer.command(beside)
    with TemporaryDirectory() as directory:
        for name, text in command.files.items():
            (Path(directory) / name).write_text(text)
        ran = subprocess.run(
            command.arguments, capture_output=True, text=True, timeout=600, cwd=directory
        )
    try:
        return peer.parse(ran.stdout + ran.stderr, beside)
    except BadOutput as error:
        raise SystemExit(f"{peer.tool}: {error}: {ran.stderr.strip()[-400:]}") from None


def ours(command: str, metric: str) -> float:
    return float(gpu_bench(command)["end"]["metrics"][metric])


def compare(table: Table, command: str, pairs: int, tools: list[str]) -> None:
    """One of our cases against every peer that stands beside it."""
    try:
        started = gpu_bench(command)["start"]
    except Unsupported as skipped:
        print(f"{command}: {skipped}", file=sys.stderr)
        return
    params: Params = {**started["params"], "device": str(device().index)}
    beside = Beside(cpus=tuple(started["placement"]["cpus"]), rate=1.0, elapsed_s=2.0)
    for peer in peers(started["workload"], params):
        if tools and peer.tool not in tools:
            continue
        survey = peer.survey(lambda words: ask(tuple(words)), beside)
        if peer.metric is None or survey.unsupported is not None:
            why = survey.unsupported or f"no ratio, its figure is {peer.measures}"
            print(f"{command}, {peer.tool}: {why}", file=sys.stderr)
            continue
        mine, its = partial(ours, command, peer.metric), partial(theirs, peer, beside)
        found = interleaved(pairs, mine, its)
        target = TARGETS.get(peer.tool, Target("–"))
        compared = Comparison(target, tuple(a for a, _ in found), tuple(b for _, b in found))
        tool = f"{peer.tool} {survey.version}"
        cells = (command, giga(compared.ours), tool, giga(compared.theirs))
        commands = (f"gpu-bench {command}", " ".join(peer.command(beside).arguments))
        table.add(Row(cells, compared, commands))


def main() -> None:
    pairs = given_number(7)
    device()
    table = Table("against_peers", ("case", "ours, 10⁹/s", "peer", "its, 10⁹/s"))
    for command in CASES:
        compare(table, command, pairs, sys.argv[2:])
    table.end()


if __name__ == "__main__":
    main()
