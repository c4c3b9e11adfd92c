"""How often are the words of hostbench right? Jobs under planted disturbances, with quiet ones
between them, so that the truth of the same minutes is known.

usage: python -m benchmarks.trust.experiment [--rounds N] [--short] [--again]
           [--plant NAME] [--workload NAME] [--file FILE]

Measures twenty rounds, which takes about an hour and a half on two CPUs; with --short, four rounds
in twenty minutes. Each round plants every disturbance once, with a quiet job before every two. Each
job is saved when it ends, and a later call continues from there unless --again is given. The
documents of the jobs stay in build/trust. To try a rule on a part of the experiment, name the
disturbances and workloads to measure (--plant and --workload, each several times) and a file of its
own (--file). Needs stress-ng; a quota needs root. python -m benchmarks.trust.table makes the table.
"""

import argparse
import contextlib
import csv
import itertools
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import BENCHMARKS, file_of, host, maker
from hostbench.judge.culprit import others_of
from hostbench.judge.figure import WHOLE_RUN
from hostbench.model.result import CaseResult, ResultDocument

ROUNDS, ROUNDS_SHORT = 20, 4
# As many trials as the suite quick has at most.
SUITE = """
name: trust
idle: {policy: force, per: suite}
repeats: {min_trials: 3, max_trials: 4, max_time_s: 30}
cases:
"""
# One or two cases for each kind of resource.
CASES = {
    "cpu.fma": "{dtype: fp64, threads: 2, duration_s: 0.5}",
    "cpu.add_sub": "{dtype: int32, threads: 2, duration_s: 0.5}",
    "mem.copy": "{threads: 2, duration_s: 0.25}",
    "mem.pointer_chase": "{threads: 1, size_bytes: 16777216, duration_s: 0.25}",
    "disk.rand_read": "{queue_depth: 1, duration_s: 0.5}",
    "net.tcp_stream": "{target: loopback, duration_s: 0.5}",
    "net.tcp_rr": "{target: loopback, duration_s: 0.5}",
}
FIELDS = (
    *("round", "plant", "time_unix_s", "exit_code", "took_s", "workload", "verdict"),
    *("value", "low", "high", "undisturbed", "delivered", "delivered_low", "delivered_high"),
    *("delivered_ratio", "least_difference_ratio", "condition", "share", "culprit", "n"),
    *("delivered_n", "slowest", "drift_ratio", "delivered_drift_ratio", "shared_ratio"),
    # One value for each trial, from which intervals and conditions are computed: the figure, what
    # was delivered, the CPU time that others used by the kernel's count, and whether the trial
    # counts.
    *("trials", "delivered_trials", "used", "counted"),
)
# Workloads whose figure is a time: less is better.
LATENCIES = ("mem.pointer_chase", "net.tcp_rr")
RAW = file_of("trust/jobs", maker())
DOCUMENTS = BENCHMARKS.parent / "build/trust"
SETTLE_S = 0.5
QUIET = "none"


@dataclass(frozen=True)
class Plant:
    """A disturbance: what runs meanwhile, the word expected for it, and the name of its culprit."""

    name: str
    condition: str
    culprit: str
    begin: Callable[[], contextlib.AbstractContextManager[Path | None]]


@contextlib.contextmanager
def beside(*arguments: str) -> Iterator[Path | None]:
    """Run stress-ng with these arguments while the context is open."""
    command = ["stress-ng", "--quiet", "--temp-path", tempfile.gettempdir(), *arguments]
    with subprocess.Popen(command, start_new_session=True) as process:
        time.sleep(SETTLE_S)
        try:
            yield None
        finally:
            process.terminate()
            process.wait(30)


@contextlib.contextmanager
def nothing() -> Iterator[Path | None]:
    """Leave the host as it is."""
    yield None


