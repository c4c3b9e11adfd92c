"""What the host was like while a case was measured, who made it so, and the first lines of it."""

import io
import math
import re
from typing import Any

import pytest

from hostbench.cli.render import show_result
from hostbench.judge.condition import BY_CARD, CARD_HELD, OUTSIDE_HOST, condition_of
from hostbench.judge.figure import Measured, MeasuredCases, two_figures
from hostbench.judge.statistics import describe
from hostbench.judge.trial import (
    PARTLY_SHARED_CORE,
    SHARED_CORE,
    STOPPED,
    measured_trial,
    reason_codes,
)
from hostbench.judge.verdict import case_verdict
from hostbench.model.events import OtherProcesses, OthersEvent, Sentinel, ThreadReport
from hostbench.model.result import (
    Condition,
    ConditionState,
    Figure,
    TrialRecord,
    TwoFigures,
    Verdict,
)
from hostbench.model.subsystem import GuestSpread, Sensitivity
from hostbench.results.document import assemble, replay
from tests.unit.records import (
    RATE,
    RATE_METRIC,
    bare_trial,
    done,
    end,
    placement,
    planned,
    session,
    start,
)

MAKESPAN = RATE_METRIC.model_copy(update={"name": f"{RATE}_makespan", "primary": False})
BEST = RATE_METRIC.model_copy(update={"name": f"{RATE}_best", "primary": False})
METRICS = (RATE_METRIC, MAKESPAN, BEST)
HOG = OtherProcesses(command="stress-ng", pid=7, processes=2, cpu_s=1.0)


# A thread of a loop, which has no slices.
WAITING = ThreadReport(
    cpu=0,
    start_s=0,
    stop_s=1,
    cpu_s=0.1,
    wait_s=0,
    involuntary_switches=0,
    slices=0,
    clean_slices=None,
    operations=1,
)


def others(cpu_s: float | None, *busiest: OtherProcesses, **changes: Any) -> OthersEvent:
    plain: dict[str, Any] = {"elapsed_s": 1.0, "cpus": 2, "cpu_s": cpu_s, "busiest": busiest}
    return OthersEvent(**(plain | changes))


def trial(
    index: int = 0,
    meanwhile: OthersEvent | None = None,
    sensitivity: Sensitivity = Sensitivity.CORE,
    sentinel: Sentinel | None = None,
    *,
    rate: float = 100.0,
    delivered: float = 98.0,
    best: float = 101.0,
    begun: Any = None,
    **disturbance: Any,
) -> TrialRecord:
    """A trial of a register kernel on two CPUs, a second long."""
    metrics = {RATE: rate, MAKESPAN.name: delivered, BEST.name: best}
    update = {"metrics": metrics, "sentinel": sentinel}
    ended = end(rate, **disturbance).model_copy(update=update)
    events = (begun or start(), ended, *([] if meanwhile is None else [meanwhile]))
    return measured_trial(bare_trial(index, events=events), METRICS, {}, sensitivity=sensitivity)


def condition(*trials: TrialRecord) -> Condition:
    found = condition_of(Measured(planned(), METRICS, list(trials)))
    assert found is not None
    return found


def figures_of(one: Measured) -> TwoFigures:
    return two_figures(one, MeasuredCases([one]).others_of(one), condition_of(one))


def test_a_quiet_host_and_one_that_tells_nothing() -> None:
    assert condition(trial(0, others(0.02))) == Condition(state=ConditionState.QUIET)
    # A container whose kernel hides it all, and no trial with a figure.
    nothing: dict[str, Any] = {
        "cpu_ratio": None,
        "steal_s": None,
        "throttled_s": None,
        "clean_slice_ratio": None,
    }
    assert condition(trial(**nothing)).state is ConditionState.UNKNOWN
    assert condition_of(Measured(planned(), METRICS, [])) is None


def test_a_host_is_quiet_only_if_what_others_used_is_known() -> None:
    assert condition(trial(0, others(None))).state is ConditionState.UNKNOWN
    assert condition(trial(0)).state is ConditionState.UNKNOWN
    # One of several trials without a look may have been any.
    assert condition(trial(0, others(0.0)), trial(1)).state is ConditionState.UNKNOWN


