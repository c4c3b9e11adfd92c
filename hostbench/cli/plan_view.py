"""A plan for people and for programs: what would be measured, and how long it takes."""

from collections.abc import Sequence
from typing import Any, TextIO

from rich.table import Table

from hostbench.base.units import duration, plural
from hostbench.cli.render_list import console_for
from hostbench.model.result import PlannedCase
from hostbench.plan.estimate import Plan
from hostbench.plan.words import estimate_sentence

GAP = (0, 1, 0, 0)


def show_plan(plan: Plan, stream: TextIO) -> None:
    """Print one line for each entry of the suite: its cases, their trials and the time of all."""
    console = console_for(stream)
    table = Table(box=None, padding=GAP, pad_edge=False)
    table.add_column("cases of", overflow="fold")
    for title in ("cases", "trials", "time"):
        table.add_column(title, justify="right", no_wrap=True)
    for cases in plan.blocks:
        low, high = _trials(cases)
        time_taken = " to ".join(dict.fromkeys(duration(time_s) for time_s in _times(plan, cases)))
        if any(plan.trial_time_s(case) is None for case in cases):
            time_taken += " and more"
        trials = str(low) if low == high else f"{low} to {high}"
        table.add_row(_title(cases), str(len(cases)), trials, time_taken)
    console.print(table)
    console.print(f"{plural(len(plan.cases), 'case')}, {estimate_sentence(plan.estimate())}")


def plan_tree(plan: Plan) -> dict[str, Any]:
    """Return the same as JSON: seconds; null if unknown."""
    estimate = plan.estimate()
    return {
        "suite": plan.suite.name,
        "scale": plan.suite.scale,
        "estimate": {
            "low_s": estimate.low_s,
            "high_s": estimate.high_s,
            "complete": estimate.complete,
        },
        "cases": [_case_tree(plan, case) for case in plan.cases],
    }


def _case_tree(plan: Plan, case: PlannedCase) -> dict[str, Any]:
    low_s, high_s = plan.case_times(case)
    return {
        "case": case.case,
        "workload": case.workload,
        "label": case.label,
        "block": case.block,
        "params": case.call,
        "skip": case.skip,
        "trials": [case.repeats.min_trials, case.repeats.max_trials],
        "peers": list(case.peers),
        "trial_time_s": plan.trial_time_s(case),
        "low_s": low_s,
        "high_s": high_s,
    }


def _title(cases: Sequence[PlannedCase]) -> str:
    """Return the workload, and the labels of its first and its last case."""
    first, last = cases[0], cases[-1]
    return first.title if first is last else f"{first.title} … {last.label}"


def _trials(cases: Sequence[PlannedCase]) -> tuple[int, int]:
    return (
        sum(case.repeats.min_trials for case in cases),
        sum(case.repeats.max_trials for case in cases),
    )


def _times(plan: Plan, cases: Sequence[PlannedCase]) -> tuple[float, float]:
    times = [plan.case_times(case) for case in cases]
    return sum(low for low, _ in times), sum(high for _, high in times)
