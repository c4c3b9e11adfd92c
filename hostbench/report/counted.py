"""What the CPUs counted themselves beside the figures: cycles, instructions, energy."""

from collections.abc import Callable, Sequence
from statistics import median

from hostbench.base.units import human, percent
from hostbench.model.events import EndEvent
from hostbench.model.result import CaseResult, ResultDocument, TrialRecord
from hostbench.report.content import Column, Paragraph, RowGroup, Section, Table, Text
from hostbench.report.figures import NOTHING, by_workload, label, primary

SUBSYSTEMS = ("cpu", "mem")
_COLUMNS = (
    Column("case"),
    Column("instructions per cycle", figures=True),
    Column("clock, counted", figures=True),
    Column("of the clock measured", figures=True),
    Column("packages", figures=True),
    Column("memory", figures=True),
    Column("energy", figures=True),
)
_INTRODUCTION = Paragraph(
    "Medians over the trials. The CPU counted cycles and instructions of the measured threads in "
    "user mode. The clock, counted, is cycles per second of their CPU time; it should be the clock "
    "that hostbench measures with a chain of additions. Packages and memory took their power for "
    "everything that ran on the host; the energy is that of the packages for each unit of work."
)


def counted_section(document: ResultDocument) -> Section | None:
    """Return the section, or None for a job without trials of CPU and memory that say whether
    something was counted."""
    cases = [
        case
        for case in document.cases
        if case.workload.partition(".")[0] in SUBSYSTEMS and _ends(case)
    ]
    groups = tuple(
        RowGroup(workload, tuple(_row(case) for case in found))
        for workload, found in by_workload([case for case in cases if _is_counted(case)]).items()
    )
    missing = tuple(Paragraph(f"Not counted: {reason}.") for reason in _reasons(cases))
    table = (_INTRODUCTION, Table("What the CPUs counted", _COLUMNS, groups)) if groups else ()
    if not table and not missing:
        return None
    return Section("counted", "Counted by the CPUs", (*table, *missing), in_brief=False)


def _ends(case: CaseResult) -> list[tuple[TrialRecord, EndEvent]]:
    return [(trial, trial.end) for trial in case.trials if trial.end is not None]


def _is_counted(case: CaseResult) -> bool:
    return any(end.counted or end.energy for _, end in _ends(case))


def _reasons(cases: Sequence[CaseResult]) -> list[str]:
    """Return each reason once."""
    ends = [end for case in cases for _, end in _ends(case)]
    return list(
        dict.fromkeys(
            end.reasons[name]
            for name in ("counted", "energy", "energy.memory_joules")
            for end in ends
            if name in end.reasons
        )
    )


def _row(case: CaseResult) -> tuple[Text, ...]:
    metric = primary(case)
    rate, _, second = (metric.unit if metric else "").partition("/")
    joules = _median(case, _joules_per_unit) if second == "s" else None
    return (
        label(case),
        _fixed(_median(case, _instructions_per_cycle)),
        human(_median(case, _clock), "Hz"),
        percent(_median(case, _clock_ratio)),
        human(_median(case, lambda trial, end: _watts(end, "package_joules")), "W"),
        human(_median(case, lambda trial, end: _watts(end, "memory_joules")), "W"),
        NOTHING if joules is None else f"{human(joules, 'J')} per {rate}",
    )


def _median(
    case: CaseResult, value: Callable[[TrialRecord, EndEvent], float | None]
) -> float | None:
    found = [one for trial, end in _ends(case) if (one := value(trial, end)) is not None]
    return median(found) if found else None


def _fixed(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _instructions_per_cycle(_: TrialRecord, end: EndEvent) -> float | None:
    counted = end.counted
    return counted.instructions / counted.cycles if counted and counted.cycles else None


def _clock(_: TrialRecord, end: EndEvent) -> float | None:
    counted = end.counted
    return counted.cycles / counted.cpu_s if counted and counted.cpu_s else None


def _clock_ratio(trial: TrialRecord, end: EndEvent) -> float | None:
    clock, measured = _clock(trial, end), end.metrics.get("clock_hertz")
    return clock / measured if clock and measured else None


def _watts(end: EndEvent, name: str) -> float | None:
    joules = getattr(end.energy, name) if end.energy else None
    return joules / end.elapsed_s if joules is not None and end.elapsed_s else None


def _joules_per_unit(trial: TrialRecord, end: EndEvent) -> float | None:
    watts = _watts(end, "package_joules")
    return watts / trial.value if watts is not None and trial.value else None
