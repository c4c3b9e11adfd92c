"""What makes a trial or a case clean, noisy, disturbed, invalid, skipped or failed."""

from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.judge.figure import Measured
from hostbench.judge.statistics import describe
from hostbench.judge.trial import failed_trial, measured_trial, skipped_trial
from hostbench.judge.verdict import case_verdict, noisy_reasons
from hostbench.model.events import WarningEvent
from hostbench.model.limit import Limit
from hostbench.model.result import (
    IdleRecord,
    IdleWindow,
    Reason,
    TrialRecord,
    Verdict,
)
from hostbench.model.subsystem import Sensitivity
from hostbench.model.suite import Repeats
from hostbench.model.trial import TrialFailed
from tests.unit.records import (
    RATE,
    RATE_METRIC,
    bare_trial,
    end,
    limit,
    placement,
    planned,
    skipped,
    start,
)


def trial(
    value: float = 100.0,
    index: int = 0,
    limits: dict[str, Limit] | None = None,
    shared: bool = False,
    **disturbance: Any,
) -> TrialRecord:
    begun = start(placement=placement(oversubscribed=shared, cpus=(0, 1) * (4 if shared else 1)))
    record = bare_trial(index, events=(begun, end(value, **disturbance)))
    return measured_trial(record, (RATE_METRIC,), limits or {})


def verdict_of(
    trials: list[TrialRecord],
    idle: IdleRecord | None = None,
    usual_half_width: float = 0.0,
    **repeats: Any,
) -> tuple[Verdict, list[str]]:
    case = planned(repeats=Repeats(**({"min_trials": 3, "max_trials": 5} | repeats)))
    measured = Measured(case, (RATE_METRIC,), trials)
    figures = describe(measured.values) if measured.values else None
    verdict, reasons = case_verdict(measured, figures, idle, usual_half_width)
    return verdict, [reason.code for reason in reasons]


def several(values: list[float], **changes: Any) -> list[TrialRecord]:
    return [trial(value, index, **changes) for index, value in enumerate(values)]


# ---- trials ----


@pytest.mark.parametrize(
    ("seen", "code"),
    [
        ({"clean_slice_ratio": 0.79}, "dirty_slices"),
        ({"cpu_ratio": 0.96}, "cpu_taken_away"),
        ({"steal_s": 0.04}, "stolen"),
        ({"throttled_s": 0.001}, "throttled"),
    ],
)
def test_each_sign_alone_makes_a_trial_disturbed(seen: dict[str, Any], code: str) -> None:
    judged = trial(**seen)
    assert judged.verdict is Verdict.DISTURBED
    assert [reason.code for reason in judged.reasons] == [code]


@pytest.mark.parametrize(
    "seen",
    [
        {},
        {"clean_slice_ratio": 0.80},
        {"cpu_ratio": 0.97},
        {"steal_s": 0.03},  # two CPUs, one second: the 1 % and the tick that are tolerated
        {"involuntary_switches": 500, "wait_s": 0.4, "psi_cpu_some_s": 0.4},
        {"clean_slice_ratio": None, "cpu_ratio": None, "steal_s": None, "throttled_s": None},
    ],
)
def test_a_quiet_trial_is_clean(seen: dict[str, Any]) -> None:
    assert trial(**seen).verdict is Verdict.CLEAN


def test_threads_that_share_a_cpu_disturb_one_another_as_requested() -> None:
    assert trial(shared=True, clean_slice_ratio=0.0, cpu_ratio=0.25).verdict is Verdict.CLEAN
    assert trial(shared=True, cpu_ratio=0.20).verdict is Verdict.DISTURBED
    assert trial(shared=True, cpu_ratio=0.25, steal_s=0.5).verdict is Verdict.DISTURBED
    assert trial(shared=True, cpu_ratio=0.25, throttled_s=0.5).verdict is Verdict.DISTURBED


