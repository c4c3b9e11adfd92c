"""Fresh jobs for `hostbench compare` and `hostbench history`, with changes planted in the programs
and the system themselves.

usage: python -m benchmarks.decisions.fresh [--short] [--again] [--minutes N] [--beside TEXT]

Measures twenty rounds of four jobs, which takes half an hour on two CPUs; with --short, four rounds
in six minutes. A round is a quiet job, two jobs with a slower program, and a quiet job; the first
rounds end with a job under a quota. Each job is saved when it ends, and a later call continues from
there unless --again is given. With --minutes, no job begins after that many minutes. --beside names
what else runs on the host; it is saved with each job. The slower program repeats the loop of every
register kernel for 5 % of its iterations without counting them, and it gets no huge pages, whatever
is requested (prctl). A quota needs root.

python -m benchmarks.decisions.resampled compares the jobs with each other.
"""

import argparse
import contextlib
import csv
import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from benchmarks.figures import file_of, host, maker
from benchmarks.programs import ROOT, program
from benchmarks.trust.experiment import QUIET, Plant, job, nothing, quota, row_of

ROUNDS, ROUNDS_SHORT = 20, 4
# How many rounds have a quota; benchmarks.trust has forty more.
QUOTA_ROUNDS = 4
SUITE = """
name: decisions
idle: {policy: force, per: suite}
repeats: {min_trials: 3, max_trials: 3, max_time_s: 30}
cases:
  - {workload: cpu.fma, params: {dtype: fp64, threads: 2, duration_s: 0.3}}
  - {workload: cpu.add_sub, params: {dtype: int32, threads: 2, duration_s: 0.3}}
  - {workload: cpu.int_mul, params: {threads: 2, duration_s: 0.3}}
  - {workload: mem.copy, params: {threads: 2, duration_s: 0.2}}
  - {workload: mem.read, params: {threads: 1, duration_s: 0.2}}
  - {workload: mem.pointer_chase, params: {threads: 1, size_bytes: 67108864, duration_s: 0.2}}
  - {workload: disk.rand_read, params: {queue_depth: 1, duration_s: 0.3}}
  - {workload: disk.seq_read, params: {queue_depth: 8, duration_s: 0.3}}
  - {workload: net.tcp_stream, params: {target: loopback, duration_s: 0.3}}
  - {workload: net.tcp_rr, params: {target: loopback, duration_s: 0.3}}
"""
FIELDS = (
    *("round", "plant", "time_unix_s", "beside", "exit_code", "took_s", "workload", "verdict"),
    *("undisturbed", "delivered", "delivered_ratio", "condition", "share", "culprit"),
)
RAW = file_of("decisions/jobs", maker())
SLOWER = "slower"
EXTRA = 0.05
# The file of the register kernels, the line with which a batch runs a kernel's loop, and the code
# that makes it slower.
KERNELS = "services/cpu/bench/vector_kernel.c"
LOOP = "\n    kernel->loop(iterations, state->accumulators, state->constants);\n"
MORE = f"""
    static _Thread_local _Alignas(REGISTER_BYTES) unsigned char more[ACCUMULATOR_BYTES];
    uint64_t again = (uint64_t)({EXTRA} * (double)iterations);
    if (again)
        kernel->loop(again, more, state->constants);
"""
PR_SET_THP_DISABLE = 41


def slower_programs(into: Path) -> Path:
    """Make a directory of programs whose cpu-bench does more work than it counts.

    Only the changed file is compiled; the rest is copied as it was built.
    """
    built = program("cpu").parent
    for name in ("harness", "services/cpu"):
        shutil.copytree(ROOT / name, into / name)
        shutil.copytree(built / name, into / "build/release" / name)
    shutil.copytree(ROOT / "scripts", into / "scripts")
    for name in ("Makefile", "pyproject.toml"):
        shutil.copy2(ROOT / name, into)
    source = into / KERNELS
    text = source.read_text()
    assert text.count(LOOP) == 1, f"{KERNELS} has another loop"
    source.write_text(text.replace(LOOP, LOOP + MORE))
    make = ["make", "OPENBLAS=none", "build/release/cpu-bench"]
    subprocess.run(make, cwd=into, check=True, stdout=sys.stderr)
    for other in built.glob("*-bench"):
        if not (into / "build/release" / other.name).exists():
            (into / "build/release" / other.name).symlink_to(other)
    return into / "build/release"


