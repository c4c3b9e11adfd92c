"""The top of the report: what ran where, how it went, and the figures to remember."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from hostbench.base.units import duration, percent, plural
from hostbench.decisions.receipt import ITEMS_SHOWN, QUESTION
from hostbench.judge.case import REASONS_SHOWN, grouped_reasons, reason_paragraphs
from hostbench.judge.clock import share_of_limit
from hostbench.judge.overview import (
    SubsystemLine,
    condition_words,
    ending_sentence,
    overview,
)
from hostbench.model.baseline import HostWord, Receipt
from hostbench.model.host import HostInventory
from hostbench.model.result import (
    FAILURES,
    UNSEALED_SCHEMA,
    CaseResult,
    JobState,
    ResultDocument,
    Verdict,
)
from hostbench.report.content import (
    Answer,
    AnswerKind,
    Block,
    Bullets,
    Code,
    Column,
    Facts,
    Fold,
    InBrief,
    Mark,
    Notice,
    Paragraph,
    RowGroup,
    Section,
    Share,
    Table,
    Text,
)
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    case_table,
    first_names,
)
from hostbench.report.subsystem import SubsystemReport
from hostbench.results.sealed import UNSEALED

READING = (
    "Figure: the median of n trials, each from its undisturbed slices (disks and networks: "
    "from all work). Within: half the interval that contains the true figure. Best: the figure "
    "of the best trial, which is not a limit. Limit: the most that the hardware can do in "
    "theory. Of limit: the median over the trials of each figure divided by its own limit. "
    "Delivered: all work divided by all time, as a share of the figure. Host: what used the "
    "rest."
)
_OVERVIEW_CAPTION = (
    "One line per subsystem: the figure is that of its best case, undisturbed; delivered, "
    "verdicts and host cover all its cases"
)
_OVERVIEW_COLUMNS = (
    Column("best case"),
    Column("figure", figures=True),
    Column("of limit", figures=True),
    Column("delivered (worst case)", figures=True),
    Column("verdicts"),
    Column("host (worst case)"),
)

_MEANING = {
    Verdict.CORRUPT: "a result was wrong: trust nothing that this host computes",
    Verdict.FAILED: "the program failed: there is no figure",
    Verdict.INVALID: "the figure is above its theoretical limit, or measures memory instead of "
    "the disk: do not use it",
    # The cause may be a quota, the hypervisor or heat as well as other load: the host's condition
    # shows which.
    Verdict.DISTURBED: "other work used the host, as the column host shows, and no undisturbed "
    "figure is left: the host may be able to do more",
    Verdict.NOISY: "known less precisely than figures of this kind usually are: compare with care",
    Verdict.SKIPPED: "cannot run here, or the job had no time left",
}
_SERIOUS = frozenset({*FAILURES, Verdict.INVALID, Verdict.DISTURBED})


def utc(time_unix_s: float, *, date: bool = True) -> str:
    """Return a time such as `2026-11-20 20:17:44 UTC`."""
    moment = datetime.fromtimestamp(time_unix_s, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if date else f"{moment:%H:%M:%S}"


def host_line(host: HostInventory) -> str:
    """Return the host in one line."""
    cpu = host.cpu
    shape = [plural(len(host.allowed_cpus), "CPU")]
    if cpu.cores and cpu.sockets:
        shape.append(f"{plural(cpu.cores, 'core')} in {plural(cpu.sockets, 'socket')}")
    memory = f"{host.memory_bytes / 2**30:.1f} GiB of memory" if host.memory_bytes else None
    guest = "virtual machine" if host.virtualisation.hypervisor else None
    container = host.virtualisation.container
    parts = [
        cpu.model_name or cpu.architecture,
        *shape,
        memory,
        guest,
        f"in a container ({container})" if container else None,
        host.distribution,
        f"Linux {host.kernel}",
    ]
    return ", ".join(part for part in parts if part)


def answer(receipt: Receipt, document: ResultDocument) -> tuple[Block, ...]:
    """Return what to read first: the host in a sentence, what to look at, and each subsystem in a
    line."""
    kind = {
        HostWord.AS_EXPECTED: AnswerKind.GOOD,
        HostWord.LOW: AnswerKind.BAD,
        HostWord.SUSPECT: AnswerKind.DOUBTFUL,
        HostWord.NO_REFERENCE: AnswerKind.DOUBTFUL if receipt.faults else AnswerKind.OPEN,
    }[receipt.word]
    items = tuple((item.text, item.evidence) for item in receipt.items[:ITEMS_SHOWN])
    more = tuple((item.text, item.evidence) for item in receipt.items[ITEMS_SHOWN:])
    blocks: list[Block] = [Answer(QUESTION, receipt.answer, kind, items)]
    if more:
        rest = tuple(f"{what} {evidence}" for what, evidence in more)
        blocks.append(Fold(f"{len(more)} more to look at", (Bullets(rest),)))
    blocks += [Paragraph(note) for note in receipt.notes]
    if not all(case.naive for case in document.cases):
        blocks.append(_overview_table(document))
    return tuple(blocks)


def job_facts(document: ResultDocument) -> Facts:
    """Return what ran, when, and with which programs."""
    job = document.job
    trials = sum(len(case.trials) for case in document.cases)
    workloads = first_names(list(by_workload(document.cases)), most=6)
    took = ""
    if job.took_s is not None:
        took = f", {duration(job.took_s)} long"
    elif job.finished_unix_s is not None:
        took = f", {duration(max(0.0, job.finished_unix_s - job.created_unix_s))} long"
    programs = [f"{program.name} {program.version}" for program in document.programs]
    items: list[tuple[str, Text]] = [
        (
            "What",
            f"suite {document.suite.name}: {plural(len(document.cases), 'case')} of {workloads}; "
            f"{plural(trials, 'trial')}",
        ),
        ("When", f"{utc(job.created_unix_s)}{took}"),
        ("With", ", ".join([f"hostbench {document.hostbench}", *programs])),
        ("Job", (Code(job.id), f", {job.state}")),
    ]
    if document.far_host is not None:
        items.append(("Far host", host_line(document.far_host.inventory)))
    return Facts(tuple(items))


def tally(cases: Sequence[CaseResult]) -> tuple[tuple[Verdict | None, int], ...]:
    """Return the number of cases for each verdict, the best first; None: not finished."""
    found = [case.verdict for case in cases]
    return tuple((one, found.count(one)) for one in (*Verdict, None) if one in found)


def notices(document: ResultDocument) -> tuple[Notice, ...]:
    """Return what must be read before any figure."""
    return tuple(_notices(document))


def _notices(document: ResultDocument) -> Iterator[Notice]:
    if document.job.state is not JobState.SUCCEEDED:
        yield _job_notice(document)
    if document.schema_version == UNSEALED_SCHEMA:
        yield Notice(UNSEALED, serious=False)
    for verdict in (
        *FAILURES,
        Verdict.INVALID,
        Verdict.DISTURBED,
        Verdict.NOISY,
        Verdict.SKIPPED,
    ):
        cases = [case for case in document.cases if case.verdict is verdict]
        if cases:
            which = first_names([case.title for case in cases])
            yield Notice(
                f"{plural(len(cases), 'case')} of {len(document.cases)} "
                f"{'is' if len(cases) == 1 else 'are'} {verdict}: {_MEANING[verdict]} ({which}).",
                serious=verdict in _SERIOUS,
            )


def _job_notice(document: ResultDocument) -> Notice:
    job = document.job
    done = sum(case.verdict is not None for case in document.cases)
    so_far = f"{done} of {plural(len(document.cases), 'case')} are complete"
    if job.state is JobState.RUNNING:
        return Notice(
            f"The job is still running: {so_far}. This page shows the results so far.", True
        )
    text = f"{ending_sentence(job.state, document.reason)} {so_far}."
    if done == len(document.cases):
        return Notice(text, True)
    return Notice((f"{text} Continue with ", Code(f"hostbench run --resume {job.id}"), "."), True)


def _overview_table(document: ResultDocument) -> Table:
    rows = tuple(_overview_row(line) for line in overview(document.cases))
    groups = (RowGroup(None, rows),)
    return Table(_OVERVIEW_CAPTION, _OVERVIEW_COLUMNS, groups, narrow="wraps")


def _overview_row(line: SubsystemLine) -> tuple[Text, ...]:
    return (
        line.subsystem if line.headline is None else line.headline.title,
        # On a narrow screen, the text may only break before the interval.
        (line.figure or NOTHING)
        .replace(" ", "\N{NO-BREAK SPACE}")
        .replace("\N{NO-BREAK SPACE}±", " ±"),
        # Clock and work per cycle are in the table of figures, so that each row here stays one
        # line.
        NOTHING if line.headline is None else Share(share_of_limit(line.headline)),
        percent(line.delivered_ratio),
        tuple(part for verdict, count in line.worst_first for part in (Mark(verdict, count), " ")),
        NOTHING if line.condition is None else condition_words(line.condition),
    )


def summary_section(document: ResultDocument, subsystems: Sequence[SubsystemReport]) -> Section:
    """Return the figures to remember, and the reasons of each verdict."""
    headline = [
        case
        for subsystem in subsystems
        for case in subsystem.headline
        if case.verdict is not Verdict.SKIPPED
    ]
    blocks: list[Block] = [
        case_table(headline, "The figures to remember", titles=True),
        Paragraph(READING),
    ]
    reasons = tuple(reason_paragraphs(document.cases))
    if len(reasons) <= REASONS_SHOWN:
        blocks += [Bullets(reasons)] if reasons else []
    else:
        title = f"The reasons case by case ({len(reasons)})"
        blocks.append(Bullets(tuple(grouped_reasons(document.cases))))
        blocks.append(Fold(title, (Bullets(reasons),), brief=InBrief.LEFT_OUT))
    return Section(anchor="summary", title="Summary", blocks=tuple(blocks))