@pytest.mark.parametrize(
    ("value", "known", "verdict"),
    [
        (102.0, limit(100.0), Verdict.CLEAN),
        (102.1, limit(100.0), Verdict.INVALID),
        (110.0, limit(100.0, tolerance=0.1), Verdict.CLEAN),
        (1e30, limit(None), Verdict.CLEAN),
    ],
)
def test_a_figure_above_its_limit_is_invalid(value: float, known: Limit, verdict: Verdict) -> None:
    assert trial(value, limits={RATE: known}).verdict is verdict


def test_invalid_says_by_how_much() -> None:
    (reason,) = trial(150e9, limits={RATE: limit(100e9)}).reasons
    assert reason.code == "above_limit"
    text = reason.text
    assert "150.0 Gop/s" in text and "150.0 %" in text and "100.0 Gop/s" in text


def test_a_disturbed_trial_proves_no_limit_wrong() -> None:
    for value in (104.0, 150.0):
        judged = trial(value, limits={RATE: limit(100.0)}, cpu_ratio=0.5)
        assert judged.verdict is Verdict.DISTURBED
        assert [reason.code for reason in judged.reasons] == ["above_limit", "cpu_taken_away"]


def test_a_limit_of_another_metric_counts_too() -> None:
    clock = Limit(value=2e9, unit="Hz")
    assert trial(limits={"clock_hertz": clock}).verdict is Verdict.INVALID


def test_efficiency_is_the_figure_over_its_own_limit() -> None:
    assert trial(98.0, limits={RATE: limit(100.0)}).efficiency == pytest.approx(0.98)
    assert trial(98.0, limits={RATE: limit(None)}).efficiency is None
    assert trial(98.0).efficiency is None


@pytest.mark.parametrize(
    ("value", "efficiency", "verdict"),
    [
        (125.0, 0.8, Verdict.CLEAN),
        (99.0, 100 / 99, Verdict.CLEAN),
        (97.0, 100 / 97, Verdict.INVALID),
    ],
)
def test_a_time_below_its_limit_is_invalid(
    value: float, efficiency: float, verdict: Verdict
) -> None:
    time = RATE_METRIC.model_copy(update={"unit": "s", "direction": "lower"})
    record = bare_trial(0, events=(start(), end(value)))
    judged = measured_trial(record, (time,), {RATE: Limit(value=100.0, unit="s")})
    assert judged.verdict is verdict
    assert judged.efficiency == pytest.approx(efficiency)


# ---- cases ----


def test_clean() -> None:
    assert verdict_of(several([100.0, 100.1, 99.9])) == (Verdict.CLEAN, [])


def test_noisy_when_the_interval_stays_wide() -> None:
    assert verdict_of(several([97.0, 100.0, 103.0])) == (Verdict.NOISY, ["wide_interval"])
    # Half the interval is 7 %: more or less than is usual for such figures on such a host.
    assert verdict_of(several([97.0, 100.0, 103.0]), usual_half_width=0.1) == (Verdict.CLEAN, [])
    assert verdict_of(several([97.0, 100.0, 103.0]), usual_half_width=0.05)[0] is Verdict.NOISY
    far_apart = several([1.0, 100.0, 10000.0])
    (reason,) = noisy_reasons(planned(), describe([one.value or 0.0 for one in far_apart]), 0.0)
    assert "the figure is not known within ± 100 % after 3 trials" in reason.text


def test_noisy_when_unstable() -> None:
    values = [100.0] * 20 + [160.0]
    verdict, codes = verdict_of(several(values), max_trials=21)
    assert (verdict, codes) == (Verdict.NOISY, ["wide_interval", "outliers", "unstable"])


def test_disturbed_trials_are_left_out_when_enough_others_are_there() -> None:
    trials = several([100.0, 100.1, 99.9])
    trials += [trial(50.0, index, cpu_ratio=0.5) for index in (3, 4)]
    assert verdict_of(trials) == (Verdict.CLEAN, ["disturbed_trials_left_out"])