@contextlib.contextmanager
def quota(share: float) -> Iterator[Path | None]:
    """Yield the member file of a control group that gets this share of each CPU."""
    period_us = 100_000
    first = Path("/sys/fs/cgroup/cpu")
    old = first.is_dir()
    group = (first if old else first.parent) / "hostbench-trust"
    group.mkdir(exist_ok=True)
    quota_us = int(share * period_us * (os.cpu_count() or 1))
    try:
        if old:
            (group / "cpu.cfs_period_us").write_text(str(period_us))
            (group / "cpu.cfs_quota_us").write_text(str(quota_us))
        else:
            (group / "cpu.max").write_text(f"{quota_us} {period_us}")
        yield group / "cgroup.procs"
    finally:
        group.rmdir()


CPUS = str(os.cpu_count() or 1)
PLANTS = (
    Plant(QUIET, "quiet", "", nothing),
    Plant("hog 10 %", "shared", "stress-ng", lambda: beside("--cpu=1", "--cpu-load=10")),
    Plant("hog 30 %", "shared", "stress-ng", lambda: beside("--cpu=1", "--cpu-load=30")),
    Plant("hog 100 %", "shared", "stress-ng", lambda: beside("--cpu=1")),
    Plant("hogs on all CPUs", "shared", "stress-ng", lambda: beside(f"--cpu={CPUS}")),
    Plant("memory hog", "shared", "stress-ng", lambda: beside("--stream=1")),
    Plant("I/O hog", "shared", "stress-ng", lambda: beside("--hdd=1", "--hdd-bytes=256m")),
    Plant("quota 30 %", "quota", "quota", lambda: quota(0.3)),
    Plant("quota 60 %", "quota", "quota", lambda: quota(0.6)),
)


def job(
    suite: Path | str, members: Path | None, *options: str, documents: Path | None = DOCUMENTS
) -> tuple[int, float, Sequence[CaseResult]]:
    """Run a suite. Return the exit code, the seconds that it took and its cases; keep the document
    in `documents`."""
    began_s = time.monotonic()
    with tempfile.TemporaryDirectory() as results:
        command = [sys.executable, "-m", "hostbench", "run", str(suite), "--json", "--no-report"]
        command += ["--results", results, "--wait=600", *options]

        def enter() -> None:
            if members is not None:
                members.write_text(str(os.getpid()))

        ended = subprocess.run(
            command, capture_output=True, text=True, preexec_fn=enter, check=False
        )
    if documents is not None:
        documents.mkdir(parents=True, exist_ok=True)
        (documents / f"{round(time.time())}.json").write_text(ended.stdout)
    took_s = time.monotonic() - began_s
    cases = ResultDocument.model_validate_json(ended.stdout).cases if ended.stdout else ()
    return ended.returncode, took_s, cases


def row_of(case: CaseResult) -> dict[str, Any]:
    """Return what is saved of a case."""
    figure, delivered, condition = case.figure, case.delivered, case.condition
    interval, given = figure and figure.interval, delivered and delivered.interval
    trials = [trial.value for trial in case.trials if trial.value]
    return {
        "workload": case.workload,
        "verdict": case.verdict,
        "value": figure and figure.value,
        "low": interval and interval.low,
        "high": interval and interval.high,
        "undisturbed": case.undisturbed and case.undisturbed.value,
        "delivered": delivered and delivered.value,
        "delivered_low": given and given.low,
        "delivered_high": given and given.high,
        "delivered_ratio": case.delivered_ratio,
        "least_difference_ratio": figure and figure.least_difference_ratio,
        "condition": condition and condition.state,
        "share": condition and condition.share,
        "culprit": condition and condition.culprit,
        "n": figure and figure.n,
        "delivered_n": delivered and delivered.n,
        "drift_ratio": figure and figure.drift_ratio,
        "delivered_drift_ratio": delivered and delivered.drift_ratio,
        "shared_ratio": condition and condition.shared_ratio,
        # The slowest single trial: it shows whether something took the host from one of them.
        "slowest": (max if case.workload in LATENCIES else min)(trials, default=None),
        **by_trial(case),
    }


