"""The short form of a report as GitHub-flavoured Markdown, for a ticket."""

import re
from collections.abc import Iterator

from hostbench.base.units import percent
from hostbench.report.content import (
    Answer,
    Block,
    Bullets,
    Chart,
    Code,
    Commands,
    Facts,
    Fold,
    InBrief,
    Inline,
    JobId,
    Mark,
    Notice,
    Paragraph,
    Part,
    Reference,
    Report,
    Share,
    Sources,
    Strong,
    Table,
    Text,
    Workload,
    inlines,
)
from hostbench.report.plaintext import one_line

# Markdown ignores an underscore within a word.
_SPECIAL = re.compile(r"([\\`*{}\[\]<>#|~!&$]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))")
# A ticket would notify the person that such a word names, or link the issue.
_MENTION = re.compile(r"@(?=\w)")


def markdown(report: Report) -> str:
    """Return the report without its charts and without the sections that are not part of the short
    form."""
    return "\n".join(_lines(report)).rstrip() + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield from (f"# {escaped(report.title)}", "")
    if report.subtitle:
        yield from (escaped(report.subtitle), "")
    yield from _blocks(report.answer, 2)
    yield from _block(report.facts, 2)
    if report.tally:
        counts = ", ".join(
            f"{count:,} {verdict or 'unfinished'}" for verdict, count in report.tally
        )
        yield from (f"**{counts}**", "")
    for notice in report.notices:
        yield from _block(notice, 2)
    for section in report.sections:
        if section.in_brief:
            yield from (f"## {escaped(section.title)}", "")
            yield from _blocks(section.blocks, 3)


def _blocks(blocks: tuple[Block, ...], level: int) -> Iterator[str]:
    for block in blocks:
        yield from _block(block, level)


def _block(block: Block, level: int) -> Iterator[str]:
    """Yield the lines of a block, followed by an empty one."""
    if isinstance(block, Part):
        yield from (f"{'#' * level} {escaped(block.title)}", "")
        yield from _blocks(block.blocks, level + 1)
    elif isinstance(block, Fold) and block.brief is InBrief.LEFT_OUT:
        return
    elif isinstance(block, Fold) and block.brief is InBrief.UNFOLDED:
        yield from _blocks(block.blocks, level)
    elif isinstance(block, Fold):
        # GitHub folds this; after the empty line, Markdown is active again.
        yield from (f"<details><summary>{escaped(block.title)}</summary>", "")
        yield from _blocks(block.blocks, level)
        yield from ("</details>", "")
    elif isinstance(block, Chart):
        if block.numbers is not None:
            yield from _block(block.numbers, level)
    else:
        yield from (*_plain(block), "")


def _plain(block: Paragraph | Answer | Notice | Bullets | Sources | Facts | Table) -> Iterator[str]:
    if isinstance(block, Paragraph):
        yield _text(block.text)
    elif isinstance(block, Answer):
        yield f"**{escaped(block.question)} {escaped(block.text)}**"
        if block.items:
            yield ""
        for number, (what, evidence) in enumerate(block.items, start=1):
            yield f"{number}. **{escaped(what)}** {escaped(evidence)}"
    elif isinstance(block, Notice):
        yield f"> {'**Note:** ' if block.serious else ''}{_text(block.text)}"
    elif isinstance(block, Bullets):
        yield from (f"- {_text(item)}" for item in block.items)
    elif isinstance(block, Sources):
        yield from (f"{n}. {escaped(text)}" for n, text in enumerate(block.texts, start=1))
    elif isinstance(block, Facts):
        yield from (f"- {escaped(name)}: {_text(text)}" for name, text in block.items)
    else:
        yield from _table(block)


def _table(table: Table) -> Iterator[str]:
    yield _row(escaped(column.title) for column in table.columns)
    yield _row("---:" if column.figures else "---" for column in table.columns)
    for group in table.groups:
        if group.title is not None:
            yield _row([f"**{_text(group.title)}**", *("" for _ in table.columns[1:])])
        for row in group.rows:
            yield _row(_text(cell) for cell in row)


def _row(cells: Iterator[str] | list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _text(text: Text) -> str:
    return "".join(_inline(one) for one in inlines(text))


def _inline(one: Inline) -> str:
    if isinstance(one, JobId):
        return escaped(one.id)
    if isinstance(one, Workload):
        return escaped(one.name)
    if isinstance(one, Code):
        return _code(one.text)
    if isinstance(one, Commands):
        return " ".join(map(_code, one.texts))
    if isinstance(one, Strong):
        return f"**{escaped(one.text)}**"
    if isinstance(one, Mark):
        return one.text
    if isinstance(one, Share):
        return percent(one.ratio)
    if isinstance(one, Reference):
        return f"\\[{one.number}\\]"
    return escaped(one)


def escaped(text: str) -> str:
    """Return `text` so that it appears unchanged, whatever signs of Markdown or HTML it
    contains."""
    return _MENTION.sub("@\N{WORD JOINER}", _SPECIAL.sub(r"\\\1", one_line(text)))


def _code(text: str) -> str:
    """Return a code span; even there, a bar would end the cell of a table."""
    text = one_line(text).replace("|", "\\|")
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    room = " " if text.startswith("`") or text.endswith("`") or not text else ""
    return f"{fence}{room}{text}{room}{fence}"