def test_disturbed_when_no_undisturbed_figure_could_be_had() -> None:
    crowded = [trial(50.0 + index, index, cpu_ratio=0.5) for index in range(3)]
    assert verdict_of(crowded) == (Verdict.DISTURBED, ["cpu_taken_away", "wide_interval"])
    alone = [trial(100.0, 3), *crowded]
    assert verdict_of(alone) == (Verdict.CLEAN, ["disturbed_trials_left_out", "single_trial"])


def test_slices_that_stand_alone_tell_the_figure_of_a_crowded_trial() -> None:
    """Where nothing but the core is needed; and a clock of other moments proves nothing."""
    events = (start(), end(100.0, cpu_ratio=0.3, clean_slice_ratio=0.2))
    for basis, verdict in (("clean_slices", Verdict.CLEAN), ("whole_run", Verdict.DISTURBED)):
        ended = events[1].model_copy(update={"basis": basis})
        judged = measured_trial(
            bare_trial(events=(events[0], ended)),
            (RATE_METRIC,),
            {RATE: limit(50.0)},
            sensitivity=Sensitivity.CORE,
        )
        assert judged.verdict is verdict
        assert {"dirty_slices", "cpu_taken_away"} <= {reason.code for reason in judged.reasons}


def test_invalid_when_a_trial_that_counts_is() -> None:
    trials = [*several([100.0, 100.1]), trial(150.0, 2, limits={RATE: limit(100.0)})]
    verdict, codes = verdict_of(trials)
    assert verdict is Verdict.INVALID
    assert codes[0] == "above_limit"


def test_an_invalid_trial_that_was_disturbed_and_left_out_does_not_decide() -> None:
    odd = trial(150.0, 3, limits={RATE: limit(100.0)}, cpu_ratio=0.5)
    verdict, codes = verdict_of([*several([100.0, 100.1, 99.9]), odd])
    assert (verdict, codes) == (Verdict.CLEAN, ["disturbed_trials_left_out"])


def contaminated(index: int = 0, **disturbance: Any) -> TrialRecord:
    warning = WarningEvent(
        event="warning", code="cache_contaminated", message="12 % of the bytes came from the device"
    )
    events = (start(), warning, end(100.0, **disturbance))
    return measured_trial(bare_trial(index, events=events), (RATE_METRIC,), {})


def test_a_figure_of_the_page_cache_is_invalid_by_the_programs_evidence() -> None:
    judged = contaminated()
    assert judged.verdict is Verdict.INVALID
    assert [(one.code, one.text) for one in judged.reasons] == [
        ("cache_contaminated", "12 % of the bytes came from the device")
    ]
    assert contaminated(cpu_ratio=0.5).verdict is Verdict.INVALID, "no disturbance explains it"
    verdict, codes = verdict_of([*several([100.0, 100.1]), contaminated(2)])
    assert (verdict, codes) == (Verdict.INVALID, ["cache_contaminated"]), "reported once"


@pytest.mark.parametrize("code", ["ecc", "xid"])
def test_a_card_that_had_an_error_makes_its_trial_invalid(code: str) -> None:
    warning = WarningEvent(event="warning", code=code, message="3 ECC errors since it began")
    judged = measured_trial(
        bare_trial(2, events=(start(), warning, end(100.0))), (RATE_METRIC,), {}
    )
    assert judged.verdict is Verdict.INVALID
    assert verdict_of([*several([100.0, 100.1]), judged]) == (Verdict.INVALID, [code])


def through_page_cache(index: int, mode: str, *codes: str) -> TrialRecord:
    warnings = [
        WarningEvent(event="warning", code=code, message="the page cache's")
        for code in ("page_cache_measured", *codes)
    ]
    begun = start(params={"cache_mode": mode})
    events = (*warnings, begun, end(100.0 + index / 10))
    return measured_trial(bare_trial(index, events=events), (RATE_METRIC,), {})


