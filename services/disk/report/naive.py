"""What the naive figures leave out: that the file was in memory, and what the disk still had to do
when their clock stopped."""

from collections.abc import Iterator, Sequence

from hostbench.model.result import CaseResult
from hostbench.report.cases import name_of, row_of, share, shown
from hostbench.report.content import Block, Column, Paragraph, RowGroup, Table, Text
from hostbench.report.figures import by_workload, folded, label, primary
from services.disk.report.cases import NAIVE

INTRODUCTION = Paragraph(
    "The file was in the page cache before the trials began, as for a program that has just "
    "written it, and nothing forced written data to the device. Read there: the share of bytes "
    "that the device read. After the clock: how long an fsync took after the time was taken; with "
    "it: the same bytes over both times."
)
_COLUMNS = (
    ("cached_ratio_before", "cached before", share),
    ("device_read_ratio", "read there", share),
    ("bytes_per_second", "naive figure", shown),
    ("sync_after_s", "after the clock", shown),
    ("synced_bytes_per_second", "with it", shown),
)


def naive_evidence(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield a row for each of the disk's naive cases that has a figure; nothing if there is
    none."""
    measured = [case for case in cases if primary(case) and name_of(case) in NAIVE]
    if not measured:
        return
    columns_used = [one for one in _COLUMNS if row_of(measured, one[0])]

    def row(case: CaseResult) -> tuple[Text, ...]:
        return (label(case), *(cell(case, metric) for metric, _, cell in columns_used))

    columns = (Column("case"), *(Column(title, figures=True) for _, title, _ in columns_used))
    groups = tuple(
        RowGroup(workload, tuple(row(case) for case in found))
        for workload, found in by_workload(measured).items()
    )
    table = Table("Memory and disk behind the naive figures", columns, groups)
    yield INTRODUCTION
    yield folded(table, len(measured), of=of)