@contextlib.contextmanager
def slower(programs: Path) -> Iterator[Path | None]:
    """Make child processes run these programs without huge pages while the context is open."""
    before = os.environ.get("HOSTBENCH_PROGRAMS")
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    os.environ["HOSTBENCH_PROGRAMS"] = str(programs)
    if prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_THP_DISABLE)")
    try:
        yield None
    finally:
        prctl(PR_SET_THP_DISABLE, 0, 0, 0, 0)
        if before is None:
            del os.environ["HOSTBENCH_PROGRAMS"]
        else:
            os.environ["HOSTBENCH_PROGRAMS"] = before


def measured(suite: Path, plant: Plant) -> list[dict[str, Any]]:
    """Run one job and return its rows."""
    began = {"plant": plant.name, "time_unix_s": round(time.time())}
    with plant.begin() as members:
        exit_code, took_s, cases = job(suite, members, documents=None)
    began |= {"exit_code": exit_code, "took_s": round(took_s)}
    found = [began | row_of(case) for case in cases] or [began]
    return [compact({name: one[name] for name in FIELDS if name in one}) for one in found]


def progress(rows: Sequence[dict[str, str]]) -> str:
    """Say how many jobs of a whole measurement these are, by kind."""
    jobs = list({row["time_unix_s"]: row for row in rows}.values())
    kinds = Counter(row["plant"] for row in jobs)
    beside = sum(bool(row["beside"]) for row in jobs)
    whole = sum(1 for _ in jobs_of_rounds(Path(), ROUNDS))
    return (
        f"{len(jobs)} of {whole} jobs were measured, {beside} of them beside other work on the "
        f"host: {kinds[QUIET]} quiet ones, {kinds[SLOWER]} of the slower program, and "
        f"{len(jobs) - kinds[QUIET] - kinds[SLOWER]} under a quota."
    )


def compact(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row with its figures cut to six significant digits."""
    return {name: f"{v:.6g}" if isinstance(v, float) else v for name, v in row.items()}


def jobs_of_rounds(programs: Path, rounds: int) -> Iterator[tuple[int, Plant]]:
    """Yield the number of the round and the plant of each job, in order: planted jobs lie between
    quiet ones."""
    quiet = Plant(QUIET, "quiet", "", nothing)
    planted = Plant(SLOWER, "quiet", "", lambda: slower(programs))
    limited = Plant("quota 60 %", "quota", "quota", lambda: quota(0.6))
    for number in range(rounds):
        for plant in (quiet, planted, planted, quiet):
            yield number, plant
        if number < QUOTA_ROUNDS:
            yield number, limited


def arguments_of(description: str | None) -> argparse.Namespace:
    """Parse the options that all measuring scripts of this folder share."""
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    parser.add_argument("--short", action="store_true")
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--beside", default="", metavar="TEXT")
    return parser.parse_args()


def rows_of(file: Path) -> list[dict[str, str]]:
    """Return the rows of a file of figures."""
    with file.open() as lines:
        return list(csv.DictReader(line for line in lines if not line.startswith("#")))


def begin(file: Path, fields: tuple[str, ...], *, again: bool) -> list[dict[str, str]]:
    """Return the rows measured so far; write a new file with its header when there is none."""
    if again or not file.exists():
        file.parent.mkdir(exist_ok=True, parents=True)
        head = "".join(f"# {name}: {value}\n" for name, value in host("cpu").items() if value)
        file.write_text(head + ",".join(fields) + "\n")
    return rows_of(file)


def main() -> None:
    """Run the rounds that are missing."""
    arguments = arguments_of(__doc__)
    end_s = time.monotonic() + 60 * arguments.minutes
    rounds = ROUNDS_SHORT if arguments.short else ROUNDS
    done = len({row["time_unix_s"] for row in begin(RAW, FIELDS, again=arguments.again)})
    with tempfile.TemporaryDirectory() as directory, RAW.open("a", newline="") as file:
        suite = Path(directory) / "decisions.yaml"
        suite.write_text(SUITE)
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
        programs = Path(directory) / "slower"
        left = list(jobs_of_rounds(programs / "build/release", rounds))[done:]
        if left:
            slower_programs(programs)
        for number, plant in left:
            if time.monotonic() > end_s:
                print("more is left: start it again")
                break
            found = measured(suite, plant)
            table.writerows({**row, "round": number, "beside": arguments.beside} for row in found)
            file.flush()
            code, took_s = found[0]["exit_code"], found[0]["took_s"]
            print(f"round {number + 1} of {rounds}: {plant.name}, exit {code}, {took_s} s")


if __name__ == "__main__":
    main()
