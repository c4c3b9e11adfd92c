"""Whether the device behaves like an SSD or like a spinning disk, from the time of its reads.

`rotational` in sysfs does not show it: for a virtual disk, it has what was configured. Two cases of
the document are compared: random and sequential reads of one small block at a time (one thread,
queue depth 1, direct, same block) that differ in nothing else.

Before a random block can be read, a head must move and the platter turn. Half a turn takes 2.0 ms
at 15,000 turns a minute, the fastest that existed (3.0 ms at 10,000, 4.2 ms at 7,200). The seek
comes in addition, even to the next track. So:

- *spinning disk*: the median random read takes at least SPINNING_LEAST_S (2 ms), and at least
  SEEK_RATIO (4) times a sequential one, whose next block is already in the drive's buffer. If both
  are equally slow, the cause is something else, a network or a throttle.
- *SSD*: the median takes less than FLASH_MOST_S (1 ms: half of the least half turn, and above what
  a busy flash or network volume takes). The 99th percentile is below SPINNING_LEAST_S, so that not
  even one read in a hundred waited for a head behind a cache. And the median is at least
  FLASH_RATIO (1.3) times a sequential read. This last condition distinguishes flash from memory: a
  cache that holds the file answers both in the same time, within a few percent, while a sequential
  read of flash mostly finds its page open (a page of 4 to 16 KiB holds several blocks) or read
  ahead.
- *cannot tell*: everything else. A cache of a hypervisor, of a controller or of the drive may serve
  a file that was just written, and hides the device. An SSD that answers both in the same time is
  not called one.

Only reads count, because most devices take writes into a cache. Figures that are disturbed or came
from the page cache decide nothing.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hostbench.base.units import binary_bytes, full_sentence, human, percent, significant, tick
from hostbench.model.result import CaseResult, Verdict
from hostbench.report.cases import median, name_of, number, share, shown
from hostbench.report.content import Column, Paragraph, Part, RowGroup, Strong, Table, Text
from hostbench.report.grouping import THREADS, resolved
from services.disk.params import BLOCK, DEPTH, FILE, MODE, RATE
from services.disk.report.cases import is_cached

SPINNING_LEAST_S = 2e-3
SEEK_RATIO = 4.0
FLASH_MOST_S = 1e-3
FLASH_RATIO = 1.3
# With larger blocks, a sequential read is several requests, and its time is that of the transfer.
BLOCK_MOST = 16 * 1024
DEVICE_READ_LEAST = 0.95
READS = ("rand_read", "seq_read")


class Kind(StrEnum):
    """What a device behaves like."""

    SSD = "It behaves like an SSD"
    SPINNING = "It behaves like a spinning disk"
    UNKNOWN = "It is unknown whether it is an SSD or a spinning disk"


@dataclass(frozen=True)
class Behaviour:
    """The conclusion, its reason, and the two cases behind it; None without such cases."""

    kind: Kind
    why: str
    pair: tuple[CaseResult, ...] = ()


def behaviour_part(cases: Sequence[CaseResult]) -> Part:
    """Return the section's part on it; empty if nothing was read from a disk."""
    title = "What kind of device it behaves like"
    if not any(name_of(case) in READS for case in cases):
        return Part(title, ())
    found = behaviour(cases)
    text: Text = (Strong(found.kind), ": ", full_sentence(found.why))
    table = (_table(found.pair),) if found.pair else ()
    return Part(title, (Paragraph(text), *table, RULE))


RULE = Paragraph(
    f"The rule: a spinning disk needs {tick(SPINNING_LEAST_S, 's')} or more for a random read, "
    f"half a turn at 15,000 turns a minute, and at least {SEEK_RATIO:g} times as long as for a "
    f"sequential one. An SSD stays below {tick(FLASH_MOST_S, 's')} in the median and below "
    f"{tick(SPINNING_LEAST_S, 's')} in 99 of 100, and still needs {FLASH_RATIO:g} times a "
    "sequential read: a cache in memory would answer both alike. What the kernel says of rotation "
    "counts for nothing: a virtual disk says what somebody configured."
)


