"""What is requested from a far host, and who says where it is."""

from pathlib import Path
from typing import Any

import pytest

from hostbench.base.errors import HostbenchError, ResourceError, UsageError
from hostbench.base.interrupt import Interrupt
from hostbench.model.jobs import JobSpec
from hostbench.model.result import Busy, IdleWindow, PlannedCase, Reason
from hostbench.model.service import IdleAnswer
from hostbench.model.suite import Repeats, Suite, SuiteCase
from hostbench.model.table import Table, Workload
from hostbench.plan.estimate import Plan
from hostbench.plan.grid import make_plan
from hostbench.plan.suite import ad_hoc_suite
from hostbench.plan.words import plan_sentence
from hostbench.plan.workloads import first_between_hosts
from hostbench.programs.params import check_value
from hostbench.remote.far_host import BothWatch
from hostbench.remote.far_options import FarOptions, far_options
from orchestrator.queue.record import NewJob
from tests.unit.records import RATE_METRIC, host, param, planned

URL = "https://node-b.example.org:8004"
KEY = "the key of the services of tests"


# ---- which cases ----


def case(target: str | None, workload: str = "net.tcp_stream") -> PlannedCase:
    params = {} if target is None else {"target": target}
    return planned("aaaa", workload=workload, params=params, label="4 streams")


@pytest.mark.parametrize(
    ("cases", "title"),
    [
        ([], None),
        ([case("loopback")], None),
        ([case(None, "cpu.fma"), case("far_host", "cpu.fma")], None),
        ([case("loopback"), case("far_host")], "net.tcp_stream 4 streams"),
    ],
)
def test_the_first_case_between_hosts(cases: list[PlannedCase], title: str | None) -> None:
    between = first_between_hosts(cases)
    assert (between and between.title) == title


def planned_targets(far_host: bool, *cases: dict[str, Any]) -> list[PlannedCase]:
    return list(plan_of(far_host, *cases).cases)


def plan_of(far_host: bool, *cases: dict[str, Any]) -> Plan:
    target = param(
        "target",
        type="choice",
        unit=None,
        default="auto",
        min=None,
        max=None,
        choices=("auto", "loopback", "far_host"),
    )
    workload = Workload(
        name="tcp_stream",
        description="",
        kind="loop",
        unsupported=None,
        params=(target,),
        metrics=(RATE_METRIC,),
    )
    table = Table(
        protocol=1, program="net-bench", subsystem="net", version="0", workloads=(workload,)
    )
    entries = tuple(SuiteCase(workload="net.tcp_stream", **one) for one in cases)
    suite = Suite(name="one", cases=entries, repeats=Repeats(min_trials=2, max_trials=3))
    return make_plan(suite, {"net": table}, host(), far_host=far_host)


@pytest.mark.parametrize(("far_host", "becomes"), [(False, "loopback"), (True, "far_host")])
def test_auto_says_which_it_is(far_host: bool, becomes: str) -> None:
    """A figure of the loopback and one between two hosts are not of the same case."""
    for entry in ({}, {"params": {"target": "auto"}}):
        (one,) = planned_targets(far_host, entry)
        assert one.params["target"] == one.call["target"] == becomes
        assert one.case == planned_targets(not far_host, {"params": {"target": becomes}})[0].case
    assert planned_targets(True, {})[0].case != planned_targets(False, {})[0].case


OPTIONAL: dict[str, Any] = {"params": {"target": "far_host"}, "far_host": "optional"}


def test_a_case_that_can_do_without_its_second_host_is_skipped() -> None:
    plan = plan_of(False, {}, OPTIONAL | {"peers": ["iperf3"]})
    here, skipped = plan.cases
    assert here.skip is None
    assert skipped.skip is not None and "--far-host" in skipped.skip
    assert (skipped.peers, skipped.trial_time_s) == ((), 0.0)
    assert first_between_hosts(plan.cases) is None
    assert plan.gates() == 1
    assert (plan.estimate().trials_low, plan.estimate().trials_high) == (2, 3)


def test_with_a_second_host_it_is_measured() -> None:
    (one,) = planned_targets(True, OPTIONAL)
    assert one.skip is None
    assert one == planned_targets(True, OPTIONAL | {"far_host": "required"})[0]
    assert first_between_hosts([one]) == one


def test_what_one_entry_requires_no_other_makes_optional() -> None:
    required = OPTIONAL | {"far_host": "required"}
    for entries in ((required, OPTIONAL), (OPTIONAL, required)):
        (one,) = planned_targets(False, *entries)
        assert one.skip is None


def test_a_plan_says_how_many_cases_lack_a_second_host() -> None:
    text = plan_sentence(plan_of(False, {}, OPTIONAL), kept=())
    assert "2 to 3 trials" in text
    assert text.endswith("; 1 case skipped because there is no second host")


def test_far_cpus_are_not_those_of_this_host() -> None:
    far_cpus = param("far_cpus", type="cpu_list", unit=None, default=None, min=None, max=8191)
    assert check_value(far_cpus, "8,10-11", allowed_cpus=(0, 1)) == "8,10-11"
    for wrong, says in (("8192", "0 to 8191"), ("8,8", "twice"), ("x", "is not a CPU list")):
        with pytest.raises(UsageError, match=says):
            check_value(far_cpus, wrong, allowed_cpus=(0, 1))


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
    assert far_options(URL, key_file, ca) == FarOptions(URL, KEY, ca, required=True)
    assert KEY not in repr(far_options(URL, key_file, ca))


def test_it_is_named_by_the_environment(key_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTBENCH_FAR_HOST", URL)
    monkeypatch.setenv("HOSTBENCH_FAR_KEY_FILE", str(key_file))
    monkeypatch.setenv("HOSTBENCH_FAR_CA_FILE", "/ca.pem")
    assert far_options(None, None, None) == FarOptions(URL, KEY, Path("/ca.pem"), False)
    named = far_options("http://127.0.0.1:8004", None, None)
    assert named is not None and named.required and named.url == "http://127.0.0.1:8004"


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
        ("", UsageError, "the key of the far host https://node-b.* is missing: set"),
        ("schlüssel-der-dienste", UsageError, "has characters that no key has"),
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
    with pytest.raises(UsageError, match="belong to --far-host; give that option, too"):
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
