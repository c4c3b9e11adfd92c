"""What a far host is asked for, and who says where it is."""

from pathlib import Path
from typing import Any

import pytest

from hostbench.adhoc import ad_hoc_suite
from hostbench.betweenhosts import FarEnds, far_ends
from hostbench.errors import HostbenchError, ResourceError, UsageError
from hostbench.farhost import BothWatch
from hostbench.faroptions import FarOptions, far_options
from hostbench.interrupt import Interrupt
from hostbench.models.jobs import JobSpec
from hostbench.models.result import Busy, IdleWindow, PlannedCase, Reason
from hostbench.models.service import IdleAnswer
from orchestrator.store.record import NewJob
from tests.unit.records import planned

URL = "https://node-b.example.org:8004"
KEY = "the key of the services of tests"


# ---- which cases ----


def case(target: str | None, workload: str = "net.tcp_stream") -> PlannedCase:
    params = {} if target is None else {"target": target}
    return planned("aaaa", workload=workload, params=params, label="4 streams")


@pytest.mark.parametrize(
    ("cases", "ends"),
    [
        ([], FarEnds(False, None)),
        ([case("loopback")], FarEnds(False, None)),
        ([case("auto")], FarEnds(True, None)),
        ([case(None)], FarEnds(True, None)),
        ([case(None, "cpu.fma")], FarEnds(False, None)),
        ([case("auto"), case("far_host")], FarEnds(True, "net.tcp_stream 4 streams")),
    ],
)
def test_where_far_ends_are(cases: list[PlannedCase], ends: FarEnds) -> None:
    assert far_ends(cases) == ends


@pytest.mark.parametrize(
    ("far", "queue"),
    [
        ((), "node-a,node-b|node-b:net,node-a"),
        (("net",), "node-a,node-b|node-b:net,node-a:net"),
    ],
)
def test_a_job_waits_for_the_far_service(far: tuple[str, ...], queue: str) -> None:
    suite = ad_hoc_suite("net.tcp_stream", {})
    spec = JobSpec(workload="net.tcp_stream")
    job = NewJob("an-id", spec, suite, ("node-b", "node-a"), ("net",), far)
    assert job.queue == queue


# ---- the options ----


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOST", "KEY", "KEY_FILE", "CA_FILE"):
        monkeypatch.delenv(f"HOSTBENCH_FAR_{name}", raising=False)


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    return path


def test_there_is_none() -> None:
    assert far_options(None, None, None) is None


def test_it_is_named_by_options(key_file: Path, tmp_path: Path) -> None:
    ca = tmp_path / "ca.pem"
    assert far_options(URL, key_file, ca) == FarOptions(URL, KEY, ca, is_asked_for=True)
    assert KEY not in repr(far_options(URL, key_file, ca))


def test_it_is_named_by_the_environment(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTBENCH_FAR_HOST", URL)
    monkeypatch.setenv("HOSTBENCH_FAR_KEY_FILE", str(key_file))
    monkeypatch.setenv("HOSTBENCH_FAR_CA_FILE", "/ca.pem")
    assert far_options(None, None, None) == FarOptions(URL, KEY, Path("/ca.pem"), False)
    named = far_options("http://127.0.0.1:8004", None, None)
    assert named is not None and named.is_asked_for and named.url == "http://127.0.0.1:8004"


@pytest.mark.parametrize(
    "url",
    ["node-b", "node-b:8004", "ftp://node-b", "https://", "https://b/x", "unix:", "https://b:x"],
)
def test_what_is_no_address(url: str, key_file: Path) -> None:
    with pytest.raises(UsageError, match=r"--far-host .* is not the address of a net service"):
        far_options(url, key_file, None)


def test_a_key_does_not_travel_in_clear(key_file: Path) -> None:
    with pytest.raises(UsageError, match="would send the key unencrypted"):
        far_options("http://192.0.2.7:8004", key_file, None)
    assert far_options("http://[::1]:8004", key_file, None)
    assert far_options("unix:/run/hostbench/net.sock", key_file, None)


@pytest.mark.parametrize(
    ("content", "error", "says"),
    [
        (None, ResourceError, "cannot read --far-key-file"),
        ("", UsageError, "nobody says the key of https://node-b"),
        ("schlüssel-der-dienste", ResourceError, "has characters that no key has"),
    ],
)
def test_a_key_that_is_none(
    content: str | None, error: type[HostbenchError], says: str, tmp_path: Path
) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_text(content)
    with pytest.raises(error, match=says):
        far_options(URL, path, None)


def test_a_key_without_a_host(key_file: Path) -> None:
    with pytest.raises(UsageError, match="say how --far-host is reached; give that too"):
        far_options(None, key_file, None)


# ---- the idle gate ----


class Seen:
    """A host that looks busy or not."""

    def __init__(self, *reasons: str) -> None:
        self._reasons = tuple(Reason(code="busy", text=text) for text in reasons)

    def look(self, _interrupt: Interrupt) -> IdleAnswer:
        values: dict[str, Any] = dict.fromkeys(
            ("busy_ratio", "steal_ratio", "busiest_cpu_ratio", "psi_cpu_ratio"), 0.0
        )
        window = IdleWindow(seconds=1.0, reasons=self._reasons, **values)
        return IdleAnswer(window=window, busiest=(Busy(pid=7, command="make", cpu_ratio=0.9),))


@pytest.mark.parametrize(
    ("near", "far", "text", "command"),
    [
        ((), (), None, "make"),
        (("near is busy",), (), "near is busy", "make"),
        (("near is busy",), ("far is busy",), "near is busy", "make"),
        ((), ("its CPUs were busy",), "far host node-b: its CPUs were busy", "make on node-b"),
    ],
)
def test_a_busy_far_host_is_one_reason_to_wait(
    near: tuple[str, ...], far: tuple[str, ...], text: str | None, command: str
) -> None:
    interrupt = Interrupt()
    answer = BothWatch(Seen(*near), Seen(*far), "node-b").look(interrupt)
    interrupt.close()
    assert [reason.text for reason in answer.window.reasons] == ([] if text is None else [text])
    assert answer.busiest[0].command == command
