"""A path that repeats datagrams: nothing is wrong with either end, and no loss is made up."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.net.tests.namespaces import Namespace, namespace, why_not
from services.net.tests.program import measure
from tests.benchmark import Trial

pytestmark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")

REPEAT = Path(__file__).with_name("repeat.py")
BLOCKS = (8, 64)


@pytest.fixture(scope="module", params=BLOCKS)
def block(request: pytest.FixtureRequest) -> int:
    """Bytes of a datagram: too few for a header, and enough."""
    found: int = request.param
    return found


@pytest.fixture(scope="module")
def host(block: int) -> Iterator[Namespace]:
    """A namespace whose loopback repeats each datagram of that length."""
    with namespace() as inside:
        command = ["nsenter", f"--net={inside.path}", sys.executable, str(REPEAT), str(block)]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as repeater:
            assert repeater.stdout is not None and repeater.stdout.readline() == b"\n"
            yield inside
            repeater.kill()


def test_a_path_that_repeats(host: Namespace, block: int) -> None:
    trial: Trial = measure(
        *("udp_stream", "--udp-path=single", f"--block-bytes={block}", f"--rate={block * 1000}"),
        *("--duration-s=0.5", "--warmup-s=0"),
        prefix=("nsenter", f"--net={host.path}"),
    )
    metrics = trial.metrics
    assert metrics["lost_datagrams"] == 0 and metrics["lost_ratio"] == 0
    if block < 16:
        assert metrics["received_datagrams"] > metrics["sent_datagrams"]
        assert "datagrams more were received than sent" in trial.warnings["more_received"]
    else:
        assert metrics["received_datagrams"] == metrics["sent_datagrams"]
        assert metrics["duplicated_datagrams"] > 0 and "more_received" not in trial.warnings
