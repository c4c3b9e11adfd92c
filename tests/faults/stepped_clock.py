"""A process whose clocks a test sets."""

import struct
from pathlib import Path

from tests.compiled import STRICT, compiled

SOURCE = Path(__file__).with_name("stepped_clock.c")
HOURS_S = 3600
NS_PER_S = 1_000_000_000


class SteppedClock:
    """The clocks of the processes that get its `environment`."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._wall_s = self._monotonic_s = self._grain_s = 0.0
        file.write_bytes(self._offsets())
        shim = compiled("stepped_clock.so", [SOURCE], [*STRICT, "-shared", "-fPIC", "-ldl"])
        self.environment = {"LD_PRELOAD": str(shim), "HOSTBENCH_TEST_STEP_FILE": str(file)}

    def step(self, seconds: float) -> None:
        """The time of day is so far ahead of the host's from now on; every other clock stays."""
        self._wall_s = seconds
        self._write()

    def leap(self, seconds: float) -> None:
        """The clocks that no process can set are so far ahead of the host's from now on, as when a
        hypervisor has stopped its guest, or behind, as where a host's clock source is broken."""
        self._monotonic_s = seconds
        self._write()

    def coarsen(self, seconds: float) -> None:
        """These clocks move in such steps from now on, as where a kernel counts ticks."""
        self._grain_s = seconds
        self._write()

    def _write(self) -> None:
        with self._file.open("r+b") as opened:
            opened.write(self._offsets())

    def _offsets(self) -> bytes:
        """The struct that is preloaded reads."""
        values = (self._wall_s, self._monotonic_s, self._grain_s)
        return struct.pack("=3q", *(int(value * NS_PER_S) for value in values))
