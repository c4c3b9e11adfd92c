"""How often are the words of hostbench right? Jobs under planted disturbances, with quiet ones
between them, so that the truth of the same minutes is known.

usage: python -m benchmarks.trust.experiment [--short] [--again]
Twenty rounds, some hour and a half on two CPUs; --short: four, twenty minutes. In each round every
disturbance is planted once, with a quiet job before each two. What was measured is kept job by job
and counts when it is started again, unless --again; the documents of the jobs stay in build/trust.
Needs stress-ng; a quota needs root. The table is made by python -m benchmarks.trust.table.
"""

import contextlib
import csv
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.figures import BENCHMARKS, file_of, host, maker

ROUNDS, ROUNDS_SHORT = 20, 4
# One or two of each kind of resource, and no more trials than the suite quick has.
SUITE = """
name: trust
idle: {policy: force, per: suite}
repeats: {min_trials: 3, max_trials: 4, max_time_s: 30}
cases:
  - {workload: cpu.fma, params: {dtype: fp64, threads: 2, duration_s: 0.5}}
  - {workload: cpu.add_sub, params: {dtype: int32, threads: 2, duration_s: 0.5}}
  - {workload: mem.copy, params: {threads: 2, duration_s: 0.25}}
  - {workload: mem.pointer_chase, params: {threads: 1, size_bytes: 16777216, duration_s: 0.25}}
  - {workload: disk.rand_read, params: {queue_depth: 1, duration_s: 0.5}}
  - {workload: net.tcp_stream, params: {target: loopback, duration_s: 0.5}}
  - {workload: net.tcp_rr, params: {target: loopback, duration_s: 0.5}}
"""
FIELDS = (
    *("round", "plant", "time_unix_s", "exit_code", "took_s", "workload", "verdict"),
    *("value", "low", "high", "undisturbed", "delivered", "delivered_low", "delivered_high"),
    *("delivered_ratio", "least_difference_ratio", "condition", "share", "culprit", "n"),
    *("delivered_n", "slowest", "drift_ratio"),
)
# Workloads whose figure is a time: of these less is better.
LATENCIES = ("mem.pointer_chase", "net.tcp_rr")
RAW = file_of("trust/jobs", maker())
DOCUMENTS = BENCHMARKS.parent / "build/trust"
SETTLE_S = 0.5
QUIET = "none"


@dataclass(frozen=True)
class Plant:
    """A disturbance: what runs meanwhile, the word for it, and the name of its culprit."""

    name: str
    condition: str
    culprit: str
    begin: Callable[[], contextlib.AbstractContextManager[Path | None]]


@contextlib.contextmanager
def beside(*arguments: str) -> Iterator[Path | None]:
    """A stress-ng with these arguments until this is left."""
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
    """The host as it is."""
    yield None


@contextlib.contextmanager
def quota(share: float) -> Iterator[Path | None]:
    """A control group that gets this share of one CPU for each there is; its file of members."""
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
) -> tuple[int, float, list[dict[str, Any]]]:
    """The exit code of one run, its seconds, and its cases; its document is kept in `documents`."""
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
    document = json.loads(ended.stdout) if ended.stdout else {"cases": []}
    return ended.returncode, time.monotonic() - began_s, document["cases"]


def rows(case: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a case."""
    undisturbed, delivered = case.get("undisturbed"), case.get("delivered")
    figure = case.get("figure") or {}
    interval, condition = figure.get("interval") or {}, case.get("condition") or {}
    given = (delivered or {}).get("interval") or {}
    trials = [one["value"] for one in case["trials"] if one.get("value")]
    return {
        "workload": case["workload"],
        "verdict": case["verdict"],
        "value": figure.get("value"),
        "low": interval.get("low"),
        "high": interval.get("high"),
        "undisturbed": (undisturbed or {}).get("value"),
        "delivered": (delivered or {}).get("value"),
        "delivered_low": given.get("low"),
        "delivered_high": given.get("high"),
        "delivered_ratio": case.get("delivered_ratio"),
        "least_difference_ratio": figure.get("least_difference_ratio"),
        "condition": condition.get("state"),
        "share": condition.get("share"),
        "culprit": condition.get("culprit"),
        "n": figure.get("n"),
        "delivered_n": (delivered or {}).get("n"),
        "drift_ratio": figure.get("drift_ratio"),
        # Of the figures of single trials: whether something took the host from one of them.
        "slowest": (max if case["workload"] in LATENCIES else min)(trials, default=None),
    }


def measured(suite: Path, number: int, plant: Plant) -> list[dict[str, Any]] | None:
    """The rows of one job; None: it cannot be planted here."""
    began = {"round": number, "plant": plant.name, "time_unix_s": round(time.time())}
    try:
        with plant.begin() as members:
            exit_code, took_s, cases = job(suite, members)
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        print(f"SKIPPED {plant.name}: {error}", file=sys.stderr)
        return None
    began |= {"exit_code": exit_code, "took_s": round(took_s, 1)}
    return [began | rows(case) for case in cases] or [began]


def main() -> None:
    """Run what is left of the rounds."""
    rounds = ROUNDS_SHORT if "--short" in sys.argv else ROUNDS
    if "--again" in sys.argv or not RAW.exists():
        RAW.parent.mkdir(exist_ok=True, parents=True)
        head = "".join(f"# {name}: {value}\n" for name, value in host("cpu").items() if value)
        RAW.write_text(head + ",".join(FIELDS) + "\n")
    lines = [line for line in RAW.read_text().splitlines() if not line.startswith("#")]
    done = {(int(row["round"]), row["plant"]) for row in csv.DictReader(lines)}
    quiet, *planted = PLANTS
    possible = {plant.name for plant in planted}
    with tempfile.TemporaryDirectory() as directory, RAW.open("a", newline="") as file:
        suite = Path(directory) / "trust.yaml"
        suite.write_text(SUITE)
        table = csv.DictWriter(file, FIELDS, lineterminator="\n")
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
