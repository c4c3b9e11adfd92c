"""The network between hosts as content of a page."""

import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence

from hostbench.base.units import human, plural
from hostbench.decisions.pair_words import (
    at_once_sentence,
    base_sentence,
    conspicuous,
    coverage_sentence,
    error_sentence,
    evidence,
    headline,
    locks_sentence,
    named,
    next_sentence,
    rack_sentences,
    round_words,
    suspect_links_sentence,
)
from hostbench.decisions.words import DASH, relative
from hostbench.model.pairs import HostNetwork, Judged, PairMatrix, PairWord
from hostbench.page.decision import capitalised, decision_page, plain_table
from hostbench.report.content import (
    Answer,
    AnswerKind,
    Block,
    Bullets,
    Chart,
    Column,
    Fold,
    Mark,
    MatrixChart,
    Paragraph,
    Report,
    Section,
    Table,
)

QUESTION = "Is the network between the hosts as it should be?"
# More hosts have cells that cannot be seen any more.
HOSTS_DRAWN = 128
HOSTS_UNFOLDED = 16
_HOST_COLUMNS = (
    Column("host"),
    Column("rack"),
    Column("beside the others", figures=True),
    Column("measured", figures=True),
    Column("word"),
)


def pairs_report(matrix: PairMatrix) -> Report:
    """Return the page of the network between hosts."""
    return decision_page(
        "fleet pairs",
        f"{matrix.title} between {plural(len(matrix.hosts), 'host')}",
        pairs_answer(matrix),
        pairs_sections(matrix),
        facts=pairs_facts(matrix),
    )


def pairs_sections(matrix: PairMatrix) -> Iterator[Section]:
    """Yield the sections: what is slow, the matrix and all hosts; what to measure next; what was
    left out."""
    yield Section("pairs", "The network between hosts", tuple(_blocks(matrix)))
    yield from _more(matrix)


def pairs_answer(matrix: PairMatrix) -> Answer:
    """Return the answer, and what is slow."""
    found = conspicuous(matrix)
    slow = [one for one in found if one.word is PairWord.SLOW]
    kind = AnswerKind.GOOD
    if matrix.undecided is not None:
        kind = AnswerKind.OPEN
    elif slow:
        kind = AnswerKind.BAD
    elif found:
        kind = AnswerKind.DOUBTFUL
    items = tuple((f"{capitalised(named(one))}.", evidence(one)) for one in slow)
    return Answer(QUESTION, headline(matrix), kind, items)


def pairs_facts(matrix: PairMatrix) -> Iterator[tuple[str, str]]:
    """Yield what the answer rests on, and how sure it is."""
    yield "measured", base_sentence(matrix)
    yield "links", coverage_sentence(matrix)
    yield "errors", error_sentence(matrix)
    yield "locks", locks_sentence(matrix)


def _blocks(matrix: PairMatrix) -> Iterator[Block]:
    found = conspicuous(matrix)
    if found:
        yield _table("What is slow, then what is suspect", found)
    links = suspect_links_sentence(matrix)
    sentences = (
        *rack_sentences(matrix),
        *map(at_once_sentence, matrix.at_once),
        *((links,) if links else ()),
    )
    if sentences:
        yield Bullets(sentences)
    yield _chart(matrix)
    if matrix.uplinks:
        yield _uplinks(matrix)
    yield _hosts(matrix)


def _more(matrix: PairMatrix) -> Iterator[Section]:
    what = next_sentence(matrix)
    if what is not None:
        rounds = tuple(
            f"Round {number}: {round_words(one.pairs)}"
            for number, one in enumerate(matrix.next_rounds, start=1)
        )
        fold = Fold(plural(len(rounds), "round"), (Bullets(rounds),), on_paper=True)
        yield Section("next", "What to measure next", (Paragraph(what), fold))
    if matrix.left_out:
        items = Bullets(tuple(f"{capitalised(one)}." for one in matrix.left_out))
        yield Section("left-out", "What was not used", (items,))


def _table(caption: str, found: Sequence[Judged]) -> Table:
    rows = tuple(
        (capitalised(named(one)), relative(one.ratio), f"{one.measured:,}", Mark(one.word))
        for one in found
    )
    columns = (
        Column("what"),
        Column("beside the others", figures=True),
        Column("measured", figures=True),
        Column("word"),
    )
    return plain_table(caption, columns, rows, narrow="wraps")


