"""What this process uses during a trial."""

import contextlib
import time
from pathlib import Path

from hostbench.model.events import ProcessUsage


class ProcessMeter:
    """Measures this process from the meter's creation on: all its threads and none of its
    children."""

    def __init__(self, component: str, proc: Path = Path("/proc")) -> None:
        """`component`: see ProcessUsage. `proc` stands for /proc in tests."""
        self._component = component
        # Per thread, not for the process: there the kernel adds what ended children wrote.
        self._threads = proc / "self/task"
        self._started_s = time.monotonic()
        self._cpu_s = time.process_time()
        self._written_bytes = self._written()

    def taken(self) -> ProcessUsage:
        """Return what the process has used since."""
        before, now = self._written_bytes, self._written()
        written_bytes = sum(written - before.get(thread, 0) for thread, written in now.items())
        return ProcessUsage(
            component=self._component,
            cpu_s=time.process_time() - self._cpu_s,
            # Two readings of the clock may be equal.
            elapsed_s=max(1e-9, time.monotonic() - self._started_s),
            written_bytes=written_bytes if before and now else None,
        )

    def _written(self) -> dict[str, int]:
        """Return `write_bytes` of proc_pid_io(5) by thread: what it sent towards storage. Empty if
        the kernel does not report it."""
        written = {}
        for thread in self._threads.glob("*"):
            # A thread may end at this moment.
            with contextlib.suppress(OSError):
                for line in (thread / "io").read_text().splitlines():
                    name, _, number = line.partition(": ")
                    if name == "write_bytes":
                        written[thread.name] = int(number)
        return written
