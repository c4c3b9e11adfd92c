"""What the programs of a report did that a sound method does not: a sentence for each word.

Each says what was done and then what it comes to here, with figures of this run. It claims no more
than these show: several shortcuts of one table act on the same figure.
"""

from collections.abc import Callable, Mapping

from hostbench.models.published import Shortcut
from hostbench.models.result import CaseResult
from hostbench.report.course.evidence import (
    Evidence,
    Pair,
    block_of,
    farthest,
    fewest_threads,
    over,
    smallest_block,
    where,
)
from hostbench.report.course.figures import Figure, raw_median
from hostbench.report.course.rows import COUNTED, CourseRow, here_cpus
from hostbench.report.course.spread import RUNS
from hostbench.report.grouping import resolved
from hostbench.units import binary_bytes, human, percent

Builder = Callable[[Evidence], str]
NO_FIGURES = "no row of this run has both figures"
PATTERN, RANDOM = "pattern", "random"
# Of a pair the one that shows a shortcut best.
Choice = Callable[[list[Pair]], Pair | None]


def sentence_of(word: Shortcut, evidence: Evidence) -> str:
    """The sentence of a word, with figures of this run or with why it has none."""
    return f"{_BUILDERS[word](evidence)}."


def _told(what: str, choice: Choice) -> Builder:
    """What was done, and the pair that shows it best."""

    def build(evidence: Evidence) -> str:
        return f"{what}: {_shown(evidence, choice(evidence.pairs))}"

    return build


def _shown(evidence: Evidence, pair: Pair | None) -> str:
    return evidence.both(pair) if pair else NO_FIGURES


# ---- CPU ----


def _loop_counted(evidence: Evidence) -> str:
    what = "The loop's own increment, comparison and jump take time and are not counted"
    pair = fewest_threads(evidence.pairs)
    said = f"{what}: {_shown(evidence, pair)}"
    return f"{said}{_loop_time(pair)}"


def _loop_time(pair: Pair | None) -> str:
    """What the empty loop took of the naive time, where its workload tells."""
    metrics = pair.naive.case.metrics if pair else {}
    for name, metric in metrics.items():
        if "loop" in name and metric.unit in ("1", "s"):
            value = metric.statistics.median
            said = percent(value) if metric.unit == "1" else human(value, metric.unit)
            return f"; the empty loop takes {said}"
    return ""


def _loop_subtracted(evidence: Evidence) -> str:
    pair = fewest_threads(evidence.pairs)
    said = (
        "The time of an empty loop was measured apart and subtracted, so that a difference of two "
        f"times of like size is what was reported: {_shown(evidence, pair)}{_loop_time(pair)}"
    )
    if pair and pair.naive.variation is not None and pair.ours.variation is not None:
        said += (
            f"; its trials scatter by {percent(pair.naive.variation)} of their mean, ours by "
            f"{percent(pair.ours.variation)}"
        )
    return said


def _scalar_only(evidence: Evidence) -> str:
    what = "One operand an instruction, where the limit counts vectors"
    found = max(evidence.measured, key=lambda one: one[1].efficiency or 0.0, default=None)
    if found is None:
        return f"{what}: {NO_FIGURES}"
    row, figure = found
    isa = resolved(figure.case).get("isa")
    with_ = f" with {isa}" if isa is not None else ""
    pair = farthest([pair for pair in evidence.pairs if pair.row is row])
    naive = f", the naive way {evidence.said(pair.naive.median)}" if pair else ""
    limit = f", {percent(figure.efficiency)} of its limit" if figure.efficiency else ""
    return f"{what}: {row.title} gives {evidence.said(figure.median)}{with_}{limit}{naive}"


# ---- memory and disk ----


def _is_random(pair: Pair) -> bool:
    return pair.naive.case.params.get(PATTERN) == RANDOM


def _rand_per_access(evidence: Evidence) -> str:
    pair = smallest_block(where(evidence.pairs, _is_random))
    said = f"A random number was drawn for each access, in the time: {_shown(evidence, pair)}"
    in_order = _in_order(pair, evidence) if pair else None
    if pair is None or in_order is None:
        return said
    ours, other = raw_median(pair.naive.case), raw_median(in_order)
    if ours is None or other is None:
        return said
    unit = pair.naive.case.metrics[pair.naive.case.primary].unit
    return (
        f"{said}; the naive way in order, without it, gives {human(other, unit)} where this is "
        f"{human(ours, unit)}"
    )


