"""A campaign's answer as a page, and as Markdown for a ticket."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import bound, human, percent, plural
from hostbench.decisions.fleet_words import (
    FACTS_NAMED,
    again_sentence,
    common_words,
    facts_words,
    fleet_headline,
    host_words,
    lost_groups,
    named,
    off_words,
    population_words,
    ratio_words,
)
from hostbench.decisions.history_words import day
from hostbench.decisions.lock_words import locks_words
from hostbench.decisions.words import DASH
from hostbench.model.baseline import HOSTS_LEAST, FigureCheck, HostWord
from hostbench.model.fleet import FleetCheck, FleetFigure, FleetHost
from hostbench.page.decision import capitalised, decision_page, plain_table
from hostbench.page.pairs import pairs_answer, pairs_facts, pairs_sections
from hostbench.report.content import (
    Answer,
    AnswerKind,
    Block,
    Bullets,
    Chart,
    Column,
    Fold,
    HostsChart,
    HostsRow,
    Paragraph,
    Report,
    Section,
    Strong,
    Table,
)

QUESTION = "Which hosts are bad?"
ITEMS_SHOWN = 5
# A page of a fleet stays small enough for a browser; the CSV has all.
HOSTS_SHOWN = 200
MODELS_SHOWN = 4
NAMES_SHOWN = 5
REFUSED_SHOWN = 20
FACTS_SHOWN = 2
_KINDS = {
    HostWord.LOW: AnswerKind.BAD,
    HostWord.SUSPECT: AnswerKind.DOUBTFUL,
    HostWord.AS_EXPECTED: AnswerKind.GOOD,
    HostWord.NO_REFERENCE: AnswerKind.OPEN,
}


def fleet_report(fleet: FleetCheck) -> Report:
    """Return the page of a campaign."""
    name = " and ".join(fleet.campaigns) or f"{fleet.suite} on {len(fleet.hosts):,} hosts"
    apart = [one for one in fleet.populations if one.beside is not None]
    notices = [population_words(one, fleet.populations[one.beside or 0]) for one in apart]
    return decision_page(
        "fleet report",
        name,
        _answer(fleet),
        _sections(fleet),
        facts=_facts(fleet),
        counts=((word, len(fleet.of(word))) for word in HostWord),
        notices=(*notices, *fleet.notes),
        more_answers=() if fleet.pairs is None else (pairs_answer(fleet.pairs),),
    )


def _answer(fleet: FleetCheck) -> Answer:
    """Return the answer, and the hosts that are low, the clearest first."""
    word = HostWord.LOW if fleet.of(HostWord.LOW) else HostWord.SUSPECT
    items = []
    for host in fleet.of(word)[:ITEMS_SHOWN]:
        worst = host.off[0] if host.off else None
        if worst is None:
            items.append((f"{host.host}.", f"{host_words(host)}."))
            continue
        what, _, how = off_words(worst).partition(", ")
        more = f" And {plural(len(host.off) - 1, 'more figure')}." if len(host.off) > 1 else ""
        facts = f" It differs in {facts_words(host.facts)}." if host.facts else ""
        items.append((f"{host.host}: {what}.", f"{capitalised(how)}.{more}{facts}"))
    return Answer(QUESTION, fleet_headline(fleet), _KINDS[fleet.word], tuple(items))


def _facts(fleet: FleetCheck) -> Iterator[tuple[str, str]]:
    yield "Hosts", f"{len(fleet.hosts):,}"
    yield "Jobs", f"{fleet.jobs:,}"
    yield "Suite", fleet.suite
    if fleet.clusters:
        yield "Cluster", ", ".join(fleet.clusters)
    yield "Lock held", locks_words(fleet.locks, NAMES_SHOWN)
    if fleet.missing:
        names = named(fleet.missing, NAMES_SHOWN)
        yield "No document", f"{plural(len(fleet.missing), 'node')}: {names}"
    if fleet.refused:
        yield "Left out", plural(len(fleet.refused), "document")
    first, last = day(fleet.first_unix_s), day(fleet.last_unix_s)
    yield "Measured", first if first == last else f"{first} to {last}"
    models = [at for at, one in enumerate(fleet.populations) if one.beside is None]
    for at in models[:MODELS_SHOWN]:
        one = fleet.populations[at]
        hosts = one.hosts + sum(other.hosts for other in fleet.populations if other.beside == at)
        beside = f", compared with {', '.join(one.baseline)}" if one.baseline else ""
        yield "Model", f"{one.key.words}: {hosts:,} host{'s' * (hosts > 1)}{beside}"
    if len(models) > MODELS_SHOWN:
        yield "", f"and {len(models) - MODELS_SHOWN} more models"


def _sections(fleet: FleetCheck) -> Iterator[Section]:
    off = [host for host in fleet.hosts if host.word in (HostWord.LOW, HostWord.SUSPECT)]
    if off:
        yield Section("hosts", "Hosts that are off", tuple(_off(fleet, off)))
    if fleet.common:
        items = tuple(f"{common_words(one)}." for one in fleet.common)
        why = Paragraph(
            "Facts that low hosts have more often than chance explains (Fisher's exact test, all "
            "facts together at 1 %). They may be the cause, or go with it."
        )
        yield Section("common", "What low hosts have in common", (Bullets(items), why))
    if any(one.beside is not None for one in fleet.populations):
        yield Section("populations", "Populations", (_populations(fleet),))
    if fleet.pairs is not None:
        yield from pairs_sections(fleet.pairs)
    charts = tuple(_charts(fleet))
    if charts:
        yield Section("figures", "Distributions", charts, in_brief=False)
    if lost := (*_lost(fleet), *_missing(fleet), *_refused(fleet)):
        yield Section("lost", "Skipped, missing, failed, disturbed", lost)
    yield Section("sure", "How sure this is", (Bullets(tuple(_sure(fleet))),))


def _off(fleet: FleetCheck, off: Sequence[FleetHost]) -> Iterator[Block]:
    for word in (HostWord.LOW, HostWord.SUSPECT):
        own = [host for host in off if host.word is word]
        if not own:
            continue
        table = _hosts_table(f"{str(word).capitalize()} hosts, the clearest first", own)
        again = again_sentence(fleet) if word is HostWord.SUSPECT else None
        if again:
            yield Paragraph(again)
        if word is HostWord.SUSPECT and len(own) < len(off):
            yield Fold(f"{plural(len(own), 'suspect host')}", (table,), on_paper=True)
        else:
            yield table
        if len(own) > HOSTS_SHOWN:
            yield Paragraph(
                f"These are {HOSTS_SHOWN} of {len(own):,} hosts: hostbench fleet report --csv has "
                "all."
            )


def _hosts_table(caption: str, hosts: Sequence[FleetHost]) -> Table:
    columns = (
        Column("host"),
        Column("figure"),
        Column("measured", figures=True),
        Column("interval", figures=True),
        Column("expected", figures=True),
        Column("usual", figures=True),
        Column("lost", figures=True),
        Column("chance", figures=True),
        Column("differs in"),
    )
    rows = (_host_row(host) for host in hosts[:HOSTS_SHOWN] if host.off)
    return plain_table(caption, columns, rows, narrow="stacks")


def _host_row(host: FleetHost) -> tuple[str | Strong, ...]:
    worst = host.off[0]
    more = f" and {len(host.off) - 1} more" if len(host.off) > 1 else ""
    return (
        Strong(host.host) if host.is_sure else host.host,
        f"{worst.title}{more}",
        human(worst.value, worst.unit),
        _interval(worst),
        f"{'≥' if worst.direction == 'higher' else '≤'} {human(worst.expected, worst.unit)}",
        human(worst.usual, worst.unit),
        percent(worst.lost_ratio),
        _chance(worst),
        facts_words(host.facts, FACTS_NAMED) if host.facts else DASH,
    )


def _interval(one: FleetFigure) -> str:
    if one.low is None or one.high is None:
        return DASH
    low, high = human(one.low, one.unit), human(one.high, one.unit)
    number, _, unit = low.partition(" ")
    return f"{number if high.endswith(f' {unit}') else low} to {high}"


def _chance(one: FigureCheck) -> str:
    if one.p is None:
        return DASH
    return "< 1e-9" if one.p < 1e-9 else f"{one.p:.1e}"


def _populations(fleet: FleetCheck) -> Table:
    rows = []
    for number, one in enumerate(fleet.populations, start=1):
        facts = ", ".join(f"{name} {value}" for name, value in one.facts) or DASH
        differs = ", ".join(ratio_words(ratio) for ratio in one.differs) or DASH
        beside = DASH if one.beside is None else str(one.beside + 1)
        rows.append((str(number), f"{one.hosts:,}", one.key.words, facts, beside, differs))
    columns = ("number", "hosts", "model", "only these have", "beside", "differs in")
    return plain_table(
        "Each is judged by itself",
        [Column(title, figures=title == "hosts") for title in columns],
        rows,
        narrow="stacks",
    )


def _charts(fleet: FleetCheck) -> Iterator[Chart]:
    """Yield a chart of each headline case: a row for each population."""
    values: dict[str, dict[int, tuple[list[float], list[float]]]] = {}
    for host in fleet.hosts:
        for one in host.figures:
            if one.is_headline:
                fine, off = values.setdefault(one.case, {}).setdefault(host.population, ([], []))
                (off if one.word in (HostWord.LOW, HostWord.SUSPECT) else fine).append(one.value)
    for case in fleet.headlines:
        rows = tuple(
            _hosts_row(fleet, number, case, fine, off)
            for number, (fine, off) in sorted(values.get(case, {}).items())
        )
        known = fleet.cases[case]
        if rows:
            yield Chart(
                title=known.title,
                description=_chart_words(known.direction == "lower", rows, known.unit),
                drawing=HostsChart(unit=known.unit, rows=rows),
            )


def _hosts_row(
    fleet: FleetCheck, number: int, case: str, fine: Sequence[float], off: Sequence[float]
) -> HostsRow:
    one = fleet.populations[number]
    label = plural(one.hosts, "host")
    if len(fleet.populations) > 1:
        what = ", ".join(f"{name} {value}" for name, value in one.facts[:FACTS_SHOWN])
        label += f", population {number + 1}{f': {what}' if what else ''}"
    level = one.cases[case]
    return HostsRow(
        label=label,
        values=tuple(fine),
        off=tuple(off),
        usual=level.usual,
        expected=level.expected,
        limit=level.limit,
    )


def _chart_words(is_time: bool, rows: Sequence[HostsRow], unit: str) -> str:
    better = "The lower, the better." if is_time else "The higher, the better."
    limits = [row.limit for row in rows if row.limit is not None]
    if not limits:
        return f"{better} No theoretical limit is known."
    return f"{better} Theoretical limit: {human(limits[0], unit)}."


def _lost(fleet: FleetCheck) -> tuple[Block, ...]:
    groups = list(lost_groups(fleet))
    rows = tuple(
        (
            one.what,
            one.culprit or DASH,
            f"{one.cases:,}",
            f"{len(one.hosts):,}",
            named(one.hosts, NAMES_SHOWN),
            named(one.titles, 2),
        )
        for one in groups[:HOSTS_SHOWN]
    )
    if not rows:
        return ()
    columns = ("what", "by", "cases", "on hosts", "which", "such as")
    table = plain_table(
        "Cases without a figure that may be used",
        [Column(title, figures=title in ("cases", "on hosts")) for title in columns],
        rows,
        narrow="stacks",
    )
    more = len(groups) - HOSTS_SHOWN
    rest = (Paragraph(f"{plural(more, 'more row')}: hostbench fleet report --csv has all."),)
    return (table, *(rest if more > 0 else ()))


def _missing(fleet: FleetCheck) -> Iterator[Block]:
    if fleet.missing:
        nodes = plural(len(fleet.missing), "node")
        yield Paragraph(f"{nodes} without a document: {named(fleet.missing, 50)}.")


def _refused(fleet: FleetCheck) -> Iterator[Block]:
    """Yield the documents that are damaged or of something else."""
    if not fleet.refused:
        return
    yield Paragraph(f"{plural(len(fleet.refused), 'document')} left out:")
    yield Bullets(tuple(f"{capitalised(why)}." for why in fleet.refused[:REFUSED_SHOWN]))
    if len(fleet.refused) > REFUSED_SHOWN:
        more = len(fleet.refused) - REFUSED_SHOWN
        yield Paragraph(f"{more:,} more: hostbench fleet report --csv has all.")


def _sure(fleet: FleetCheck) -> Iterator[str]:
    yield (
        f"Low: a figure is below the tolerance limit of the other hosts, and so far below that at "
        f"most {bound(fleet.error)} of sound hosts would show such a figure among all of theirs. "
        "Half of that rate belongs to the headline figures."
    )
    yield (
        "In bold, surely low: chosen so that of all such hosts at most 5 % are sound (Benjamini "
        "and Hochberg's procedure over the hosts)."
    )
    yield (
        "Expected: with 95 % confidence, 95 % of sound hosts are above it (for times: below). The "
        "band of the charts reaches from there to as far on the other side of the usual figure. "
        "A host is compared with the others of its population, and is not judged with fewer than "
        f"{HOSTS_LEAST} of them."
    )
    yield (
        "Chance: how often a sound host shows this one figure. Low hosts leave the reference, so "
        "that they do not hide each other."
    )
    if fleet.pairs is not None:
        yield from (f"Network: {text}" for _, text in pairs_facts(fleet.pairs))