def test_a_trial_that_was_stopped_is_no_figure() -> None:
    for sensitivity in Sensitivity:
        stopped = trial(0, others(0.0), sensitivity, stopped_s=0.5, delivered=50.0)
        assert stopped.verdict is Verdict.DISTURBED and reason_codes(stopped) == {STOPPED}
        assert "the program did not run for 500.0 ms" in stopped.reasons[0].text
        found = condition(stopped)
        assert (found.state, found.share) == (ConditionState.STOLEN, 0.5)
        assert found.culprit == OUTSIDE_HOST and not found.is_sure
        measured = Measured(planned(), METRICS, [stopped, trial(1, others(0.0), sensitivity)])
        assert measured.values == [100.0] and measured.delivered_values == [98.0]
    # Suspended for longer than it ran: the clock of the trial stood still meanwhile.
    assert condition(trial(0, others(0.0), stopped_s=3600.0)).share == 1.0
    # A quota stops programs, too, and is counted.
    assert STOPPED not in reason_codes(trial(stopped_s=0.5, throttled_s=0.6, cpu_ratio=0.4))
    assert trial(stopped_s=None).verdict is Verdict.CLEAN, "programs of before"


def test_a_container_knows_what_was_used_outside_it_in_programs_own_code() -> None:
    """Of what waits: the kernel's own time may be that of the disk or network that is measured."""
    for user_s, verdict in ((0.9, Verdict.DISTURBED), (0.0, Verdict.CLEAN)):
        seen = others(1.0, user_s=user_s, unseen=True)
        events = (start(), end().model_copy(update={"threads": (WAITING,)}), seen)
        judged = measured_trial(bare_trial(events=events), METRICS, {}, Sensitivity.WAKING)
        assert judged.verdict is verdict
        found = condition(judged)
        if verdict is Verdict.CLEAN:
            assert found.state is ConditionState.QUIET
        else:
            assert found.share == pytest.approx(0.44)
            assert found.culprit == "processes outside this container"


def sentinel(before: float, after: float) -> Sentinel:
    """What a core that adds 4 times a cycle does beside the other threads."""
    return Sentinel(alone_before=4, all_before=before, alone_after=4, all_after=after)


def test_two_threads_on_one_core_outside_this_host() -> None:
    host, core = Sensitivity.HOST, Sensitivity.CORE
    # Memory: what lay between before and after is unknown, so the trial is disturbed; a change.
    change = trial(0, others(0.0), host, sentinel(4, 2))
    assert (change.verdict, reason_codes(change)) == (Verdict.DISTURBED, {PARTLY_SHARED_CORE})
    assert "4.0 additions per cycle alone and 4.0 beside" in change.reasons[0].text
    assert "after it 4.0 and 2.0" in change.reasons[0].text
    found = condition(change)
    assert (found.state, found.culprit) == (ConditionState.SHARED, OUTSIDE_HOST)
    assert found.share == pytest.approx(0.25) and not found.is_sure
    # Slices of a kernel on registers would differ if it had lasted.
    brief = trial(0, others(0.0), core, sentinel(2, 4))
    assert brief.verdict is Verdict.CLEAN
    assert condition(brief).state is ConditionState.QUIET
    for sensitivity in (host, core):
        both = [
            trial(n, others(0.0), sensitivity, sentinel(2, 2), rate=50.0, best=50.0)
            for n in range(3)
        ]
        assert {one.verdict for one in both} == {Verdict.CLEAN}
        found = condition(*both)
        assert found.state is ConditionState.SHARED and found.share == pytest.approx(0.5)
        # A host that is always so has no other figure, and says it; else these are left out.
        measured = Measured(planned(), METRICS, both)
        assert measured.values == [50.0] * 3
        verdict, reasons = case_verdict(measured, describe(measured.values), None)
        assert verdict is Verdict.CLEAN and [one.code for one in reasons] == [SHARED_CORE]
        own = trial(3, others(0.0), sensitivity, sentinel(4, 4))
        assert Measured(planned(), METRICS, [*both, own]).values == [100.0]
    # Nothing lost, nothing reported.
    assert condition(trial(0, others(0.0), host, sentinel(3.9, 3.2))).state is ConditionState.QUIET


def test_the_largest_share_wins_and_the_others_stand_beside_it() -> None:
    busy = trial(0, others(1.0, HOG), cpu_ratio=0.5, steal_s=0.13)
    found = condition(busy)
    assert (found.state, found.culprit, found.is_sure) == (
        ConditionState.SHARED, "stress-ng, 2 processes", True,
    )  # fmt: skip
    assert found.share == pytest.approx(0.5, abs=0.02)
    assert found.also == {ConditionState.STOLEN: pytest.approx(0.06)}
    # Over the trials of a case: half of them were quiet.
    assert condition(busy, trial(1, others(0.0))).share == pytest.approx(0.25, abs=0.02)


