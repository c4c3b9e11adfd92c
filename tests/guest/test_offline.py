"""A CPU that goes offline while its thread is measured: that of a guest, which can be switched
off."""

import json
import re
from pathlib import Path

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
SCRIPT = """
/program {workload} --threads=2 --warmup-s=0 --duration-s=300 >/out 2>/dev/null &
until /bin/busybox grep -q start /out; do /bin/busybox sleep 0.1; done
/bin/busybox sleep 1
echo 0 >/sys/devices/system/cpu/cpu1/online
wait $!
echo exit code $?
/bin/busybox cat /out
"""


@pytest.fixture(scope="module")
def accelerator(tmp_path_factory: pytest.TempPathFactory) -> str:
    return guest.accelerator(tmp_path_factory.mktemp("accelerator"))


@pytest.mark.parametrize("workload", ["add_sub", "core_to_core"])
def test_a_cpu_that_goes_offline_has_no_figure(
    tmp_path: Path, accelerator: str, workload: str
) -> None:
    """At once: a thread that waits for another one on the same CPU would do so for minutes."""
    script = SCRIPT.format(workload=workload)
    with Guest(tmp_path, script, accelerator, machine=MACHINE) as one:
        output = one.last_words(120)
    assert f"exit code {RESOURCE}" in output, output
    events = [json.loads(line) for line in re.findall(r"^\{.*\}", output, re.MULTILINE)]
    assert events[-1]["event"] == "error"
    assert "CPU 1 to others" in events[-1]["message"] and "offline" in events[-1]["message"]