def _in_order(pair: Pair, evidence: Evidence) -> CaseResult | None:
    """The naive case that differs in nothing but the pattern."""
    case = pair.naive.case
    if not _is_random(pair):
        return None
    wanted = {**case.params, PATTERN: "sequential"}
    same = (
        one
        for one in evidence.document.cases
        if one.workload == case.workload and one.params == wanted and one.primary in one.metrics
    )
    return next(same, None)


def _clock_per_operation(evidence: Evidence) -> str:
    pair = smallest_block(evidence.pairs)
    said = f"The clock was read before and after each block: {_shown(evidence, pair)}"
    times = (_block_time_s(pair.naive.case), _block_time_s(pair.ours.case)) if pair else None
    if times is None or times[0] is None or times[1] is None:
        return said
    return f"{said}; a block takes {human(times[0], 's')} so and {human(times[1], 's')} without it"


def _block_time_s(case: CaseResult) -> float | None:
    """Of a rate of bytes: the time of a block, all threads together."""
    metric, block = case.metrics.get(case.primary), block_of(case)
    if metric is None or metric.unit != "byte/s" or not metric.statistics.median:
        return None
    return block / metric.statistics.median if block < float("inf") else None


def _lock_per_operation(evidence: Evidence) -> str:
    what = "Threads took a lock around each block and its counter"
    pairs = [pair for pair in evidence.pairs if pair.row.threads]
    first = smallest_block(pairs)
    if first is None:
        return f"{what}: {NO_FIGURES}"
    last = max(
        (pair for pair in pairs if _same_line(pair.row, first.row)),
        key=lambda pair: pair.row.threads or 0,
    )
    return (
        f"{what}: {_shown(evidence, last)}; from {first.row.name} to {last.row.name} the naive "
        f"figure becomes {over(last.naive.median / first.naive.median)} itself, ours "
        f"{over(last.ours.median / first.ours.median)} itself"
    )


def _same_line(one: CourseRow, other: CourseRow) -> bool:
    """Whether two rows differ in nothing but their threads."""
    keys = [{n: v for n, v in row.key.items() if n not in COUNTED} for row in (one, other)]
    return one.operation == other.operation and keys[0] == keys[1]


def _copied_once(evidence: Evidence) -> str:
    what = "A copied byte counts once, though memory is read and written for it"
    rates = [
        (row, figure)
        for row, figure in evidence.measured
        if figure.case.metrics[figure.case.primary].unit == "byte/s"
    ]
    if not rates:
        return f"{what}: no row of this run has a figure"
    row, figure = max(rates, key=lambda one: raw_median(one[1].case) or 0.0)
    share = f", {percent(figure.efficiency)} of their limit" if figure.efficiency else ""
    return (
        f"{what}: {row.title} stands for {human(raw_median(figure.case), 'byte/s')} read and "
        f"written here{share}, where the table says {evidence.said(figure.median)}"
    )


def _blocks_in_cache(evidence: Evidence) -> str:
    what = "The same block was used again and again and stays in a cache"
    caches = [
        cache.size_bytes
        for cache in evidence.document.host.caches
        if cache.size_bytes and cache.type != "Instruction"
    ]
    size = f" (the largest here has {binary_bytes(max(caches))})" if caches else ""
    better = evidence.table.better == "higher"
    pair = (max if better else min)(evidence.pairs, key=lambda p: p.ratio, default=None)
    return f"{what}{size}: {_shown(evidence, pair)}"


def _time_per_block(evidence: Evidence) -> str:
    what = "The time is that of all blocks over their number, not what one of them waits"
    found = smallest_block(evidence.pairs)
    row, figure = (found.row, found.ours) if found else next(iter(evidence.measured), (None, None))
    waits = _waiting(evidence, figure)
    if row is None or figure is None or waits is None:
        return f"{what}: nothing in this run measures the waiting beside it"
    return f"{what}: {row.title} is {evidence.said(figure.median)} so here, and {waits}"


def _waiting(evidence: Evidence, figure: Figure | None) -> str | None:
    """What really waits: a dependent access, an operation of a disk, a round trip."""
    of_case = raw_median(figure.case, "latency_p50_s") if figure else None
    if of_case is not None:
        return f"one of its operations waits {human(of_case, 's')} at the median"
    words = {
        "mem": ("mem.pointer_chase", "an access that must wait for the one before it takes"),
        "net": ("net.tcp_rr", "a round trip takes"),
        "disk": ("disk.rand_read", "a random read waits"),
    }
    workload, said = words.get(evidence.table.subsystem, ("", ""))
    metric = "latency_p50_s" if workload == "disk.rand_read" else None
    times = [
        value
        for case in evidence.document.cases
        if case.workload == workload and (value := raw_median(case, metric)) is not None
    ]
    if not times:
        return None
    # Of chases the largest one, which no cache holds; of others the quickest.
    value = max(times) if workload == "mem.pointer_chase" else min(times)
    return f"{said} {human(value, 's')}"