@pytest.mark.parametrize(
    ("one", "state", "share", "culprit"),
    [
        (trial(steal_s=0.41), ConditionState.STOLEN, 0.2, OUTSIDE_HOST),
        (
            trial(
                begun=start(placement=placement(quota_cpus=0.3)), throttled_s=1.4, cpu_ratio=0.3
            ),
            ConditionState.QUOTA, 0.7, "the CPU quota of 0.3 CPUs of this control group",
        ),
        (
            trial(0, others(0.0, clock_held_s=0.4)),
            ConditionState.THROTTLED, 0.4, "heat or power, by the CPU's own counters",
        ),
        # While the quota stopped them, others took nothing from them.
        (
            trial(
                0, others(2.0, HOG), begun=start(placement=placement(quota_cpus=0.3)),
                throttled_s=1.8, cpu_ratio=0.1,
            ),
            ConditionState.QUOTA, 0.9, "the CPU quota of 0.3 CPUs of this control group",
        ),
        # Two of our CPUs, or another guest's, on one core: only the slices tell.
        (trial(0, others(0.0), best=125.0), ConditionState.SHARED, 0.2, OUTSIDE_HOST),
        # The same with a hog that can be seen.
        (
            trial(0, others(0.9, HOG), best=200.0),
            ConditionState.SHARED, 0.5, "stress-ng, 2 processes",
        ),
        (
            trial(0, others(0.9, unseen=True), cpu_ratio=0.6),
            ConditionState.SHARED, 0.45, "processes outside this container",
        ),
        (
            trial(0, others(0.9), cpu_ratio=0.6),
            ConditionState.SHARED, 0.45, "processes that ran for a short time",
        ),
    ],
)  # fmt: skip
def test_who_took_it(one: TrialRecord, state: ConditionState, share: float, culprit: str) -> None:
    found = condition(one)
    assert (found.state, found.culprit) == (state, culprit)
    assert found.share == pytest.approx(share, abs=0.02)


def test_a_card_that_holds_its_clock_down_is_throttled() -> None:
    ended = end(100.0)
    for of_card, of_cpu, culprit in (
        (1.0, 0.4, BY_CARD),
        (0.2, 0.4, "heat or power, by the CPU's"),
    ):
        metrics = {RATE: 100.0, CARD_HELD: of_card}
        events = (
            start(),
            ended.model_copy(update={"metrics": metrics}),
            others(0.0, clock_held_s=of_cpu),
        )
        found = condition(measured_trial(bare_trial(0, events=events), METRICS, {}))
        assert found.state is ConditionState.THROTTLED
        assert found.share == max(of_card, of_cpu)
        assert found.culprit is not None and found.culprit.startswith(culprit)


def test_trials_together_tell_a_small_hog_better_than_each_alone() -> None:
    """The kernel counts in ticks, so what others used in one trial of half a second is known within
    2 % of two CPUs; in four, which err in both directions, within 1 %."""

    def meanwhile(cpu_s: float) -> list[TrialRecord]:
        hog = HOG.model_copy(update={"cpu_s": cpu_s})
        return [trial(index, others(cpu_s, hog, elapsed_s=0.5)) for index in range(4)]

    assert condition(meanwhile(0.045)[0]).state is ConditionState.QUIET
    found = condition(*meanwhile(0.045))
    assert found.state is ConditionState.SHARED and found.share == pytest.approx(0.035)
    assert found.culprit == "stress-ng, 2 processes"
    assert condition(*meanwhile(0.03)).state is ConditionState.QUIET


def test_what_was_delivered_is_known_less_where_others_took_a_share() -> None:
    """Of a guest's figures, which drift from job to job; the undisturbed figure drifts no more."""

    def half(figure: Figure | None) -> float:
        assert figure is not None and figure.interval is not None
        return math.log(figure.interval.high / figure.interval.low) / 2

    usual = GuestSpread(drift_ratio=0.05, time_drift_ratio=0.02)
    quiet, crowded = (
        Measured(
            planned(),
            METRICS,
            [trial(index, others(2 * share, HOG), rate=100.0 + index) for index in range(3)],
            usual,
        )
        for share in (0.0, 0.5)
    )
    before, after = (figures_of(one) for one in (quiet, crowded))
    assert half(before.figure) == pytest.approx(half(after.figure))
    assert before.delivered is not None and after.delivered is not None
    assert before.delivered.drift_ratio == 0.05
    # Half of the CPUs, less a part of two ticks in a second.
    assert after.delivered.drift_ratio == pytest.approx(0.1, abs=0.001)
    assert half(before.delivered) == pytest.approx(1.96 * 0.05, rel=0.01)
    assert half(after.delivered) == pytest.approx(1.96 * 0.1, rel=0.02)
    # Times drift less than rates, in this class.
    lower = (METRICS[0].model_copy(update={"direction": "lower"}), *METRICS[1:])
    of_times = Measured(planned(), lower, quiet.trials, usual)
    assert MeasuredCases([of_times]).others_of(of_times).drift_ratio == 0.02
    assert GuestSpread(drift_ratio=0.05).drift_of("lower") == 0.05