def behaviour(cases: Sequence[CaseResult]) -> Behaviour:
    """Return the conclusion from these cases."""
    pair = next(_pairs(cases), None)
    if pair is None:
        return Behaviour(
            Kind.UNKNOWN,
            "that takes rand_read and seq_read of the same block of at most "
            f"{binary_bytes(BLOCK_MOST)}, both with cache_mode direct, one thread and queue "
            "depth 1",
        )
    doubt = next((why for case in pair if (why := _doubt(case))), None)
    if doubt is not None:
        return Behaviour(Kind.UNKNOWN, doubt, pair)
    kind, why = _judged(*pair)
    return Behaviour(kind, why, pair)


def _pairs(cases: Sequence[CaseResult]) -> Iterator[tuple[CaseResult, CaseResult]]:
    """Yield random and sequential reads that differ in nothing else, the smallest blocks first."""
    random, sequential = (
        sorted(
            (case for case in cases if name_of(case) == name and _is_one_at_a_time(case)),
            key=lambda case: number(case, BLOCK) or 0.0,
        )
        for name in READS
    )
    for one in random:
        for other in sequential:
            if all(number(one, name) == number(other, name) for name in (BLOCK, FILE)):
                yield one, other


def _is_one_at_a_time(case: CaseResult) -> bool:
    params = resolved(case)
    return (
        0 < (number(case, BLOCK) or 0.0) <= BLOCK_MOST
        and number(case, THREADS) == 1
        and number(case, DEPTH) == 1
        and number(case, RATE) is None
        and str(params.get(MODE)).startswith("direct")
        and params.get("distribution", "uniform") == "uniform"
    )


def _doubt(case: CaseResult) -> str | None:
    """Return why a figure decides nothing, or None if it may."""
    from_device = median(case, "device_read_ratio")
    if case.verdict not in (Verdict.CLEAN, Verdict.NOISY):
        return f"{case.title} is {case.verdict or 'not finished'}"
    if is_cached(case) or (from_device is not None and from_device < DEVICE_READ_LEAST):
        return f"{case.title} was read from the page cache ({percent(from_device)} at the device)"
    if not median(case, "latency_p50_s"):
        return f"{case.title} has no median latency"
    return None


def _judged(random: CaseResult, sequential: CaseResult) -> tuple[Kind, str]:
    half, most = median(random, "latency_p50_s"), median(random, "latency_p99_s")
    ordered = median(sequential, "latency_p50_s")
    assert half and ordered
    ratio = half / ordered
    block = binary_bytes(number(random, BLOCK) or 0.0)
    text = (
        f"a random read of {block} takes {human(half, 's')} in the median, "
        f"{significant(ratio, 2)} times a sequential one ({human(ordered, 's')})"
    )
    if half >= SPINNING_LEAST_S and ratio >= SEEK_RATIO:
        return Kind.SPINNING, f"{text}, as heads that must move and wait"
    if half >= FLASH_MOST_S:
        return Kind.UNKNOWN, f"{text}: neither what flash nor what heads alone explain"
    if most is None:
        return Kind.UNKNOWN, f"{text}, but too few were measured to know the slowest of a hundred"
    if most >= SPINNING_LEAST_S:
        return Kind.UNKNOWN, (
            f"{text}, but one in a hundred takes {human(most, 's')} or more: a cache may serve "
            "most of them and something slow the rest"
        )
    if ratio < FLASH_RATIO:
        return Kind.UNKNOWN, (
            f"{text}: where a random read costs no more, a cache in memory may have served both"
        )
    return Kind.SSD, f"{text}, and 99 of 100 take less than {human(most, 's')}"


def _table(pair: Sequence[CaseResult]) -> Table:
    columns = (
        Column("case"),
        Column("50 %", figures=True),
        Column("99 %", figures=True),
        Column("read at the device", figures=True),
        Column("cached before", figures=True),
    )
    rows = tuple(
        (
            case.title,
            shown(case, "latency_p50_s"),
            shown(case, "latency_p99_s"),
            share(case, "device_read_ratio"),
            share(case, "cached_ratio_before"),
        )
        for case in pair
    )
    return Table("The reads that this rests on", columns, (RowGroup(None, rows),))
