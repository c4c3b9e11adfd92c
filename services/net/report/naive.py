"""What the naive workload counted, and what arrived: by how much its count misleads."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import significant
from hostbench.model.result import CaseResult
from hostbench.report.cases import median, share, shown
from hostbench.report.content import Block, Column, Paragraph, RowGroup, Table, Text
from hostbench.report.figures import NOTHING, folded, label
from services.net.report.cases import GOODPUT

ARRIVED, LOST = "arrived_bytes_per_second", "lost_ratio"
COUNTED = Paragraph(
    "Counted: what the near end gave to its kernel, over its time of day. Arrived: what the "
    "receiver got in the same trials, by the receiver's clock. With TCP, sends wait once the "
    "buffers are full, so the two are close in long transfers. With UDP they never are. In mode "
    "echo, the data that came back counts."
)


def counted_and_arrived(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield a row for each case with both figures; nothing if there is none."""
    rows = tuple(_row(case) for case in cases if median(case, ARRIVED))
    if not rows:
        return
    columns = (
        Column("case"),
        Column("counted", figures=True),
        Column("arrived", figures=True),
        Column("times as much", figures=True),
        Column("lost share", figures=True),
    )
    yield COUNTED
    yield folded(Table("Counted and arrived", columns, (RowGroup(None, rows),)), len(rows), of=of)


def _row(case: CaseResult) -> tuple[Text, ...]:
    counted, arrived = median(case, GOODPUT), median(case, ARRIVED)
    return (
        label(case),
        shown(case, GOODPUT),
        shown(case, ARRIVED),
        significant(counted / arrived, 3) if counted and arrived else NOTHING,
        share(case, LOST),
    )