def test_slices_that_differ_are_no_figure() -> None:
    """Of kernels whose slices stand alone; memory is shared, and its slices differ anyway."""
    assert trial(best=104.0).verdict is Verdict.CLEAN
    judged = trial(best=106.0)
    assert judged.verdict is Verdict.DISTURBED and judged.reasons[-1].code == "unsteady"
    shared = measured_trial(judged.model_copy(update={"reasons": ()}), METRICS, {})
    assert shared.verdict is Verdict.CLEAN


def test_what_waits_is_disturbed_by_any_use_of_the_cpus() -> None:
    """However little it was kept waiting: a hog may even make it faster."""
    for used_s, verdict in ((0.05, Verdict.CLEAN), (0.3, Verdict.DISTURBED)):
        hog = HOG.model_copy(update={"cpu_s": used_s})
        record = bare_trial(events=(start(), end(), others(used_s, hog)))
        judged = measured_trial(record, METRICS, {}, Sensitivity.WAKING)
        assert judged.verdict is verdict
        codes = [reason.code for reason in judged.reasons]
        assert codes == ([] if verdict is Verdict.CLEAN else ["host_in_use", "taken_by"])
        assert measured_trial(record, METRICS, {}, Sensitivity.HOST).verdict is Verdict.CLEAN


def test_a_disturbed_case_has_no_undisturbed_figure() -> None:
    """What was delivered is reported all the same."""
    crowded = [trial(index, delivered=90.0 + index, best=150.0) for index in range(3)]
    made = session((planned(),), workloads={"cpu.fma": METRICS})
    (case,) = assemble(replay([made, *crowded, done()])).cases
    assert case.verdict is Verdict.DISTURBED
    assert case.undisturbed is None
    assert case.figure is not None and case.figure.value == 100.0
    assert case.delivered is not None and case.delivered.value == 91.0
    assert case.delivered_ratio == 0.91, "the first lines of a busy host do not keep quiet of it"


def test_the_share_delivered_is_the_ratio_of_the_two_figures() -> None:
    """Of all trials with a figure, whichever of them count."""

    def disturbed(index: int, rate: float, delivered: float) -> TrialRecord:
        return trial(
            index, sensitivity=Sensitivity.HOST, rate=rate, delivered=delivered, cpu_ratio=0.5
        )

    def ratio(*trials: TrialRecord) -> float | None:
        found = figures_of(Measured(planned(), METRICS, list(trials)))
        assert found.undisturbed is not None and found.undisturbed.value == 100.0
        assert found.delivered is not None
        assert found.delivered_ratio == min(1.0, found.delivered.value / found.undisturbed.value)
        return found.delivered_ratio

    clean = trial(0, delivered=96.0)
    assert ratio(clean) == 0.96
    # One disturbed trial of three, as after a late burst, and two.
    assert ratio(clean, trial(1, delivered=97.0), disturbed(2, 60, 40)) == 0.96
    assert ratio(clean, disturbed(1, 60, 57), disturbed(2, 60, 55)) == 0.57
    # The median of their shares would be 0.5, which the figures 100 and 101 do not show.
    assert ratio(clean, disturbed(1, 202, 101), disturbed(2, 202, 101)) == 1.0
    assert ratio(trial(0, delivered=103.0)) == 1.0, "more than the median slice: nothing was taken"


