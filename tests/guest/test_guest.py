"""What a guest's programs say when its hypervisor takes time from it, or stops it."""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hostbench.judge.condition import OUTSIDE_HOST, condition_of
from hostbench.judge.figure import Measured
from hostbench.judge.trial import STOPPED, measured_trial, reason_codes
from hostbench.model.events import EndEvent, Event, LastEvent, SampleEvent
from hostbench.model.result import ConditionState, TrialRecord, Verdict
from hostbench.model.subsystem import Sensitivity
from hostbench.programs.program import load_program
from tests.guest import guest
from tests.guest.guest import Guest, missing
from tests.unit.records import bare_trial, planned

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.exhaustive,
    pytest.mark.skipif(missing() is not None, reason=f"no guest: {missing()}"),
]

DURATION_S = 3
ARGUMENTS = (
    *("add_sub", "--dtype=int64", "--isa=scalar", "--threads=1", "--sample-interval-s=0.5"),
    f"--duration-s={DURATION_S}",
)
# Figures of guests that nothing disturbs differ by less.
CLOSE_RATIO = {"kvm": 0.03, "tcg": 0.15}
# Other tests take time from an emulated guest, too, and it cannot know.
ATTEMPTS = 5


def nothing(_: Guest) -> None: ...


@pytest.fixture(scope="module")
def accelerator(tmp_path_factory: pytest.TempPathFactory) -> str:
    return guest.accelerator(tmp_path_factory.mktemp("accelerator"))


def trials(
    directory: Path, accelerator: str, *meanwhile: Callable[[Guest], None]
) -> list[TrialRecord]:
    """Trials in a guest, one after the other; each `meanwhile` is called when the first sample of
    its trial is there."""
    directory.mkdir()
    command = " ".join(("/program", *ARGUMENTS, "\n"))
    with Guest(directory, command * len(meanwhile), accelerator) as one:
        events = one.events()
        return [next_trial(one, events, call) for call in meanwhile]


def next_trial(
    one: Guest, events: Iterator[Event], meanwhile: Callable[[Guest], None]
) -> TrialRecord:
    kept: list[Event] = []
    for event in events:
        if isinstance(event, SampleEvent):
            meanwhile(one)
            meanwhile = nothing
            continue
        kept.append(event)
        if isinstance(event, LastEvent):
            break
    assert kept and isinstance(kept[-1], EndEvent), "".join(one.said[-20:])
    workload = load_program("cpu").table.workload("add_sub")
    assert workload is not None
    return measured_trial(bare_trial(events=tuple(kept)), workload.metrics, {}, Sensitivity.CORE)


@pytest.fixture(scope="module")
def quiet(tmp_path_factory: pytest.TempPathFactory, accelerator: str) -> float:
    """What a guest does that has its CPU for itself, where it can know of stolen time."""
    if accelerator != "kvm":
        pytest.skip("KVM starts no guest here, and an emulated one counts no stolen time")
    directory = tmp_path_factory.mktemp("quiet")
    found = trials(directory / "guest", accelerator, *[nothing] * 3)
    return statistics.median(one.value for one in found if one.value is not None)


def test_time_that_the_hypervisor_gives_to_others(
    tmp_path: Path, accelerator: str, quiet: float
) -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as hog:
        try:
            os.sched_setaffinity(hog.pid, {0})
            (found,) = trials(tmp_path / "guest", accelerator, nothing)
        finally:
            hog.kill()
    assert found.end is not None and found.value is not None
    assert "stolen" in reason_codes(found)
    workload = load_program("cpu").table.workload("add_sub")
    assert workload is not None
    condition = condition_of(Measured(planned(), workload.metrics, [found]))
    assert condition is not None and condition.state is ConditionState.STOLEN
    assert condition.culprit == OUTSIDE_HOST and condition.share is not None
    assert condition.share > 0.3
    delivered = found.end.metrics["operations_per_second_makespan"]
    assert delivered is not None and delivered < 0.7 * quiet
    if found.verdict is Verdict.CLEAN:
        assert found.value == pytest.approx(quiet, rel=CLOSE_RATIO[accelerator])


def test_a_guest_that_is_stopped_in_mid_trial(tmp_path: Path, accelerator: str) -> None:
    """For half as long as the trial takes: no clean slice holds any of that, and the trial counts
    all the same for no figure."""

    def stop(one: Guest) -> None:
        one.suspend()
        time.sleep(DURATION_S / 2)
        one.resume()

    ratios: list[float | str] = []
    for attempt in range(ATTEMPTS):
        alone, stopped = trials(tmp_path / f"guest{attempt}", accelerator, nothing, stop)
        assert alone.value and stopped.value and stopped.end is not None
        delivered = stopped.end.metrics["operations_per_second_makespan"]
        assert delivered is not None
        if delivered > 0.75 * stopped.value:
            ratios.append("not stopped: the host had no CPU for the guest, so it was over already")
            continue
        assert stopped.verdict is Verdict.DISTURBED
        if STOPPED not in reason_codes(stopped):
            ratios.append(
                "not known as stopped: the thread that looks waited for its CPU just then"
            )
            continue
        assert (stopped.end.disturbance.stopped_s or 0.0) > DURATION_S / 4
        ratios.append(ratio := stopped.value / alone.value)
        if abs(ratio - 1) < CLOSE_RATIO[accelerator]:
            return
    pytest.fail(f"stopped over alone: {ratios}")
