"""nvbandwidth: NVIDIA's own measurement of copies, by the copy engines, timed by events behind a
kernel that spins until all copies are queued."""

from hostbench.host.gpu import ListedDevice
from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey, on_cpus
from hostbench.programs.tools.reading import NUMBER, expect, match, number, version
from services.gpu.peers.device import NOT_NVIDIA, by_cuda, device, on_card

TOOL = "nvbandwidth"
SOURCE = "github.com/NVIDIA/nvbandwidth, built with a CUDA toolkit"
BYTES = "bytes_per_second"
MIB = 1 << 20
BUFFER_MIB, BUFFER_MIB_MOST = 512, 4096
SAMPLES = 3
# By workload: the test, and how often it counts a byte that we count once or twice.
_TESTS = {
    "host_to_device": ("host_to_device_memcpy_ce", 1.0),
    "device_to_host": ("device_to_host_memcpy_ce", 1.0),
    "bidirectional": ("host_to_device_bidirectional_memcpy_ce", 1.0),
    "copy": ("device_local_copy", 2.0),
}


def peer(workload: str, params: Params) -> Peer | None:
    """Beside copies of pinned memory, and of the device's own."""
    test = _TESTS.get(workload)
    pageable = params.get("host_memory") == "pageable"
    return None if test is None or pageable else Nvbandwidth(*test, params)


class Nvbandwidth(Peer):
    """One of its tests with the copy engines."""

    tool = TOOL
    package = TOOL
    unit = "byte/s"
    overhead_s = 5.0

    def __init__(self, test: str, counted: float, params: Params) -> None:
        self.title = test
        self._counted, self._params = counted, params
        self._card: ListedDevice | None = None
        size = params.get("size_bytes")
        mebibytes = round(size / MIB) if isinstance(size, int | float) else BUFFER_MIB
        self._buffer_mib = min(max(1, mebibytes), BUFFER_MIB_MOST)
        capped = f"copies of {self._buffer_mib} MiB, its largest; ours of {mebibytes} MiB"
        self._differs = (capped,) if mebibytes > BUFFER_MIB_MOST else ()
        both = "bidirectional" in test
        self.metric = None if both else BYTES
        what = "bytes read and written" if counted == 2 else "bytes"
        which = "to the device, while as many go the other way" if both else "copied"
        self.measures = (
            f"{what} per second {which}, by the driver's copies of {self._buffer_mib} MiB, median "
            f"of {SAMPLES} samples, by events of the device"
        )

    @property
    def needs(self) -> tuple[str, ...]:
        """None that Debian has: the survey says where it is from."""
        return ()

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        found = version(ask((TOOL, "--help")), r"^nvbandwidth Version: (\S+)")
        card = device(ask, self._params)
        if found is None:
            return Survey(version=None, unsupported=f"{TOOL} is not installed ({SOURCE})")
        self._card = card
        unsupported = None if by_cuda(card) else NOT_NVIDIA
        return Survey(found, unsupported=unsupported, differs=self._differs)

    def command(self, beside: Beside) -> Command:
        assert self._card is not None, "the survey found it"
        options = ("-t", self.title, "-b", str(self._buffer_mib), "-i", str(SAMPLES))
        # With its own placement it would leave our trial's CPUs.
        command = on_card(self._card, TOOL, *options, "-d")
        return Command(on_cpus(beside.cpus, *command))

    def parse(self, output: str, beside: Beside) -> float:
        devices = match(r"bandwidth \(GB/s\)\n((?: +\d+)+)$", output, "matrix")[1].split()
        expect("devices", len(devices), 1)
        line = rf"^SUM {self.title} {NUMBER}$"
        return number(line, output, f"SUM {self.title}") * 1e9 * self._counted
