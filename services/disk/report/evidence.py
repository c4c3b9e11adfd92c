"""Whether figures are the disk's: what the kernel saw of each case, the mode in which it really
ran, and the equivalent fio command."""

from collections.abc import Callable, Iterator, Sequence

from hostbench.base.units import binary_bytes, human
from hostbench.model.result import CaseResult
from hostbench.report.cases import (
    caution_blocks,
    median,
    number,
    resolved_text,
    row_of,
    share,
    shown,
    total,
    warned,
)
from hostbench.report.content import (
    Block,
    Code,
    Column,
    Fold,
    Paragraph,
    Part,
    RowGroup,
    Table,
    Text,
)
from hostbench.report.figures import (
    NOTHING,
    by_workload,
    folded,
    label,
    primary,
)
from services.disk.params import ENGINE, MODE, TOTAL
from services.disk.report.cases import CACHE_CONTAMINATED, PAGE_CACHE_MEASURED, SAMPLED, moved_bytes

EVIDENCE = Paragraph(
    "Read there and written there: the bytes that the kernel counted at the device for this "
    "process, over those that the process requested. 100 % means that every read reached the "
    "device, 0 % that memory answered; a buffered write counts when it makes a page dirty. "
    "Cached: the share of the file's pages in the page cache right before the timed region and "
    "right after it. None of these counts shows what a hypervisor, a controller or the device "
    "itself keeps in memory."
)
Row = Callable[[CaseResult], tuple[Text, ...]]

# What these warnings mean for the figure.
MEANINGS = {
    CACHE_CONTAMINATED: "the page cache answered reads that were meant for the device: not the "
    "disk's figure",
    PAGE_CACHE_MEASURED: "the page cache took what was meant for the device: the speed of system "
    "calls and memory, not of a disk",
    SAMPLED: "the time ended before the total was transferred: the figures are those of a sample, "
    "and the evidence says of how many bytes",
}


def cautions(cases: Sequence[CaseResult]) -> Iterator[Block]:
    """Yield what a reader must know before the figures, the most serious first."""
    yield from caution_blocks(cases, MEANINGS)


def evidence_part(cases: Sequence[CaseResult], *, of: int) -> Part:
    """Return the part; it has no blocks if no case has a figure."""
    measured = [case for case in cases if primary(case)]
    blocks: tuple[Block, ...] = ()
    if measured:
        blocks = (
            EVIDENCE,
            folded(_evidence(measured), len(measured), of=of),
            *_bytes(measured, of=of),
            _commands(measured),
        )
    return Part("Evidence", blocks)


_EVIDENCE = (
    Column("case"),
    Column("cache mode"),
    Column("engine"),
    Column("read there", figures=True),
    Column("written there", figures=True),
    Column("cached before", figures=True),
    Column("after", figures=True),
    Column("warnings"),
)


def _evidence(cases: Sequence[CaseResult]) -> Table:
    return Table("Evidence for each case", _EVIDENCE, _groups(cases, _evidence_row))


def _groups(cases: Sequence[CaseResult], row: Row) -> tuple[RowGroup, ...]:
    return tuple(
        RowGroup(workload, tuple(row(case) for case in found))
        for workload, found in by_workload(cases).items()
    )


def _evidence_row(case: CaseResult) -> tuple[Text, ...]:
    return (
        label(case),
        resolved_text(case, MODE),
        resolved_text(case, ENGINE),
        share(case, "device_read_ratio"),
        share(case, "device_write_ratio"),
        share(case, "cached_ratio_before"),
        share(case, "cached_ratio_after"),
        ", ".join(_caution(case, code) for code in sorted(warned(case))) or NOTHING,
    )


def _caution(case: CaseResult, code: str) -> str:
    """Return the program's warning in a few words."""
    words = code.replace("_", " ")
    moved, requested = moved_bytes(case), number(case, TOTAL)
    if code != SAMPLED or moved is None or requested is None:
        return words
    return f"{words}, {binary_bytes(moved)} of {binary_bytes(requested)}"


def _bytes_of(case: CaseResult, metric: str) -> str:
    value = total(case, metric)
    return NOTHING if value is None else binary_bytes(value)


def _seconds_of(case: CaseResult, metric: str) -> str:
    return human(total(case, metric), "s")


def _size(case: CaseResult, metric: str) -> str:
    value = median(case, metric)
    return NOTHING if value is None else binary_bytes(value)


_BYTES = (
    ("planned_write_bytes", "planned", _bytes_of),
    ("prefilled_bytes", "filled", _bytes_of),
    ("prefill_s", "filling took", _seconds_of),
    ("covered_bytes", "file used", _size),
    ("diskstats_read_bytes", "device read", _bytes_of),
    ("diskstats_write_bytes", "device wrote", _bytes_of),
    ("device_busy_ratio", "busy", share),
    ("fsync_s", "last fsync", shown),
    ("steady_state_range_ratio", "range", share),
    ("steady_state_slope_ratio", "slope", share),
    ("verified_blocks", "verified", shown),
)


def _bytes(cases: Sequence[CaseResult], *, of: int) -> Iterator[Block]:
    """Yield what all trials of a case moved together; shares and times of one trial are medians.
    Range and slope belong to the steady state."""
    columns_used = [one for one in _BYTES if row_of(cases, one[0])]

    def row(case: CaseResult) -> tuple[Text, ...]:
        return (label(case), *(cell(case, metric) for metric, _, cell in columns_used))

    if columns_used:
        columns = (Column("case"), *(Column(title, figures=True) for _, title, _ in columns_used))
        table = Table("What all trials together wrote and read", columns, _groups(cases, row))
        yield folded(table, len(cases), of=of)


def _commands(cases: Sequence[CaseResult]) -> Fold:
    """Return the same cases as fio commands; nothing runs from here."""
    columns = (Column("case"), Column("command"))

    def row(case: CaseResult) -> tuple[Text, ...]:
        return (label(case), _fio(case))

    caption = "The same with fio"
    return Fold(caption, (Table(caption, columns, _groups(cases, row)),))


def _fio(case: CaseResult) -> Text:
    command = case.equivalent_command
    return "it has no equal" if command is None else Code(command)
