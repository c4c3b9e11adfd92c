"""Every trial, and the command that repeats its case."""

import shlex
from collections.abc import Iterator, Sequence

from hostbench.base.units import human, percent, plural
from hostbench.model.result import CaseResult, ResultDocument, TrialRecord
from hostbench.report.content import (
    Block,
    Code,
    Column,
    Fold,
    Paragraph,
    RowGroup,
    Section,
    Strong,
    Table,
    Text,
)
from hostbench.report.figures import NOTHING, peer_name, primary
from hostbench.report.summary import utc
from hostbench.run.local import command_line

# A page must open at once; the document has all trials.
TRIALS_MOST = 5000
_COLUMNS = (
    Column("trial", figures=True),
    Column("began (UTC)", figures=True),
    Column("took", figures=True),
    Column("figure", figures=True),
    Column("of limit", figures=True),
    Column("clock", figures=True),
    Column("clean slices", figures=True),
    Column("CPU got", figures=True),
    Column("stolen", figures=True),
    Column("verdict"),
    Column("counts"),
)


def raw_section(document: ResultDocument, source: str) -> Section:
    """Return the section. `source` is the file with the full data."""
    groups = tuple(_groups(document))
    trials = sum(len(case.trials) for case in document.cases)
    shown = sum(len(group.rows) for group in groups)
    left = f" The first {shown} are shown." if shown < trials else ""
    blocks: tuple[Block, ...] = (
        Paragraph(
            (
                "This page was generated from ",
                Code(f"{document.job.id}/{source}"),
                ", which contains every trial with its raw events. Generate it again with ",
                Code(f"hostbench report {document.job.id}"),
                ". The same as CSV: ",
                Code(f"hostbench show {document.job.id} --csv"),
                "; as JSON: ",
                Code(f"hostbench show {document.job.id} --json"),
                ".",
            )
        ),
        Fold(
            f"All trials and the commands that repeat them ({plural(trials, 'trial')}).{left}",
            (Table("Every trial", _COLUMNS, groups),),
        ),
    )
    return Section("raw", "Raw figures", blocks, in_brief=False)


def _groups(document: ResultDocument) -> Iterator[RowGroup]:
    shown = 0
    for case in document.cases:
        for group in _groups_of(case, document):
            if shown + len(group.rows) > TRIALS_MOST:
                return
            shown += len(group.rows)
            yield group


def _groups_of(case: CaseResult, document: ResultDocument) -> Iterator[RowGroup]:
    """Yield the case's own trials, then those of its peers."""
    program = next(
        (p.name for p in document.programs if p.subsystem == case.workload.partition(".")[0]), "?"
    )
    command = reproduction(case, program)
    title = (Strong(case.title), f", case {case.case}: ", Code(command))
    yield RowGroup(title, tuple(_row(t, _unit(case), case.counted) for t in case.trials))
    for peer in case.peers:
        if peer.trials:
            title = (
                Strong(f"{case.title}: {peer_name(peer)}"),
                ": ",
                Code(shlex.join(peer.command)),
            )
            yield RowGroup(title, tuple(_row(trial, peer.unit, None) for trial in peer.trials))


def reproduction(case: CaseResult, program: str) -> str:
    """Return the command that runs one trial of the case, from a checkout."""
    given = {name: case.params[name] for name in case.given}
    return shlex.join([f"build/release/{program}", *command_line(_name(case), given)])


def _name(case: CaseResult) -> str:
    return case.workload.partition(".")[2]


def _unit(case: CaseResult) -> str:
    metric = primary(case)
    return metric.unit if metric else ""


def _row(trial: TrialRecord, unit: str, counted: Sequence[int] | None) -> tuple[Text, ...]:
    end = trial.end
    seen = end.disturbance if end else None
    return (
        str(trial.index + 1),
        utc(trial.time_unix_s, date=False),
        human(trial.wall_s, "s"),
        human(trial.value, unit),
        percent(trial.efficiency),
        human(end.metrics.get("clock_hertz") if end else None, "Hz"),
        percent(seen.clean_slice_ratio if seen else None),
        percent(seen.cpu_ratio if seen else None),
        human(seen.steal_s if seen else None, "s"),
        str(trial.verdict),
        NOTHING if counted is None else ("yes" if trial.index in counted else "no"),
    )
