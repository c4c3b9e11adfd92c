"""A process whose wall clock a test sets; every other clock stays the host's."""

from pathlib import Path

from tests.compiled import STRICT, compiled

SOURCE = Path(__file__).with_name("stepped_clock.c")
HOURS_S = 3600


class SteppedClock:
    """The wall clock of the processes that get its `environment`."""

    def __init__(self, file: Path) -> None:
        file.write_bytes(bytes(8))
        self._file = file
        shim = compiled("stepped_clock.so", [SOURCE], [*STRICT, "-shared", "-fPIC", "-ldl"])
        self.environment = {"LD_PRELOAD": str(shim), "HOSTBENCH_TEST_STEP_FILE": str(file)}

    def step(self, seconds: int) -> None:
        """The clock is so far ahead of the host's from now on."""
        with self._file.open("r+b") as opened:
            opened.write(seconds.to_bytes(8, "little", signed=True))
