"""Keep the CPUs out of their idle states, so that no measurement waits for one to wake up."""

import struct
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# The kernel's power management quality of service: no CPU may take longer than this to wake up, in
# microseconds, as long as the file is open (Documentation/power/pm_qos_interface.rst).
CPU_LATENCY_FILE = Path("/dev/cpu_dma_latency")


@contextmanager
def cpus_awake() -> Iterator[None]:
    """Keep all CPUs awake while the context is open. Needs root; without it, say on standard error
    that CPUs may go to sleep."""
    try:
        latency = CPU_LATENCY_FILE.open("wb", buffering=0)
    except OSError as error:
        print(f"CPUs may go to sleep: {error}", file=sys.stderr)
        yield
        return
    with latency:
        latency.write(struct.pack("i", 0))
        yield
