"""The section of a document whose suite reruns a published report: a part for each table."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import binary_bytes, exact_bytes, full_sentence, human, plural
from hostbench.course.charts import row_charts
from hostbench.course.limits import limit_blocks
from hostbench.course.rows import (
    CourseRow,
    here_cpus,
    here_disk,
    here_memory,
    rows_of,
    smaller_here,
)
from hostbench.course.samples import sample_charts
from hostbench.course.table import reasons_block, row_table
from hostbench.course.trusted import trusted_blocks
from hostbench.course.why import why_blocks
from hostbench.model.published import Published, PublishedTable
from hostbench.model.result import ResultDocument
from hostbench.report.content import (
    Block,
    Column,
    Fold,
    InBrief,
    Notice,
    Paragraph,
    Part,
    RowGroup,
    Section,
    Table,
    Text,
)
from hostbench.report.figures import NOTHING, first_names
from hostbench.report.summary import host_line, utc

# Longer tables are folded; their charts show most of them.
ROWS_UNFOLDED = 48
READING = (
    "Each row shows the published figure and three figures of this run. Naive: measured as the "
    "report's programs did, with their mistakes on purpose. Ours: the median of n trials with the "
    "interval that contains the true median, and mean ± standard deviation (sd), as the course "
    "requires. Our limit: the most that the hardware here can do. Published of limit is as "
    "printed; parentheses show figure over limit if that differs or nothing is printed. A peer is "
    "a tool that ran in turn with our trials in this run."
)
SMALLER = (
    "Some rows are marked because this host is smaller than the report's. hostbench shrinks no "
    "case to fit, so do not compare such a row with the published one."
)


def course_section(document: ResultDocument) -> Section | None:
    """Return the section, or None if the suite reruns nothing."""
    published = document.suite.published
    if published is None:
        return None
    blocks: list[Block] = [
        Paragraph(_introduction(document, published)),
        _hosts(document, published),
        Paragraph(READING),
    ]
    tables = [(table, rows_of(table, document)) for table in published.tables]
    if any(
        smaller_here(row, table, document, published.host) for table, rows in tables for row in rows
    ):
        blocks.append(Notice(SMALLER))
    blocks += [
        Part(table.title, tuple(_table_blocks(document, published, table, rows)))
        for table, rows in tables
    ]
    return Section("course", "Course report", tuple(blocks))


def _introduction(document: ResultDocument, published: Published) -> str:
    tables = plural(len(published.tables), "table")
    return (
        f"{full_sentence(published.title)} This run measured the rows of its {tables} again on "
        f"this host. {full_sentence(document.suite.description)}"
    )


def _hosts(document: ResultDocument, published: Published) -> Table:
    """Return the table of their host and this one."""
    there, here, far = published.host, document.host, document.far_host
    rows: tuple[tuple[Text, ...], ...] = (
        ("host", there.name, here.hostname),
        ("CPU", there.cpu, here.cpu.model_name or NOTHING),
        ("CPUs", str(there.cpus or NOTHING), str(here_cpus(document))),
        ("memory", _size(there.memory_bytes), _size(here_memory(document))),
        ("disk", there.disk or NOTHING, _disk(document)),
        ("size of the disk", _size(there.disk_bytes), _size(here_disk(document))),
        ("network", there.network or NOTHING, _network(document)),
        ("second host", there.second_host or NOTHING, host_line(far.inventory) if far else "none"),
        ("year", str(there.year or NOTHING), _year(document)),
    )
    known = tuple(row for row in rows if row[1] != NOTHING or row[0] == "CPUs")
    columns = (Column("what"), Column("of the report"), Column("here"))
    return Table("The report's host and this one", columns, (RowGroup(None, known),))


def _size(size: int | None) -> str:
    if size is None:
        return NOTHING
    exact = exact_bytes(size)
    return exact if not exact.endswith(" B") else binary_bytes(size)


def _disk(document: ResultDocument) -> str:
    """Return the file system of disk workloads and the disks below it."""
    scratch = document.host.scratch
    if scratch is None:
        return NOTHING
    disks = scratch.device.disks if scratch.device else ()
    known = [" ".join(filter(None, (disk.model or disk.name, disk.transport))) for disk in disks]
    system = scratch.file_system or "a file system"
    return f"{system} on {', '.join(known)}" if known else system


def _network(document: ResultDocument) -> str:
    """Return the interfaces with the rates of their lines."""
    network = document.host.network
    found = [
        f"{one.name}, {human(one.link_bits_per_second, 'bit/s')}"
        if one.link_bits_per_second
        else f"{one.name}, {one.kind}"
        for one in (network.interfaces if network else ())
        if one.kind != "loopback" and one.state != "down"
    ]
    return first_names(found) if found else "loopback only"


def _year(document: ResultDocument) -> str:
    return utc(document.job.created_unix_s)[:4]


def _table_blocks(
    document: ResultDocument,
    published: Published,
    table: PublishedTable,
    rows: Sequence[CourseRow],
) -> Iterator[Block]:
    theory = f" Its theoretical figure: {full_sentence(table.theory)}" if table.theory else ""
    yield Paragraph(f"From {full_sentence(table.source)}{theory}")
    if table.kind == "samples":
        yield from sample_charts(rows)
    else:
        yield from row_charts(table, rows)
    known = row_table(table, rows, published, document)
    if table.kind == "samples" and not table.columns and not any(row.ours.figure for row in rows):
        pass
    elif len(rows) > ROWS_UNFOLDED:
        title = f"Row by row: {plural(len(rows), 'row')}"
        yield Fold(title, (known,), on_paper=True, brief=InBrief.UNFOLDED)
    else:
        yield known
    yield from reasons_block(rows)
    yield from limit_blocks(rows)
    yield from trusted_blocks(table, document)
    yield from why_blocks(published, table, rows, document)