# ---- network ----


def _sent_not_received(evidence: Evidence) -> str:
    what = "What was handed to the sender's own kernel was counted, arrived or not"
    pair = farthest(where(evidence.pairs, lambda p: p.naive.case.params.get("protocol") == "udp"))
    said = f"{what}: {_shown(evidence, pair)}"
    arrived = _arrived(pair.naive.case) if pair else None
    return f"{said}; of what the naive way sent {arrived}" if arrived else said


def _arrived(case: CaseResult) -> str | None:
    """How much of it came, where its workload tells."""
    for name, metric in case.metrics.items():
        known = "receive" in name or "arrived" in name
        if known and metric.unit in ("1", "byte/s"):
            value = metric.statistics.median
            is_share = metric.unit == "1"
            return f"{percent(value) if is_share else human(value, metric.unit)} arrived"
    return None


def _no_wait_for_answer(evidence: Evidence) -> str:
    what = "The time is that of sending without waiting for an answer"
    found = [(row, figure) for row, figure in evidence.measured if row.mean]
    if not found:
        return f"{what}: {NO_FIGURES}"
    row, figure = min(found, key=lambda one: (one[0].mean or 0.0) / one[1].median)
    pair = next((pair for pair in evidence.pairs if pair.row is row), None)
    naive = f", the naive way {evidence.said(pair.naive.median)}" if pair else ""
    return (
        f"{what}: {row.title} says {evidence.said(row.mean or 0.0)}, and a round trip takes "
        f"{evidence.said(figure.median)} here{naive}"
    )


def _more_threads_than_cpus(evidence: Evidence) -> str:
    theirs, here = evidence.published.host.cpus, here_cpus(evidence.document)
    cpus = f"{theirs} CPUs there, " if theirs else ""
    what = f"Some rows have more threads than CPUs ({cpus}{here} here)"
    many = [one for one in evidence.measured if (one[0].threads or 0) > here]
    if not many:
        return f"{what}: none that was measured here"
    row, figure = max(many, key=lambda one: one[0].threads or 0)
    fitting = [
        one
        for one in evidence.measured
        if _same_line(one[0], row) and 0 < (one[0].threads or 0) <= here
    ]
    if not fitting:
        return f"{what}: {row.title} gives {evidence.said(figure.median)}"
    fewer, best = max(fitting, key=lambda one: one[0].threads or 0)
    return (
        f"{what}: {row.title} gives {evidence.said(figure.median)}, "
        f"{over(figure.median / best.median)} what {fewer.name} gives, {evidence.said(best.median)}"
    )


_BUILDERS: Mapping[Shortcut, Builder] = {
    "loop_counted": _loop_counted,
    "loop_subtracted": _loop_subtracted,
    "operands_in_memory": _told(
        "Every operand is loaded from memory and stored there again, as without optimisation",
        fewest_threads,
    ),
    "compare_counter": _told(
        "Beside each comparison a counter in memory was incremented, and each increment waits for "
        "the one before it",
        fewest_threads,
    ),
    "vectors_through_memory": _told(
        "Vectors were loaded before and stored after each operation, one after another",
        fewest_threads,
    ),
    "scalar_only": _scalar_only,
    "rand_per_access": _rand_per_access,
    "clock_per_operation": _clock_per_operation,
    "lock_per_operation": _lock_per_operation,
    "copied_once": _copied_once,
    "blocks_in_cache": _blocks_in_cache,
    "time_per_block": _time_per_block,
    "page_cache": _told(
        "The file was in the page cache, as it had just been written: memory was measured and not "
        "the disk",
        farthest,
    ),
    "stdio_buffer": _told(
        "Blocks went through the buffer of the C library, which reads and writes its own size",
        smallest_block,
    ),
    "sync_each": _told("Every write waited until the device had it", fewest_threads),
    "sent_not_received": _sent_not_received,
    "there_and_back": _told(
        "Each block went there and came back before the next one left, and counts once", farthest
    ),
    "no_wait_for_answer": _no_wait_for_answer,
    "more_threads_than_cpus": _more_threads_than_cpus,
    **RUNS,
}
