"""Which cases an interrupted job may keep."""

from typing import Any

import pytest

from hostbench.model.result import FarHostRecord, ProgramVersion, Record, SessionRecord, StopReason
from hostbench.model.suite import Repeats
from hostbench.results.document import replay
from hostbench.run.resume import Resumption, resumption
from tests.unit.records import bare_trial, done, host, planned, session

CASES = (planned("aaaa"), planned("bbbb"))


def resumed(now: SessionRecord, stopped: StopReason = StopReason.TARGET_REACHED) -> Resumption:
    before = replay([session(CASES), bare_trial(), done("aaaa", stopped)])
    return resumption(before, now)


def test_a_finished_case_is_kept_and_an_unfinished_one_measured() -> None:
    found = resumed(session(CASES))
    assert found.kept == ("aaaa",)
    assert found.again == {"bbbb": "not finished"}
    assert found.sentence == "1 of 2 cases kept; 1 measured again: not finished"


def test_the_trials_of_an_unfinished_case_count_and_more_are_run() -> None:
    records: list[Record] = [session(CASES), bare_trial(), done(), bare_trial(case="bbbb", index=0)]
    found = resumption(replay(records), session(CASES))
    assert (found.kept, found.continued, found.again) == (("aaaa",), ("bbbb",), {})
    assert found.sentence == "1 of 2 cases kept; 1 continued with more trials"
    again = session(CASES).model_copy(update={"kept": ("aaaa",), "continued": ("bbbb",)})
    progress = replay([*records, again, bare_trial(case="bbbb", index=1)])
    assert [trial.index for trial in progress.trials["bbbb"]] == [0, 1]
    assert list(progress.done) == ["aaaa"]
    other_kernel = resumption(replay(records), session(CASES, host=host(kernel="6.13.0")))
    assert other_kernel.continued == () and set(other_kernel.again) == {"aaaa", "bbbb"}


@pytest.mark.parametrize(
    ("stopped", "kept"),
    [
        (StopReason.MAX_TRIALS, True),
        (StopReason.MAX_TIME, True),
        (StopReason.SKIPPED, True),
        (StopReason.FAILED, False),
    ],
)
def test_a_failed_case_is_tried_again(stopped: StopReason, kept: bool) -> None:
    assert ("aaaa" in resumed(session(CASES), stopped).kept) is kept


def program(**changes: str) -> ProgramVersion:
    plain = {"name": "cpu-bench", "subsystem": "cpu", "version": "0.1.0", "sha256": "ab" * 32}
    return ProgramVersion(**(plain | changes))


@pytest.mark.parametrize(
    ("changes", "part"),
    [
        ({"hostbench": "0.2.0"}, "hostbench 0.1.0, this is 0.2.0"),
        ({"programs": (program(version="0.2.0"),)}, "this is cpu-bench 0.2.0"),
        ({"programs": (program(sha256="cd" * 32),)}, "(abababab), this is cpu-bench 0.1.0 (cdcd"),
        ({"host": host(machine="other")}, "another host or kernel"),
        ({"host": host(kernel="6.13.0")}, "another host or kernel"),
        ({"cases": (planned("aaaa", repeats=Repeats()), CASES[1])}, "other repeats"),
        ({"suite": session().suite.model_copy(update={"scale": "full"})}, "at no scale, this is"),
    ],
)
def test_what_was_measured_otherwise_is_measured_again(changes: dict[str, Any], part: str) -> None:
    found = resumed(session(**({"cases": CASES} | changes)))
    assert found.kept == ()
    assert part in found.again["aaaa"]
    assert part in found.sentence


def far_host(**changes: Any) -> FarHostRecord:
    plain: dict[str, Any] = {
        "inventory": host(hostname="node-b"),
        "program": program(name="net-bench", subsystem="net"),
        "address": "192.0.2.2",
        "near_address": "192.0.2.1",
    }
    return FarHostRecord(**(plain | changes))


def between(target: str) -> SessionRecord:
    case = planned("aaaa", workload="net.tcp_stream", params={"target": target})
    return session((case,), far_host=far_host())


@pytest.mark.parametrize(
    ("far", "part"),
    [
        (None, "measured with node-b at 192.0.2.2 and net-bench 0.1.0 (abababab), this is on one"),
        (far_host(address="192.0.2.9"), "this is with node-b at 192.0.2.9"),
        (far_host(program=program(name="net-bench", sha256="cd" * 32)), "(cdcdcdcd)"),
        (far_host(inventory=host(machine="other")), "measured with"),
    ],
)
def test_another_far_host_is_another_measurement(far: FarHostRecord | None, part: str) -> None:
    before = between("far_host")
    found = resumption(replay([before, bare_trial(), done("aaaa")]), before)
    assert found.kept == ("aaaa",)
    now = before.model_copy(update={"far_host": far})
    again = resumption(replay([before, bare_trial(), done("aaaa")]), now).again
    assert part in again["aaaa"]


def test_what_was_on_one_host_is_kept_whatever_the_far_one_is() -> None:
    before = between("loopback")
    now = before.model_copy(update={"far_host": None})
    assert resumption(replay([before, bare_trial(), done("aaaa")]), now).kept == ("aaaa",)
