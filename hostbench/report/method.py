"""How each figure was measured: metrics, limits with their sources, idle gate, programs, method."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hostbench.base.units import bound, duration, full_sentence, human, percent, plural, significant
from hostbench.model.limit import Factor
from hostbench.model.result import CaseResult, IdleRecord, ResultDocument
from hostbench.model.table import Metric
from hostbench.report.content import (
    Block,
    Bullets,
    Code,
    Column,
    Fold,
    Inline,
    Paragraph,
    Part,
    Reference,
    RowGroup,
    Section,
    Sources,
    Table,
    Text,
)
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    first_names,
    label,
    primary,
    quantity,
)
from hostbench.report.summary import utc

SOURCES_UNFOLDED = 12
# Not after "e.g." and the like, where a small letter follows.
_SENTENCE_END = re.compile(r"(?<=[.!?]) +(?=[A-Z0-9])")

METHOD = (
    "A trial is one process, started once. After a warm-up all threads pass a barrier, and the "
    "program divides the timed region into slices of some milliseconds. A slice is clean if "
    "its thread had the CPU all the time: no involuntary switch, no wait on the run queue, CPU "
    "time at least 97 % of wall time. The figure of a thread is the median over its clean "
    "slices. The figure of a trial is the sum over its threads or, for clocks and times, their "
    "median; the figure of the whole run, disturbances included, is reported beside it. The "
    "program verifies all work (disks: if the case requests it; networks: by the counts of "
    "both ends), and a wrong result gives no figure.",
    "Work that waits for a disk or a network has no slices: its figure covers the whole timed "
    "region, for network streams on the receiver's clock. The program counts the time of every "
    "operation in a histogram with 128 steps per doubling, so a percentile is off by less than "
    "1 %. It leaves out a percentile if too few operations were measured.",
    "n counts trials, never slices or samples. hostbench repeats a case until half the "
    "interval of its median reaches the target, within the bounds of the suite. The interval "
    "is a Student interval of the logarithms of the trials; its variance also uses the other "
    "cases of the subsystem (Smyth, Linear models and empirical Bayes methods, 2004). On a "
    "virtual machine it also includes the variation of figures between jobs. An outlier has a "
    "modified z-score above 14.8 (as in hyperfine). Trials are unstable if the standard "
    "deviation is a tenth of the mean, or an extreme is half the mean away from it (as in "
    "pyperf).",
    "A limit is the product of its factors: for the CPU, the clock measured in the same trial, "
    "the operations per cycle of the micro-architecture and the number of distinct cores used; "
    "for memory, the transfer rate of its channels; for disks, the transfer rate of their "
    "link; for networks, the payload rate of the physical link. For disks and networks, the "
    "operator can set a limit instead. A figure above its limit by more than the tolerance is "
    "invalid. Disturbed trials are kept and shown; they count only if there are fewer "
    "undisturbed trials than the suite requires.",
)


def method_section(document: ResultDocument) -> Section:
    """Return the section."""
    sources = _Sources()
    limits = tuple(_limit_blocks(document.cases, sources))
    parts = [
        Part("Method", tuple(Paragraph(text) for text in METHOD)),
        Part("Limits and their sources", limits),
        Part("Repeats and the idle gate", tuple(_idle_blocks(document))),
        Part("Programs", (_programs(document),)),
        Part("Metrics", tuple(_metric_tables(document))),
    ]
    title = "How each figure was measured"
    return Section("method", title, tuple(parts), in_brief=False)


# ---- limits ----


@dataclass
class _Sources:
    """The sources named so far, each with a number."""

    numbers: dict[str, int] = field(default_factory=dict)

    def references(self, text: str) -> tuple[Inline, ...]:
        """Return a reference for each sentence: most sources differ in a single one."""
        found: list[Inline] = []
        for part in _SENTENCE_END.split(text):
            number = self.numbers.setdefault(full_sentence(part), len(self.numbers) + 1)
            found += [" ", Reference(number)] if found else [Reference(number)]
        return tuple(found)

    def block(self) -> Sources:
        return Sources(tuple(self.numbers))


def _limit_blocks(cases: Sequence[CaseResult], sources: _Sources) -> Iterator[Block]:
    known = [case for case in cases if (m := primary(case)) and m.limit and m.limit.factors]
    if known:
        groups = tuple(
            RowGroup(workload, tuple(_factor_rows(found, sources)))
            for workload, found in by_workload(known).items()
        )
        columns = (
            Column("factor"),
            Column("value", figures=True),
            Column("cases"),
            Column("source"),
        )
        yield Paragraph(
            "The limit of a case is the product of its factors; if several trials have a "
            "limit, the table shows the middle one."
        )
        yield Table("Factors of the limits", columns, groups)
        found = sources.block()
        title = f"Sources ({len(found.texts)})"
        short = len(found.texts) <= SOURCES_UNFOLDED
        yield found if short else Fold(title, (found,), on_paper=True)
    yield from _without_limit(cases)


def _factor_rows(cases: Sequence[CaseResult], sources: _Sources) -> Iterator[tuple[Text, ...]]:
    """Yield one row for every factor that cases share; a measured factor is shown as a range."""
    found: dict[tuple[str, str, str], list[tuple[CaseResult, Factor]]] = {}
    for case in cases:
        metric = primary(case)
        assert metric is not None and metric.limit is not None
        for factor in metric.limit.factors:
            key = (factor.name, factor.unit, factor.source)
            found.setdefault(key, []).append((case, factor))
    order = list(dict.fromkeys(name for name, _, _ in found))
    for (name, unit, source), pairs in sorted(found.items(), key=lambda i: order.index(i[0][0])):
        values = [factor.value for _, factor in pairs]
        low, high = min(values), max(values)
        text = _factor_value(low, unit, name)
        if high != low:
            text = f"{text} to {_factor_value(high, unit, name)}"
        which = (
            "all" if len(pairs) == len(cases) else first_names([label(case) for case, _ in pairs])
        )
        yield (
            quantity(name),
            text,
            which,
            sources.references(source),
        )


def _factor_value(value: float, unit: str, name: str) -> str:
    if unit == "Hz":
        return human(value, unit)
    # "2 core" for a factor called cores says no more than 2.
    text = f"{value:.0f}" if value.is_integer() else significant(value)
    return text if name == f"{unit}s" else f"{text} {unit}"


def _without_limit(cases: Sequence[CaseResult]) -> Iterator[Block]:
    reasons: dict[str, list[str]] = {}
    for case in cases:
        metric = primary(case)
        if metric is None or (metric.limit and metric.limit.value is not None):
            continue
        reason = metric.limit.reason if metric.limit else None
        reasons.setdefault(reason or "no limit is known for this workload", []).append(case.title)
    items = tuple(
        f"{first_names(titles)}: {full_sentence(reason)}" for reason, titles in reasons.items()
    )
    if items:
        yield Paragraph("Without a limit:")
        yield Bullets(items)


# ---- repeats and idle gate ----


def _idle_blocks(document: ResultDocument) -> Iterator[Block]:
    repeats = document.suite.repeats
    idle = document.suite.idle
    target = repeats.target_half_width
    within = "the target of its subsystem" if target is None else f"± {bound(target)}"
    yield Paragraph(
        f"The suite requires {repeats.min_trials} to {repeats.max_trials} trials per case, "
        f"until the interval of the median is within {within}, for at most "
        f"{duration(repeats.max_time_s)}; single entries may differ. hostbench checks the idle "
        f"gate once per {idle.per} and waits for at most {duration(idle.timeout_s)}; the policy "
        f"is {idle.policy}."
    )
    records = {
        (case.idle.time_unix_s, case.idle.cases): case.idle
        for case in document.cases
        if case.idle is not None
    }
    if records:
        rows = tuple(_idle_row(record) for record in records.values())
        yield Table("What the idle gate saw", _IDLE_COLUMNS, (RowGroup(None, rows),))


_IDLE_COLUMNS = (
    Column("when (UTC)"),
    Column("cases", figures=True),
    Column("idle"),
    Column("waited", figures=True),
    Column("busy", figures=True),
    Column("busiest CPU", figures=True),
    Column("stolen", figures=True),
    Column("PSI cpu", figures=True),
    Column("busiest processes"),
)


def _idle_row(record: IdleRecord) -> tuple[Text, ...]:
    window = record.window
    busiest = ", ".join(
        f"{busy.command} (pid {busy.pid}) {percent(busy.cpu_ratio)}" for busy in record.busiest
    )
    text = {True: "yes", False: "no", None: "not checked" if window is None else "unknown"}
    return (
        utc(record.time_unix_s, date=False),
        str(len(record.cases)),
        text[record.idle],
        human(record.waited_s, "s"),
        percent(window.busy_ratio if window else None),
        percent(window.busiest_cpu_ratio if window else None),
        percent(window.steal_ratio if window else None),
        percent(window.psi_cpu_ratio if window else None),
        busiest or NOTHING,
    )


# ---- programs and metrics ----


def _programs(document: ResultDocument) -> Table:
    rows = tuple(
        (program.name, program.subsystem, program.version, Code(program.sha256))
        for program in document.programs
    )
    columns = (Column("program"), Column("subsystem"), Column("version"), Column("SHA-256"))
    return Table("The programs that measured", columns, (RowGroup(None, rows),))


def _metric_tables(document: ResultDocument) -> Iterator[Block]:
    """Yield one table for all workloads with the same metrics."""
    shared: dict[tuple[Metric, ...], list[str]] = {}
    for workload in by_workload(document.cases):
        shared.setdefault(document.workloads[workload], []).append(workload)
    columns = (Column("metric"), Column("unit"), Column("better"), Column("what it is"))
    for metrics, workloads in shared.items():
        rows = tuple(
            (
                Code(metric.name),
                metric.unit,
                metric.direction,
                f"Primary. {metric.description}" if metric.primary else metric.description,
            )
            for metric in metrics
        )
        table = Table(f"Metrics of {', '.join(workloads)}", columns, (RowGroup(None, rows),))
        title = f"{plural(len(metrics), 'metric')} of {', '.join(workloads)}"
        yield Fold(title, (table,), on_paper=True)
