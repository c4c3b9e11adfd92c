"""What the CPUs counted themselves beside the figures: cycles, instructions, energy."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from statistics import median

from hostbench.base.units import human, percent
from hostbench.model.events import EndEvent
from hostbench.model.registry import subsystems
from hostbench.model.result import CaseResult, ResultDocument, TrialRecord
from hostbench.report.content import Bullets, Column, Paragraph, RowGroup, Section, Table, Text
from hostbench.report.figures import NOTHING, by_workload, label, primary
from hostbench.report.subsystem import HasReport

SUBSYSTEMS = ("cpu", "mem")
_COLUMNS = (
    Column("case"),
    Column("instructions per cycle", figures=True),
    Column("clock, counted", figures=True),
    Column("of the clock measured", figures=True),
    Column("instructions, of the loop's", figures=True),
    Column("packages", figures=True),
    Column("memory", figures=True),
    Column("energy", figures=True),
)
_INTRODUCTION = Paragraph(
    "Medians over the trials. The CPU counted cycles and instructions of the measured threads in "
    "user mode. The clock, counted, is cycles per second of their CPU time; it should be the clock "
    "that hostbench measures with a chain of additions. Instructions, of the loop's: the counted "
    "ones over those that the loop has for the operations that hostbench counted; a little over "
    "100 %, as loops count their passes and trials read clocks. Packages and memory took their "
    "power for everything that ran on the host; the energy is that of the packages for each unit "
    "of work."
)
# Reading the counters and the clocks takes less.
_TOLERANCE = 0.02


def counted_section(document: ResultDocument) -> Section | None:
    """Return the section, or None for a job without trials of CPU and memory that say whether
    something was counted."""
    cases = [
        case
        for case in document.cases
        if case.workload.partition(".")[0] in SUBSYSTEMS and _ends(case)
    ]
    checked = {case.case: _Checked.of(case, document) for case in cases if _is_counted(case)}
    groups = tuple(
        RowGroup(workload, tuple(_row(case, checked[case.case]) for case in found))
        for workload, found in by_workload([case for case in cases if _is_counted(case)]).items()
    )
    missing = tuple(Paragraph(f"Not counted: {reason}.") for reason in _reasons(cases))
    table = (_INTRODUCTION, Table("What the CPUs counted", _COLUMNS, groups)) if groups else ()
    if not table and not missing:
        return None
    doubts = tuple(
        doubt
        for case in cases
        if case.case in checked
        for doubt in checked[case.case].doubts(case.title)
    )
    bullets = (Bullets(doubts),) if doubts else ()
    blocks = (*table, *bullets, *missing)
    return Section("counted", "Counted by the CPUs", blocks, in_brief=False)


@dataclass(frozen=True)
class _Checked:
    """What a case's CPUs counted, over what hostbench measured and counted; None: unknown."""

    clock: float | None
    instructions: float | None

    @classmethod
    def of(cls, case: CaseResult, document: ResultDocument) -> "_Checked":
        known = subsystems().get(case.workload.partition(".")[0])
        least: float | None = None
        if known and isinstance(known, HasReport):
            least = known.least_instructions(case, document)
        return cls(
            clock=_median(case, _clock_ratio),
            instructions=_median(case, lambda _, end: _instructions_ratio(end, least)),
        )

    def doubts(self, title: str) -> Iterator[str]:
        """Yield what cannot be: less was counted than the work takes, or a clock that the core did
        not have. The counted clock may be lower, since the kernel's own work is not counted."""
        if self.instructions is not None and self.instructions < 1 - _TOLERANCE:
            yield (
                f"{title}: the CPUs counted {percent(self.instructions)} of the instructions that "
                "its operations take. Either operations were left out, or the counters are wrong, "
                "as when a hypervisor or another program uses them: do not trust both."
            )
        if self.clock is not None and self.clock > 1 + _TOLERANCE:
            yield (
                f"{title}: the counted clock is {percent(self.clock)} of the measured one. The "
                "chain of additions was held up, or the counters are wrong: do not trust shares of "
                "a limit of this case."
            )


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


def _row(case: CaseResult, checked: _Checked) -> tuple[Text, ...]:
    metric = primary(case)
    rate, _, second = (metric.unit if metric else "").partition("/")
    joules = _median(case, _joules_per_unit) if second == "s" else None
    return (
        label(case),
        _fixed(_median(case, _instructions_per_cycle)),
        human(_median(case, _clock), "Hz"),
        percent(checked.clock),
        percent(checked.instructions),
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


def _instructions_ratio(end: EndEvent, least: float | None) -> float | None:
    operations = end.metrics.get("work_operations")
    if end.counted is None or not least or not operations:
        return None
    return end.counted.instructions / (least * operations)


def _watts(end: EndEvent, name: str) -> float | None:
    joules = getattr(end.energy, name) if end.energy else None
    return joules / end.elapsed_s if joules is not None and end.elapsed_s else None


def _joules_per_unit(trial: TrialRecord, end: EndEvent) -> float | None:
    watts = _watts(end, "package_joules")
    return watts / trial.value if watts is not None and trial.value else None
