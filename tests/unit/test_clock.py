"""Clock and work per cycle, distinguished."""

import io
from collections.abc import Iterator

import pytest

from hostbench.cli.render import show_result
from hostbench.judge.clock import (
    CLOCK,
    clock_words,
    share_of_limit,
    slow_clock_sentence,
    with_clocks,
)
from hostbench.model.host import HostInventory
from hostbench.model.result import CaseResult, ResultDocument
from tests.unit.report_documents import CLOCK_HERTZ, full_run


def limited(document: ResultDocument) -> Iterator[CaseResult]:
    """The cases whose limit rests on a clock."""
    for case in document.cases:
        metric = case.metrics.get(case.primary)
        if metric and metric.limit and any(one.name == CLOCK for one in metric.limit.factors):
            yield case


def slowed(case: CaseResult, ratio: float) -> CaseResult:
    """The case, had the core run at this share of its clock: figure and limit fall alike."""
    metric = case.metrics[case.primary]
    assert metric.limit is not None and metric.limit.value is not None
    factors = tuple(
        one.model_copy(update={"value": one.value * ratio}) if one.name == CLOCK else one
        for one in metric.limit.factors
    )
    limit = metric.limit.model_copy(
        update={"factors": factors, "value": metric.limit.value * ratio}
    )
    metrics = case.metrics | {case.primary: metric.model_copy(update={"limit": limit})}
    return case.model_copy(update={"metrics": metrics, "clock": None})


def stating(document: ResultDocument, max_hertz: float | None) -> HostInventory:
    """The document's host, had its kernel stated this highest clock."""
    frequency = document.host.frequency.model_copy(update={"max_hertz": max_hertz})
    return document.host.model_copy(update={"frequency": frequency})


def test_a_core_at_a_lower_clock_does_not_reach_all_of_the_limit() -> None:
    document = full_run()
    one, *others = limited(document)
    slow, *rest = with_clocks((slowed(one, 0.9), *others), stating(document, None))
    own = one.metrics[one.primary].efficiency
    assert slow.clock is not None and own is not None
    assert slow.clock.ratio == pytest.approx(0.9)
    assert slow.clock.expected_hertz == pytest.approx(CLOCK_HERTZ)
    assert slow.clock.limit == pytest.approx(one.metrics[one.primary].limit.value)  # type: ignore[union-attr]
    assert share_of_limit(slow) == pytest.approx(0.9 * own)
    assert (clock_words(slow) or "").startswith("clock 90.0 %, work per cycle 9")
    assert (slow_clock_sentence([slow, *rest]) or "").startswith("1 case ran below the expected ")
    for case in rest:
        assert case.clock is not None and case.clock.ratio == pytest.approx(1)
        assert clock_words(case) is None
        assert share_of_limit(case) == case.metrics[case.primary].efficiency
    assert slow_clock_sentence(rest) is None


def test_the_kernel_may_state_a_higher_clock_than_any_case_had() -> None:
    document = full_run()
    host = stating(document, 2 * CLOCK_HERTZ)
    cases = with_clocks(document.cases, host)
    found = [case for case in cases if case.clock is not None]
    assert [case.case for case in found] == [case.case for case in limited(document)]
    assert all(case.clock.ratio == pytest.approx(0.5) for case in found if case.clock)
    assert "cpuinfo_max_freq" in (slow_clock_sentence(cases) or "")
    stream = io.StringIO()
    show_result(document.model_copy(update={"cases": cases}), stream)
    assert ", clock 50.0 %, work per cycle" in " ".join(stream.getvalue().split())


def test_efficiency_cores_are_not_held_against_the_clock_of_the_others() -> None:
    document = full_run()
    one, *others = limited(document)
    plain = stating(document, 2 * CLOCK_HERTZ)
    hybrid = plain.model_copy(
        update={"cpu": plain.cpu.model_copy(update={"efficiency_cpus": (8, 9)})}
    )
    start = one.trials[0].start
    assert start is not None
    placed = start.placement.model_copy(update={"cpus": (8, 9)})
    trial = one.trials[0].model_copy(
        update={"events": (start.model_copy(update={"placement": placed}),)}
    )
    efficient = slowed(one, 0.6).model_copy(update={"trials": (trial,)})
    found, *rest = with_clocks((efficient, *others), hybrid)
    assert found.clock is not None and found.clock.ratio == 1
    assert found.clock.expected_hertz == pytest.approx(0.6 * CLOCK_HERTZ)
    assert all(case.clock.ratio == pytest.approx(0.5) for case in rest if case.clock)


def test_a_kernel_that_states_less_than_was_measured_is_not_believed() -> None:
    document = full_run()
    cases = with_clocks(document.cases, stating(document, CLOCK_HERTZ / 2))
    assert slow_clock_sentence(cases) is None


def test_without_a_clock_nothing_is_reported() -> None:
    document = full_run()
    known = {case.case for case in limited(document)}
    others = [case for case in document.cases if case.case not in known]
    cases = with_clocks(others, stating(document, CLOCK_HERTZ))
    assert others and all(case.clock is None for case in cases)
    assert with_clocks((), document.host) == ()