@pytest.mark.parametrize(
    ("mode", "codes", "expected"),
    [
        ("direct", (), Verdict.INVALID),
        ("direct+dsync", (), Verdict.INVALID),
        # Requested as direct, and the file system cannot.
        ("buffered", ("direct_unavailable",), Verdict.INVALID),
        ("buffered", (), Verdict.CLEAN),
        ("buffered+fsync_end", (), Verdict.CLEAN),
    ],
)
def test_the_page_cache_where_the_disk_was_requested(
    mode: str, codes: tuple[str, ...], expected: Verdict
) -> None:
    trials = [through_page_cache(index, mode, *codes) for index in range(3)]
    assert {one.verdict for one in trials} == {expected}
    verdict, reasons = verdict_of(trials)
    assert verdict is expected
    assert reasons.count("page_cache_measured") == 1, "once, as the verdict or as a warning"


def test_invalid_for_two_reasons() -> None:
    above = trial(150.0, 1, limits={RATE: limit(100.0)})
    verdict, codes = verdict_of([contaminated(), above, trial(100.0, 2)])
    assert verdict is Verdict.INVALID
    assert codes[:2] == ["above_limit", "cache_contaminated"]


def test_skipped_and_failed_carry_the_programs_message() -> None:
    judged = skipped_trial(skipped("neon needs an aarch64 CPU"))
    assert judged.verdict is Verdict.SKIPPED
    assert verdict_of([judged]) == (Verdict.SKIPPED, ["unsupported"])
    failure = TrialFailed("verification", "lane 3 is 1.5, expected 1.25", ExitCode.INVALID)
    failed = failed_trial(bare_trial(), failure)
    assert failed.failure is not None and failed.failure.exit_code == ExitCode.INVALID
    assert verdict_of([*several([100.0]), failed]) == (Verdict.FAILED, ["verification"])


def test_one_trial_says_that_its_spread_is_unknown() -> None:
    assert verdict_of(several([100.0]), min_trials=1) == (Verdict.CLEAN, ["single_trial"])


def test_the_gates_flag_is_shown_and_does_not_decide() -> None:
    window = IdleWindow(
        seconds=1.0,
        busy_ratio=0.5,
        steal_ratio=0.0,
        busiest_cpu_ratio=0.9,
        psi_cpu_ratio=None,
        reasons=(Reason(code="busy", text="its CPUs were busy for 50.0 % of the time"),),
    )
    idle = IdleRecord(
        time_unix_s=1.8e9,
        cases=("aaaa",),
        policy="flag",
        idle=False,
        waited_s=10.0,
        window=window,
    )
    assert verdict_of(several([100.0, 100.1, 99.9]), idle) == (Verdict.CLEAN, ["host_not_idle"])


def test_a_kernel_that_tells_nothing_is_reported() -> None:
    trials = several([100.0, 100.1, 99.9], clean_slice_ratio=None, cpu_ratio=None)
    assert verdict_of(trials) == (Verdict.CLEAN, ["disturbance_unknown"])


def test_waiting_threads_that_share_a_cpu_tell_nothing_of_others() -> None:
    why = "threads share a CPU and wait for one another"
    closing = end(100.0, clean_slice_ratio=None, cpu_ratio=None).model_copy(
        update={"reasons": {"disturbance.cpu_ratio": why}}
    )
    begun = start(placement=placement(oversubscribed=True, cpus=(0, 1) * 4))
    trials = [
        measured_trial(bare_trial(index, events=(begun, closing)), (RATE_METRIC,), {})
        for index in range(3)
    ]
    verdict, reasons = case_verdict(
        Measured(planned(), (RATE_METRIC,), trials), describe([100.0, 100.0, 100.0]), None
    )
    assert verdict is Verdict.CLEAN
    assert [reason.code for reason in reasons] == ["disturbance_unknown"]
    assert reasons[0].text.endswith(why)


def test_what_the_program_warns_of_is_reported_once() -> None:
    warning = WarningEvent(event="warning", code="oversubscribed", message="8 threads, 2 CPUs")
    trials = [
        one.model_copy(update={"events": (start(), warning, *one.events[1:])})
        for one in several([100.0, 100.1, 99.9], shared=True)
    ]
    assert verdict_of(trials) == (Verdict.CLEAN, ["oversubscribed"])