def test_the_share_delivered_of_a_time_is_the_inverse() -> None:
    """Less is worse for times, too."""
    time = RATE_METRIC.model_copy(update={"direction": "lower"})
    mean = MAKESPAN.model_copy(update={"name": f"{RATE}_mean"})
    metrics = (time, mean)

    def timed(time_s: float, mean_s: float) -> TwoFigures:
        ended = end(time_s).model_copy(update={"metrics": {RATE: time_s, mean.name: mean_s}})
        record = bare_trial(events=(start(), ended))
        return figures_of(Measured(planned(), metrics, [measured_trial(record, metrics, {})]))

    slowed = timed(100.0, 125.0)
    assert slowed.undisturbed is not None and slowed.delivered is not None
    assert slowed.delivered_ratio == slowed.undisturbed.value / slowed.delivered.value == 0.8
    assert timed(100.0, 99.0).delivered_ratio == 1.0


def test_a_disturbed_case_names_who_took_a_little() -> None:
    """It was no quiet host, even where each share is below what is named of other cases."""

    def little(sensitivity: Sensitivity, **changes: Any) -> TrialRecord:
        hog = HOG.model_copy(update={"cpu_s": 0.06})
        return trial(0, others(0.06, hog), sensitivity, clean_slice_ratio=0.5, **changes)

    disturbed = little(Sensitivity.HOST, steal_s=0.02)
    assert disturbed.verdict is Verdict.DISTURBED
    found = condition(disturbed)
    assert found.state is ConditionState.SHARED and found.share == pytest.approx(0.02)
    assert found.culprit == "stress-ng, 2 processes" and found.is_sure
    assert not found.also, "half a percent that was stolen is below what is named"
    most_stolen = condition(little(Sensitivity.HOST, steal_s=0.06))
    assert most_stolen.state is ConditionState.STOLEN and not most_stolen.also
    # With a figure that may be used, alone or from another trial, the same is a quiet host.
    clean = little(Sensitivity.CORE)
    assert clean.verdict is Verdict.CLEAN
    assert condition(clean).state is ConditionState.QUIET
    undisturbed = trial(1, others(0.0), Sensitivity.HOST)
    assert condition(disturbed, undisturbed).state is ConditionState.QUIET
    # Nothing is named where nothing was seen.
    unseen = trial(0, others(0.0), Sensitivity.HOST, clean_slice_ratio=0.5, cpu_ratio=1.0)
    assert unseen.verdict is Verdict.DISTURBED
    assert condition(unseen).state is ConditionState.QUIET


def first_lines(*trials: TrialRecord) -> list[str]:
    """What the terminal says of a constructed job of one case before the table of its cases."""
    made = session((planned(),), workloads={"cpu.fma": METRICS})
    stream = io.StringIO()
    show_result(assemble(replay([made, *trials, done()])), stream)
    head, *_ = re.split("\n+case +figure", stream.getvalue())
    return " ".join(head.split()).split(" 1. ")[1:]


def test_the_first_lines_of_four_hosts() -> None:
    assert not first_lines(*(trial(index, others(0.01)) for index in range(3)))
    hog = others(1.0, HOG)
    (busy,) = first_lines(*(trial(i, hog, delivered=49.0, cpu_ratio=0.5) for i in range(3)))
    assert "Other processes took up to 50.0 % of the CPU time: stress-ng, 2 processes." in busy
    less = "1 case delivered less than its undisturbed figure"
    assert f"{less}: cpu.fma 2 threads 49.0 % of it." in busy
    assert "100.0 op/s ±0.00% – 49.0% shared 50.0% 1 clean" in busy
    begun = start(placement=placement(quota_cpus=0.6))
    quota: dict[str, Any] = {"begun": begun, "throttled_s": 1.4, "cpu_ratio": 0.3}
    (held,) = first_lines(*(trial(i, delivered=30.0, **quota) for i in range(3)))
    assert held.startswith(
        "The CPU quota of 0.6 CPUs of this control group held back up to 70.0 % of the CPU time. "
        "1 case delivered less than its undisturbed figure: cpu.fma 2 threads 30.0 % of it."
    )
    assert "2. " not in held
    (alone,) = first_lines(*(trial(index, others(0.01), delivered=90.0) for index in range(3)))
    assert alone.startswith("Less was delivered than the hardware can do; the cause is unknown.")
    hot = others(0.0, clock_held_s=0.25)
    (throttled,) = first_lines(*(trial(i, hot) for i in range(3)))
    assert throttled.startswith(
        "Heat or power held the clock down for up to 25.0 % of the time. Seen in 1 case, most in "
        "cpu.fma 2 threads (25.0 % of its time)."
    )
    both = others(1.0, HOG, clock_held_s=0.25)
    (first,) = first_lines(trial(0, both, delivered=49.0, cpu_ratio=0.5))
    assert "2. Heat or power held the clock down." in first
