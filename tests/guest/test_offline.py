"""A CPU that goes offline while its thread is measured: that of a guest, which can be switched
off."""

import json
import re

import pytest

from tests.benchmark import RESOURCE
from tests.guest import guest
from tests.guest.guest import Guest, missing

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.exhaustive,
    pytest.mark.skipif(missing() is not None, reason=f"no guest: {missing()}"),
]

MACHINE = ("-smp", "2", "-m", "256")
WORKLOADS = ("add_sub", "core_to_core")
# One guest measures all: its boot takes most of the time.
SCRIPT = f"""
for workload in {" ".join(WORKLOADS)}; do
    echo workload $workload
    /program $workload --threads=2 --warmup-s=0 --duration-s=300 >/out 2>/dev/null &
    until /bin/busybox grep -q start /out; do /bin/busybox sleep 0.1; done
    /bin/busybox sleep 1
    echo 0 >/sys/devices/system/cpu/cpu1/online
    wait $!
    echo exit code $?
    /bin/busybox cat /out
    echo 1 >/sys/devices/system/cpu/cpu1/online
done
"""


@pytest.fixture(scope="module")
def printed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the guest printed, by workload."""
    accelerator = guest.accelerator(tmp_path_factory.mktemp("accelerator"))
    with Guest(tmp_path_factory.mktemp("guest"), SCRIPT, accelerator, machine=MACHINE) as one:
        _, *parts = re.split(r"^workload ", one.last_words(240), flags=re.MULTILINE)
    return {text.split()[0]: text for text in parts}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_cpu_that_goes_offline_has_no_figure(printed: dict[str, str], workload: str) -> None:
    """At once: a thread that waits for another one on the same CPU would do so for minutes."""
    text = printed[workload]
    assert f"exit code {RESOURCE}" in text, text
    events = [json.loads(line) for line in re.findall(r"^\{.*\}", text, re.MULTILINE)]
    assert events[-1]["event"] == "error"
    assert "CPU 1 to others" in events[-1]["message"] and "offline" in events[-1]["message"]
