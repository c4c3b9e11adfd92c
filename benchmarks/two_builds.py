"""Compare two builds in turn: did a change of the code change a figure?

    python -m benchmarks.two_builds OURS OTHER [BLOCKS]

OURS and OTHER are both a directory of programs, the build/release of a checkout, or both the
address of an orchestrator. With orchestrators each figure is that of a job of one trial, and
HOSTBENCH_API_KEY_FILE names the key of both. A block is A B B A and gives one ratio: our figures
over the other's. Programs run while the host is quiet; jobs wait for their own idle gate. A
register kernel is unchanged when the interval of the ratio's median lies inside ±1 %, any other
figure when that interval contains 1.
"""

import json
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from benchmarks.arguments import given_number
from benchmarks.figures import Entry, save, spread
from benchmarks.pairs import print_header, print_row
from benchmarks.quiet import quietly, quietly_with_a_disk
from benchmarks.stack.jobs import client, result

BLOCKS = 11
MIB = 1 << 20
REGISTER_BAND = 0.01


@dataclass(frozen=True)
class Case:
    """One measurement: a workload with its parameters, and the metric that is compared."""

    subsystem: str
    workload: str
    metric: str
    params: Mapping[str, object]

    @property
    def name(self) -> str:
        """Return the case as a command line gives it, without the duration."""
        words = [f"{key}={value}" for key, value in self.params.items() if key != "duration_s"]
        return " ".join([f"{self.subsystem}.{self.workload}", *words])


class Build(Protocol):
    """One of the two builds."""

    def figure(self, case: Case) -> float:
        """Measure one trial of the case and return its figure."""
        ...


@dataclass(frozen=True)
class Programs:
    """A directory of programs."""

    directory: Path

    def figure(self, case: Case) -> float:
        """Run one trial. Raise CalledProcessError when the program fails."""
        options = [f"--{key.replace('_', '-')}={value}" for key, value in case.params.items()]
        command = [f"{self.directory}/{case.subsystem}-bench", case.workload, *options]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return float(json.loads(output.splitlines()[-1])["metrics"][case.metric])


@dataclass(frozen=True)
class Stack:
    """An orchestrator with one host that has the cpu and mem services."""

    url: str

    def figure(self, case: Case) -> float:
        """Run a job of one trial. Raise SystemExit when the job fails."""
        spec = {
            "workload": f"{case.subsystem}.{case.workload}",
            "params": dict(case.params),
            "trials": 1,
            "peers": "none",
        }
        with client(self.url) as api:
            found = result(api, spec)["cases"][0]["metrics"][case.metric]
        return float(found["statistics"]["median"])


OPERATIONS, BYTES = "operations_per_second", "bytes_per_second"
SHORT = {"threads": 1, "duration_s": 0.3, "warmup_s": 0.05}
IN_MEMORY = {**SHORT, "size_bytes": 256 * MIB}
ON_DISK = {"file_bytes": 256 * MIB, "duration_s": 0.5, "warmup_s": 0.1}
CASES = (
    Case("cpu", "fma", OPERATIONS, {"dtype": "fp64", "isa": "avx2", **SHORT}),
    Case("cpu", "add_sub", OPERATIONS, {"dtype": "int32", "isa": "avx2", **SHORT}),
    Case("cpu", "int_mul_add", OPERATIONS, {"dtype": "int32", "isa": "scalar", **SHORT}),
    Case("mem", "copy", BYTES, IN_MEMORY),
    Case("mem", "pointer_chase", "access_time_s", IN_MEMORY),
    Case("disk", "rand_read", OPERATIONS, ON_DISK),
    Case("net", "tcp_stream", BYTES, {"duration_s": 0.5, "warmup_s": 0.1}),
    Case("net", "tcp_rr", "round_trip_s", {"duration_s": 0.5, "warmup_s": 0.1}),
)


THROUGH_A_STACK = ("fma", "copy", "pointer_chase")


def build(place: str) -> Build:
    """Return the build that a word of the command line names."""
    return Stack(place) if re.match("https?://", place) else Programs(Path(place))


def block(case: Case, ours: Build, theirs: Build) -> tuple[float, float]:
    """Measure one A B B A and return the sums of the two figures of each build."""
    first, second = ours.figure(case), theirs.figure(case)
    third, fourth = theirs.figure(case), ours.figure(case)
    return first + fourth, second + third


def sums_of(case: Case, ours: Build, theirs: Build) -> tuple[float, float]:
    """Measure one block on a quiet host."""
    if isinstance(ours, Stack):
        return block(case, ours, theirs)
    quiet = quietly_with_a_disk if case.subsystem == "disk" else quietly
    return quiet(block, case, ours, theirs)


def main() -> None:
    """Print a row for each case and save the raw figures."""
    if len(sys.argv) < 3:
        raise SystemExit("two_builds: name two builds: OURS OTHER [BLOCKS]")
    ours, theirs = map(build, sys.argv[1:3])
    blocks = given_number(BLOCKS, place=3)
    stack = isinstance(ours, Stack)
    entries = []
    print_header(("case", "ratio: median", "its interval", "blocks", ""))
    for case in CASES:
        if stack and case.workload not in THROUGH_A_STACK:
            continue
        sums = [sums_of(case, ours, theirs) for _ in range(blocks)]
        ratio = spread([mine / other for mine, other in sums])
        low, high = ratio["low"], ratio["high"]
        if case.subsystem == "cpu":
            unchanged = low >= 1 - REGISTER_BAND and high <= 1 + REGISTER_BAND
        else:
            unchanged = low <= 1 <= high
        interval = f"{low:.4f} to {high:.4f}"
        word = "unchanged" if unchanged else "**changed**"
        print_row((case.name, f"{ratio['median']:.4f}", interval, str(blocks), word))
        columns = {"ours": [mine for mine, _ in sums], "theirs": [other for _, other in sums]}
        entries.append(Entry({"case": case.name}, columns))
    save("stack/two_stacks" if stack else "stack/two_builds", entries)


if __name__ == "__main__":
    main()
