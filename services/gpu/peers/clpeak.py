"""clpeak: what OpenCL devices do at most, through compiled kernels with vectors of 1 to 16.

The figure is the best of these widths. It is given OpenCL's numbers of our device, and would
take all of them in turn without.
"""

import re

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, BadOutput, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import NUMBER, match, number, version
from services.gpu.peers.device import OPENCL, UNKNOWN, device

PACKAGE = "clpeak"
TOOL = "clpeak"
# By workload and dtype, the option that runs the test, its heading, its lines.
_TESTS = {
    ("fma", "fp32"): ("--compute-sp", "Single-precision compute (GFLOPS)", "float"),
    ("fma", "fp64"): ("--compute-dp", "Double-precision compute (GFLOPS)", "double"),
    ("int_mul_add", "int32"): ("--compute-integer", "Integer compute (GIOPS)", "int"),
    ("read", None): ("--global-bandwidth", "Global memory bandwidth (GBPS)", "float"),
}
_TRANSFERS = {"host_to_device": "enqueueWriteBuffer", "device_to_host": "enqueueReadBuffer"}
TRANSFER = ("--transfer-bandwidth", "Transfer bandwidth (GBPS)")
OURS = "our device: "
# Its options and what it prints are those of version 1.
UNDERSTOOD = r"1\."


def peer(workload: str, params: Params) -> Peer | None:
    """Beside what it measures as we do."""
    dtype = params.get("dtype")
    test = _TESTS.get((workload, None if dtype is None else str(dtype)))
    if test is not None:
        return Kernels(workload, *test, params)
    line = _TRANSFERS.get(workload)
    pageable = params.get("host_memory") == "pageable"
    return Transfer(*TRANSFER, line, params) if line is not None and pageable else None


class Clpeak(Peer):
    """One of its tests."""

    tool = TOOL
    package = PACKAGE
    # What of its conditions is not ours (Survey.differs).
    differs: str

    def __init__(self, option: str, heading: str, params: Params) -> None:
        self.title = option.removeprefix("--")
        self._option, self._heading, self._params = option, heading, params
        self._name = ""
        self._place: tuple[str, ...] = ()

    def trial_time_s(self, elapsed_s: float) -> float:
        # Some two seconds on a GPU; on a CPU most of a minute.
        return max(elapsed_s, 20.0)

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "-v")), r"clpeak version: (\S+)")
        ours = device(ask, self._params)
        unsupported = None
        if ours is None:
            unsupported = UNKNOWN
        elif OPENCL not in (ours.backend, *ours.backends):
            unsupported = f"OpenCL does not know {ours.name}"
        elif found is None or not re.match(UNDERSTOOD, found):
            unsupported = f"its version {found or 'is unknown and'} is not supported here"
        self._name = "" if ours is None else ours.name
        numbers = None if ours is None else ours.opencl
        if numbers is not None:
            self._place = ("-p", str(numbers.platform), "-d", str(numbers.device))
        return Survey(version=found, unsupported=unsupported, differs=(self.differs,))

    def command(self, beside: Beside) -> Command:
        # Its output covers all devices: the first line names the one that we measure.
        named = ("sh", "-c", 'printf "%s\\n" "$1"; shift; exec "$@"', "sh", f"{OURS}{self._name}")
        return Command(on_cpus(beside.cpus, *named, TOOL, *self._place, self._option))

    def lines(self, output: str) -> str:
        """What it says of our device. Raise BadOutput."""
        name = match(rf"\A{OURS}(.+)$", output, "name of a device")[1].strip()
        parts = re.split(r"^  Device: ", output, flags=re.MULTILINE)[1:]
        ours = [part for part in parts if part.partition("\n")[0].strip() == name]
        if not ours:
            raise BadOutput(f"no device {name} in its output")
        _, heading, rest = ours[0].partition(self._heading)
        if not heading:
            raise BadOutput(f"no {self._heading} in its output")
        return rest.split("\n\n")[0]


class Kernels(Clpeak):
    """Arithmetic, or reading from the device's memory."""

    differs = "times by the host's clock, launches included; ours by the device's"

    def __init__(self, workload: str, option: str, heading: str, line: str, params: Params) -> None:
        super().__init__(option, heading, params)
        self._line = line
        reads = workload == "read"
        self.unit = "byte/s" if reads else "operation/s"
        what = "bytes read from the device's memory" if reads else "operations of multiply-adds"
        self.measures = (
            f"{what} per second, mean of its runs by the host's clock, of the best of vectors of "
            "1, 2, 4, 8 and 16"
        )

    def parse(self, output: str, beside: Beside) -> float:
        text = self.lines(output)
        found = re.findall(rf"^\s+{self._line}\d*\s+: {NUMBER}$", text, re.MULTILINE)
        if not found:
            raise BadOutput(f"no {self._line} in its output")
        return max(_number(text) for text in found) * 1e9


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise BadOutput(f"{text} is not a number") from None


class Transfer(Clpeak):
    """A blocking copy from or to memory of malloc()."""

    unit = "byte/s"
    differs = "copies of a size that it chooses; ours of the case's"

    def __init__(self, option: str, heading: str, line: str, params: Params) -> None:
        super().__init__(option, heading, params)
        self.title = line
        self._line = line
        self.measures = (
            f"bytes per second of a blocking cl{line[0].upper()}{line[1:]} from or to memory that "
            "is not pinned, mean of 20 by the host's clock"
        )

    def parse(self, output: str, beside: Beside) -> float:
        line = rf"^\s+{self._line}\s+: {NUMBER}$"
        return number(line, self.lines(output), self._line) * 1e9
