"""What changed compared with a published table and why, each claim with a figure of this run."""

import statistics
from collections.abc import Iterator, Sequence

from hostbench.base.units import full_sentence, percent, plural
from hostbench.course.arithmetic import divides_by_n, efficiency_percent, slip_sentences
from hostbench.course.evidence import Evidence, farthest, over, times
from hostbench.course.rows import PERCENT, CourseRow
from hostbench.course.shortcuts import shortcut_sentences
from hostbench.model.published import Published, PublishedTable
from hostbench.model.result import ResultDocument
from hostbench.report.content import Block, Bullets, Paragraph, Strong


def why_blocks(
    published: Published,
    table: PublishedTable,
    rows: Sequence[CourseRow],
    document: ResultDocument,
) -> Iterator[Block]:
    """Yield the paragraph, a sentence for each shortcut, and the errors in the table itself."""
    evidence = Evidence(published, table, rows, document)
    overall = [*_against_published(evidence), *_against_naive(evidence), *_against_limits(evidence)]
    if overall:
        yield Paragraph((Strong("What changed and why."), f" {' '.join(overall)}"))
    shortcuts = shortcut_sentences(evidence)
    if shortcuts:
        yield Bullets(shortcuts)
    own = [*slip_sentences(table, rows), *_deviations(rows)]
    own += [full_sentence(remark) for remark in table.remarks]
    if own:
        yield Paragraph("In the report itself:")
        yield Bullets(tuple(own))


def _against_published(evidence: Evidence) -> Iterator[str]:
    """How much more or less than published."""
    found = [
        (figure.median / row.mean, row, figure) for row, figure in evidence.measured if row.mean
    ]
    if not found:
        return
    ratios = [one[0] for one in found]
    ratio, row, figure = max(found, key=lambda one: max(one[0], 1 / one[0]))
    better = ", where less is better" if evidence.table.better == "lower" else ""
    yield (
        f"Ours is {over(statistics.median(ratios))} the published figure in the "
        f"median of {plural(len(found), 'row')}{better}; the largest difference is in {row.title}: "
        f"{evidence.with_unit(row.mean or 0.0)} was published, this host gives "
        f"{evidence.with_unit(figure.median)}, {over(ratio)} that. Host, compiler and method "
        "all differ."
    )


def _against_naive(evidence: Evidence) -> Iterator[str]:
    """How much of that the way of measuring makes: on one host, this one."""
    pairs = evidence.pairs
    worst = farthest(evidence.fair)
    if worst is None:
        return
    ratio = statistics.median(pair.ratio for pair in pairs)
    yield (
        f"On this same host the report's way of measuring gives {over(ratio)} what "
        f"ours gives in the median of {plural(len(pairs), 'row')}, from "
        f"{times(min(pair.ratio for pair in pairs))} to "
        f"{times(max(pair.ratio for pair in pairs))}. That difference comes from the method, not "
        f"from the hardware. It is largest here: {evidence.both(worst)}."
    )


def _against_limits(evidence: Evidence) -> Iterator[str]:
    """The published efficiency beside ours, each at its best row."""
    shares = [(one.efficiency, row) for row, one in evidence.measured if one.efficiency is not None]
    if shares:
        low, high = min(shares, key=lambda one: one[0]), max(shares, key=lambda one: one[0])
        worst = f" and {percent(low[0])} at worst ({low[1].title})" if len(shares) > 1 else ""
        yield (
            f"Ours reaches {percent(high[0])} of its limit at best ({high[1].title}){worst}"
            f"{_published_share(evidence)}."
        )


def _published_share(evidence: Evidence) -> str:
    found = []
    for row in evidence.rows:
        value = row.number("efficiency") or efficiency_percent(row, evidence.table)
        if value:
            found.append((value, row))
    if not found:
        return ""
    value, row = max(found, key=lambda one: one[0])
    pair = next((one for one in evidence.pairs if one.row is row), None)
    naive = ""
    if pair and pair.ours.limit:
        ratio = pair.naive.mean / pair.ours.limit
        ratio = ratio if evidence.table.better == "higher" else 1 / ratio
        naive = f"; in that row the naive way reaches {percent(ratio)} of our limit here"
    return f"; the report's best is {percent(value / PERCENT)} of its own ({row.title}){naive}"


def _deviations(rows: Sequence[CourseRow]) -> Iterator[str]:
    if divides_by_n(rows):
        yield (
            "Its standard deviations divide by the number of runs; ours divide by one less, as for "
            "a sample."
        )
