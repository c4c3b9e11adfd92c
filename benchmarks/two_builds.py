"""Two builds of the programs in turn: whether a change of the code changed a figure.

    python -m benchmarks.two_builds OTHER [BLOCKS]

OTHER is the build/release of another checkout. A block is A B B A on a quiet moment, and gives one
ratio: this build's figures over the other's. A register kernel is unchanged when the interval of
the ratio's median lies inside ±1 %, any other figure when that interval holds 1.
"""

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.figures import Entry, save, spread
from benchmarks.pairs import print_header, print_row
from benchmarks.programs import program
from benchmarks.quiet import quietly, quietly_with_a_disk

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
        """As a command line has it, without the time it takes."""
        words = [f"{key}={value}" for key, value in self.params.items() if key != "duration_s"]
        return " ".join([f"{self.subsystem}.{self.workload}", *words])

    def figure(self, programs: Path) -> float:
        """Of one trial. Raises CalledProcessError when the program fails."""
        options = [f"--{key.replace('_', '-')}={value}" for key, value in self.params.items()]
        command = [f"{programs}/{self.subsystem}-bench", self.workload, *options]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return float(json.loads(output.splitlines()[-1])["metrics"][self.metric])


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


def block(case: Case, ours: Path, theirs: Path) -> tuple[float, float]:
    """The sums of the two figures of each build in one A B B A."""
    first, second = case.figure(ours), case.figure(theirs)
    third, fourth = case.figure(theirs), case.figure(ours)
    return first + fourth, second + third


def main() -> None:
    """Prints a row for each case and keeps the raw figures."""
    theirs = Path(sys.argv[1])
    blocks = int(sys.argv[2]) if len(sys.argv) > 2 else BLOCKS
    ours = program("cpu").parent
    entries = []
    print_header(("case", "ratio: median", "its interval", "blocks", ""))
    for case in CASES:
        quiet = quietly_with_a_disk if case.subsystem == "disk" else quietly
        sums = [quiet(block, case, ours, theirs) for _ in range(blocks)]
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
    save("stack/two_builds", entries)


if __name__ == "__main__":
    main()