def by_trial(case: CaseResult) -> dict[str, str]:
    """Return the values from which intervals and conditions are computed, one for each trial; `-`
    where a trial has none."""
    direction = "lower" if case.workload in LATENCIES else "higher"
    whole_run = f"{case.primary}{WHOLE_RUN[direction]}"
    seen = [others_of(trial) for trial in case.trials]
    ends = [trial.end.metrics if trial.end else {} for trial in case.trials]
    columns = {
        "trials": [trial.value for trial in case.trials],
        "delivered_trials": [
            end.get(whole_run, trial.value) for end, trial in zip(ends, case.trials, strict=True)
        ],
        "used": [
            one.cpu_s / one.elapsed_s / one.cpus if one and one.cpu_s is not None else None
            for one in seen
        ],
    }
    shown = {
        name: " ".join("-" if value is None else f"{value:.6g}" for value in values)
        for name, values in columns.items()
    }
    return shown | {"counted": " ".join(map(str, case.counted))}


def measured(suite: Path, number: int, plant: Plant) -> list[dict[str, Any]] | None:
    """Run one job and return its rows, or None when the disturbance cannot be planted here."""
    began = {"round": number, "plant": plant.name, "time_unix_s": round(time.time())}
    try:
        with plant.begin() as members:
            exit_code, took_s, cases = job(suite, members)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"SKIPPED {plant.name}: {error}", file=sys.stderr)
        return None
    began |= {"exit_code": exit_code, "took_s": round(took_s, 1)}
    return [began | row_of(case) for case in cases] or [began]


def options() -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N")
    parser.add_argument("--short", action="store_true", help=f"{ROUNDS_SHORT} rounds")
    parser.add_argument("--again", action="store_true", help="forget what was measured")
    names = [plant.name for plant in PLANTS[1:]]
    parser.add_argument("--plant", action="append", choices=names, help="this disturbance alone")
    parser.add_argument("--workload", action="append", choices=CASES, help="this case alone")
    parser.add_argument("--file", type=Path, default=RAW, help=f"the raw figures ({RAW.name})")
    return parser.parse_args()


def begin(file: Path, *, again: bool) -> tuple[list[str], set[tuple[int, str]]]:
    """Return the columns of the file and the rounds and disturbances that it already has.

    The file is made when there is none. An existing file keeps its columns.
    """
    if again or not file.exists():
        file.parent.mkdir(exist_ok=True, parents=True)
        head = "".join(f"# {name}: {value}\n" for name, value in host("cpu").items() if value)
        file.write_text(head + ",".join(FIELDS) + "\n")
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    known = csv.DictReader(lines)
    return list(known.fieldnames or ()), {(int(row["round"]), row["plant"]) for row in known}


def main() -> None:
    """Run the rounds that are missing."""
    arguments = options()
    rounds = ROUNDS_SHORT if arguments.short else arguments.rounds
    columns, done = begin(arguments.file, again=arguments.again)
    quiet, *planted = PLANTS
    planted = [one for one in planted if one.name in (arguments.plant or [one.name])]
    workloads = {
        name: params for name, params in CASES.items() if name in (arguments.workload or CASES)
    }
    possible = {plant.name for plant in planted}
    with tempfile.TemporaryDirectory() as directory, arguments.file.open("a", newline="") as file:
        suite = Path(directory) / "trust.yaml"
        cases = [f"  - {{workload: {name}, params: {own}}}\n" for name, own in workloads.items()]
        suite.write_text(SUITE + "".join(cases))
        table = csv.DictWriter(file, columns, extrasaction="ignore", lineterminator="\n")
        for number, first in itertools.product(range(rounds), range(0, len(planted), 2)):
            left = [
                plant
                for plant in planted[first : first + 2]
                if plant.name in possible and (number, plant.name) not in done
            ]
            for one in (quiet, *left) if left else ():
                found = measured(suite, number, one)
                if found is None:
                    possible.discard(one.name)
                    continue
                table.writerows(found)
                file.flush()
                print(f"round {number + 1} of {rounds}: {one.name}, exit {found[0]['exit_code']}")


if __name__ == "__main__":
    main()
