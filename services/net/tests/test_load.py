"""The load beside round trips: everything sent is received, and it ends when it has to."""

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.compiled import STRICT, compiled
from tests.machine_code import ROOT

PROBE = Path(__file__).with_name("load_probe.c")
BENCH, HARNESS = ROOT / "services" / "net" / "bench", ROOT / "harness"
SOURCES = (
    PROBE,
    *(BENCH / f"{name}.c" for name in ("load", "endpoint", "endpoint_facts", "test")),
    *(BENCH / f"{name}.c" for name in ("stream_run", "stream_role", "stream_tcp", "stream_udp")),
    *(BENCH / f"{name}.c" for name in ("sequence", "pacing", "ticks")),
    *(HARNESS / f"{name}.c" for name in ("cpulist", "textfile")),
)


@pytest.fixture(scope="module", params=["address,undefined", "thread"])
def probe(request: pytest.FixtureRequest) -> Path:
    """The compiled load_probe.c."""
    checks = (f"-fsanitize={request.param}", "-fno-sanitize-recover=all")
    folders = (f"-I{HARNESS}", f"-I{BENCH}")
    return compiled("load_probe", SOURCES, [*STRICT, *checks, "-pthread", *folders, "-lm"])


def load(probe: Path, *arguments: object) -> dict[str, Any]:
    """What its streams moved."""
    command = [str(probe), *map(str, arguments)]
    run = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout)
    return found


@pytest.mark.parametrize(("sending", "receiving"), [(1, 0), (0, 1), (2, 2), (8, 0)])
@pytest.mark.sampled(5)
def test_all_that_is_sent_is_received(probe: Path, sending: int, receiving: int) -> None:
    found = load(probe, sending, receiving, 0.3)
    assert (found["near_failed"], found["far_failed"]) == ("", "")
    assert len(found["streams"]) == sending + receiving
    for stream in found["streams"]:
        assert stream["sent"] == stream["received"] > 0
        assert stream["rate"] > 0
    assert 0 < found["moved"] <= sum(stream["sent"] for stream in found["streams"])


def test_a_stream_that_breaks_is_named(probe: Path) -> None:
    found = load(probe, 2, 0, 0.2, "break")
    assert found["near_failed"] in ("EPIPE", "ECONNRESET")
    assert found["near_failed_stream"] == 1


def test_it_gives_up_at_the_end(probe: Path) -> None:
    """Receivers that do not know how much was sent are not waited for."""
    began_s = time.monotonic()
    load(probe, 2, 2, 0.2, "stop")
    assert time.monotonic() - began_s < 2