def _chart(matrix: PairMatrix) -> Chart:
    hosts = _drawn_hosts(matrix.hosts)
    place = {one.host: number for number, one in enumerate(hosts)}
    racks: dict[str, int] = {}
    for one in hosts:
        racks[one.rack or "no rack"] = racks.get(one.rack or "no rack", 0) + 1
    cells: dict[tuple[int, int], float] = {}
    for a, b, ratio in _ratios(matrix):
        if a in place and b in place:
            cells[place[a], place[b]] = cells[place[b], place[a]] = ratio
    some = (
        f" Of {len(matrix.hosts):,} hosts the {len(hosts)} slowest."
        if len(hosts) < len(matrix.hosts)
        else ""
    )
    return Chart(
        title="Pairs of hosts beside sound pairs",
        description=(
            "A slow host is a line across and down, a slow uplink a band that leaves out the rack "
            f"itself, a slow link one cell and its mirror image. The middle "
            f"of sound pairs: {_middle_words(matrix)}.{some}"
        ),
        drawing=MatrixChart(
            labels=tuple(one.host for one in hosts),
            groups=tuple(racks.items()),
            cells=cells,
            stands_out=frozenset(
                place[one.host] for one in hosts if one.word in (PairWord.SLOW, PairWord.SUSPECT)
            ),
        ),
    )


def _drawn_hosts(hosts: Sequence[HostNetwork]) -> list[HostNetwork]:
    """Return the hosts to draw, by rack: if there are too many, the slowest."""
    chosen = sorted(hosts, key=lambda one: one.ratio)[:HOSTS_DRAWN]
    return sorted(chosen, key=lambda one: (one.rack is None, one.rack or "", one.host))


def _middles(matrix: PairMatrix) -> dict[bool, float]:
    """Return the median of the links within racks (True) and across them, of hosts and racks that
    are as expected where there are such links."""
    rack = {one.host: one.rack for one in matrix.hosts}
    bad = {one.host for one in matrix.hosts if one.word is not PairWord.AS_EXPECTED}
    slow = {one.rack for one in matrix.uplinks if one.word is not PairWord.AS_EXPECTED}
    every: defaultdict[bool, list[float]] = defaultdict(list)
    sound: defaultdict[bool, list[float]] = defaultdict(list)
    for one in matrix.links:
        within = rack[one.a] == rack[one.b]
        every[within].append(one.value)
        if not bad.intersection((one.a, one.b)) and not slow.intersection(
            (rack[one.a], rack[one.b])
        ):
            sound[within].append(one.value)
    return {within: statistics.median(sound[within] or some) for within, some in every.items()}


def _ratios(matrix: PairMatrix) -> Iterator[tuple[str, str, float]]:
    """Yield each link and how good it is beside the middle of its kind."""
    rack, middles = {one.host: one.rack for one in matrix.hosts}, _middles(matrix)
    for one in matrix.links:
        ratio = one.value / middles[rack[one.a] == rack[one.b]]
        yield one.a, one.b, ratio if matrix.direction == "higher" else 1 / ratio


def _middle_words(matrix: PairMatrix) -> str:
    middles = _middles(matrix)
    if not matrix.uplinks or len(middles) < 2:
        return human(statistics.median(middles.values()), matrix.unit)
    return (
        f"{human(middles[False], matrix.unit)} between racks, "
        f"{human(middles[True], matrix.unit)} within them"
    )


def _uplinks(matrix: PairMatrix) -> Table:
    columns = (
        Column("rack"),
        Column("leaving it", figures=True),
        Column("within it", figures=True),
        Column("measured", figures=True),
        Column("word"),
    )
    rows = tuple(
        (
            one.rack,
            relative(one.ratio),
            DASH if one.inside_ratio is None else relative(one.inside_ratio),
            f"{one.measured:,}",
            Mark(one.word),
        )
        for one in sorted(matrix.uplinks, key=lambda uplink: uplink.ratio)
    )
    return plain_table("Racks beside the middle of all racks", columns, rows, narrow="wraps")


def _hosts(matrix: PairMatrix) -> Block:
    rows = tuple(
        (one.host, one.rack or DASH, relative(one.ratio), f"{one.measured:,}", Mark(one.word))
        for one in sorted(matrix.hosts, key=lambda host: host.ratio)
    )
    table = plain_table("Hosts, the slowest first", _HOST_COLUMNS, rows, narrow="wraps")
    if len(rows) <= HOSTS_UNFOLDED:
        return table
    return Fold(f"All {plural(len(rows), 'host')}", (table,), on_paper=True)
