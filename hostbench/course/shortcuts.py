"""What the programs of a report did and a sound method does not do: a sentence for each word.

Each sentence says what was done, and then its effect here, with figures of this run. It claims no
more than these show: several shortcuts of one table may affect the same figure.
"""

from collections.abc import Callable, Mapping

from hostbench.base.units import binary_bytes, human, percent
from hostbench.course.evidence import (
    Effect,
    Evidence,
    Pair,
    block_of,
    farthest,
    fewest_threads,
    over,
    smallest_block,
    where,
)
from hostbench.course.figures import Figure, raw_median
from hostbench.course.rows import COUNTED, CourseRow, here_cpus
from hostbench.course.spread import RUNS
from hostbench.model.published import Shortcut
from hostbench.model.result import CaseResult
from hostbench.report.grouping import resolved

NO_FIGURES = "no row of this run has both figures"
PATTERN, RANDOM = "pattern", "random"
# Returns the pair that shows a shortcut best.
Choice = Callable[[list[Pair]], Pair | None]


Builder = Callable[[Evidence], Effect]


def shortcut_sentences(evidence: Evidence) -> tuple[str, ...]:
    """Return a sentence for each word of the table, with figures of this run, or with the reason if
    there are none. Shortcuts that the same figures show share one sentence."""
    found: dict[str, list[Effect]] = {}
    for word in evidence.table.shortcuts:
        effect = _BUILDERS[word](evidence)
        found.setdefault(effect.shown, []).append(effect)
    return tuple(_joined(shown, of_one) for shown, of_one in found.items())


def _joined(shown: str, effects: list[Effect]) -> str:
    together = "; together" if len(effects) > 1 else ""
    what = "; ".join(
        one.what if number == 0 else one.what[:1].lower() + one.what[1:]
        for number, one in enumerate(effects)
    )
    more = "".join(dict.fromkeys(f"; {more}" for one in effects for more in one.more if more))
    return f"{what}{together}: {shown}{more}."


def _effect(what: str, choice: Choice) -> Builder:
    """Return a builder of an effect: what was done, and the pair that shows it best."""

    def build(evidence: Evidence) -> Effect:
        return Effect(what, _shown(evidence, choice(evidence.fair)))

    return build


def _shown(evidence: Evidence, pair: Pair | None) -> str:
    return evidence.both(pair) if pair else NO_FIGURES


# ---- CPU ----


def _loop_counted(evidence: Evidence) -> Effect:
    pair = fewest_threads(evidence.fair)
    what = "The loop's own increment, comparison and jump take time, but count as no operation"
    return Effect(what, _shown(evidence, pair), (_loop_time(pair),))


def _loop_time(pair: Pair | None) -> str:
    """Return what the empty loop took of the naive time, if its workload reports that."""
    ratio = raw_median(pair.naive.case, "empty_loop_ratio") if pair else None
    return (
        ""
        if ratio is None
        else f"an empty loop of as many passes takes {percent(ratio)} of that time"
    )


def _loop_subtracted(evidence: Evidence) -> Effect:
    pair = fewest_threads(evidence.fair)
    what = "The time of an empty loop was measured separately and subtracted"
    more = [_loop_time(pair)]
    if pair and pair.naive.variation is not None and pair.ours.variation is not None:
        more.append(
            f"the difference varies by {percent(pair.naive.variation)} of its mean from trial to "
            f"trial, ours by {percent(pair.ours.variation)}"
        )
    return Effect(what, _shown(evidence, pair), tuple(more))


def _scalar_only(evidence: Evidence) -> Effect:
    what = "Instructions had one operand each, but the limit counts vectors"
    found = max(evidence.measured, key=lambda one: one[1].efficiency or 0.0, default=None)
    if found is None:
        return Effect(what, NO_FIGURES)
    row, figure = found
    isa = resolved(figure.case).get("isa")
    with_ = f" with {isa} instructions" if isa is not None else ""
    pair = farthest([pair for pair in evidence.pairs if pair.row is row])
    naive = f", the naive way {evidence.with_unit(pair.naive.mean)}" if pair else ""
    limit = f", {percent(figure.efficiency)} of its limit" if figure.efficiency else ""
    return Effect(
        what, f"{row.title} gives {evidence.with_unit(figure.median)}{with_}{limit}{naive}"
    )


# ---- memory and disk ----


def _is_random(pair: Pair) -> bool:
    return pair.naive.case.params.get(PATTERN) == RANDOM


def _rand_per_access(evidence: Evidence) -> Effect:
    pair = smallest_block(where(evidence.fair, _is_random))
    what = "The measured time includes a random number for each access"
    return Effect(what, _shown(evidence, pair), (_without_rand(pair, evidence),) if pair else ())


def _without_rand(pair: Pair, evidence: Evidence) -> str:
    """Return the naive case that differs only in the pattern, if there is one."""
    case = pair.naive.case
    wanted = {**case.params, PATTERN: "sequential"}
    in_order = next(
        (
            one
            for one in evidence.document.cases
            if one.workload == case.workload and one.params == wanted
        ),
        None,
    )
    figures = (raw_median(case), raw_median(in_order)) if in_order else (None, None)
    if not _is_random(pair) or None in figures:
        return ""
    unit = case.metrics[case.primary].unit
    return (
        f"in order, without random numbers, the naive way gives {human(figures[1], unit)} instead "
        f"of {human(figures[0], unit)}"
    )


def _clock_per_operation(evidence: Evidence) -> Effect:
    what = "The clock was read before and after each block"
    pair = smallest_block(evidence.fair)
    naive, ours = (_block_time_s(one.case) for one in (pair.naive, pair.ours)) if pair else (0, 0)
    more = f"a block takes {human(naive, 's')} with that and {human(ours, 's')} without it"
    return Effect(what, _shown(evidence, pair), (more,) if naive and ours else ())


def _block_time_s(case: CaseResult) -> float | None:
    """Return the time of a block from a rate of bytes, all threads together."""
    metric, block = case.metrics.get(case.primary), block_of(case)
    if metric is None or metric.unit != "byte/s" or not metric.statistics.median:
        return None
    return block / metric.statistics.median if block < float("inf") else None


def _lock_per_operation(evidence: Evidence) -> Effect:
    what = "Threads took a lock around each block and its counter"
    pairs = [pair for pair in evidence.pairs if pair.row.threads]
    first = smallest_block(pairs)
    if first is None:
        return Effect(what, NO_FIGURES)
    last = max(
        (pair for pair in pairs if _same_line(pair.row, first.row)),
        key=lambda pair: pair.row.threads or 0,
    )
    scaling = (
        f"the naive figure at {last.row.name} is {over(last.naive.mean / first.naive.mean)} that "
        f"at {first.row.name}, ours {over(last.ours.median / first.ours.median)} that"
    )
    return Effect(what, _shown(evidence, last), (scaling,) if last is not first else ())


def _same_line(one: CourseRow, other: CourseRow) -> bool:
    """Whether two rows differ only in their threads."""
    keys = [{n: v for n, v in row.key.items() if n not in COUNTED} for row in (one, other)]
    return one.operation == other.operation and keys[0] == keys[1]


def _copied_once(evidence: Evidence) -> Effect:
    what = "A copied byte counts once, although the memory reads it and writes it"
    rates = [
        (row, figure)
        for row, figure in evidence.measured
        if figure.case.metrics[figure.case.primary].unit == "byte/s"
        if figure.case.workload in _READ_AND_WRITTEN
    ]
    if not rates:
        return Effect(what, "no row of this run counts both")
    row, figure = max(rates, key=lambda one: raw_median(one[1].case) or 0.0)
    share = f", {percent(figure.efficiency)} of their limit" if figure.efficiency else ""
    return Effect(
        what,
        f"for {row.title} this host read and wrote {human(raw_median(figure.case), 'byte/s')}"
        f"{share}; counted as in the table, that is {evidence.with_unit(figure.median)}",
    )


# Their rates count the bytes read and the bytes written.
_READ_AND_WRITTEN = frozenset({"mem.read_write", "mem.copy"})


def _blocks_in_cache(evidence: Evidence) -> Effect:
    caches = [
        cache.size_bytes
        for cache in evidence.document.host.caches
        if cache.size_bytes and cache.type != "Instruction"
    ]
    size = f" (the largest here has {binary_bytes(max(caches))})" if caches else ""
    better = evidence.table.better == "higher"
    pair = (max if better else min)(evidence.fair, key=lambda p: p.ratio, default=None)
    what = f"The program used the same block again and again, so it stayed in a cache{size}"
    return Effect(what, _shown(evidence, pair))


def _time_per_block(evidence: Evidence) -> Effect:
    what = "The time is the total over the number of blocks, not how long one block waits"
    found = smallest_block(evidence.fair)
    row, figure = (found.row, found.ours) if found else next(iter(evidence.measured), (None, None))
    waits = _waiting(evidence, figure)
    if row is None or figure is None or waits is None:
        return Effect(what, "no case of this run measures the wait")
    return Effect(
        what,
        f"measured like that, {row.title} is {evidence.with_unit(figure.median)} here, but {waits}",
    )


def _waiting(evidence: Evidence, figure: Figure | None) -> str | None:
    """Return what really waits: a dependent access, a disk operation, a round trip."""
    of_case = raw_median(figure.case, "latency_p50_s") if figure else None
    if of_case is not None:
        return f"one of its operations waits {human(of_case, 's')} at the median"
    workload, metric, wait = _WAITS.get(evidence.table.subsystem, ("", None, ""))
    times = [
        value
        for case in evidence.document.cases
        if case.workload == workload and (value := raw_median(case, metric)) is not None
    ]
    # For chases the longest, which no cache holds; for others the quickest.
    quickest = max if workload == "mem.pointer_chase" else min
    return f"{wait} {human(quickest(times), 's')}" if times else None


_WAITS: Mapping[str, tuple[str, str | None, str]] = {
    "mem": ("mem.pointer_chase", None, "an access that must wait for the one before it takes"),
    "disk": ("disk.rand_read", "latency_p50_s", "a random read waits"),
    "net": ("net.tcp_rr", None, "a round trip takes"),
}


# ---- network ----


def _sent_not_received(evidence: Evidence) -> Effect:
    what = "The sender counted what it gave to its own kernel, not what arrived"
    pair = farthest(where(evidence.fair, lambda p: p.naive.case.params.get("protocol") == "udp"))
    return Effect(what, _shown(evidence, pair), (_arrived(pair.naive.case),) if pair else ())


def _arrived(case: CaseResult) -> str:
    """Return a clause on what was sent and what arrived; empty if the latter is unknown."""
    sent, arrived = raw_median(case), raw_median(case, "arrived_bytes_per_second")
    if sent is None or arrived is None:
        return ""
    lost = raw_median(case, "lost_ratio")
    share = f", {percent(lost)} of the datagrams were lost" if lost else ""
    return (
        f"it sent {human(sent, 'byte/s')}, and {human(arrived, 'byte/s')} arrived by the "
        f"receiver's clock{share}"
    )


def _no_wait_for_answer(evidence: Evidence) -> Effect:
    what = "The program stopped the clock when it had sent, without waiting for an answer"
    found = [(row, figure) for row, figure in evidence.measured if row.mean]
    if not found:
        return Effect(what, NO_FIGURES)
    row, figure = min(found, key=lambda one: (one[0].mean or 0.0) / one[1].median)
    pair = next((pair for pair in evidence.pairs if pair.row is row), None)
    naive = f", the naive way {evidence.with_unit(pair.naive.mean)}" if pair else ""
    return Effect(
        what,
        f"the published figure of {row.title} is {evidence.with_unit(row.mean or 0.0)}; with the "
        f"answer it is {evidence.with_unit(figure.median)} here{naive}",
    )


def _more_threads_than_cpus(evidence: Evidence) -> Effect:
    theirs, here = evidence.published.host.cpus, here_cpus(evidence.document)
    cpus = f"{theirs} there, " if theirs else ""
    what = f"Some rows have more threads than CPUs ({cpus}{here} here)"
    row, figure = max(evidence.measured, key=lambda one: one[0].threads or 0, default=(None, None))
    if row is None or figure is None or not row.threads:
        return Effect(what, "no row of this run shows it")
    # If all threads of the row have a CPU here, compare with the rows in which all threads had one
    # there.
    enough = min(here, theirs or here) if row.threads <= here else here
    line = [one for one in evidence.measured if _same_line(one[0], row)]
    fitting = [one for one in line if 0 < (one[0].threads or 0) <= enough and one[0] is not row]
    own = ", where each has a CPU of its own" if row.threads <= here else ""
    gives = f"{row.title} gives {evidence.with_unit(figure.median)}"
    if not fitting:
        return Effect(what, f"{gives}{own}")
    fewer, best = max(fitting, key=lambda one: one[0].threads or 0)
    ratio = over(figure.median / best.median)
    return Effect(
        what, f"{gives}, {ratio} the {evidence.with_unit(best.median)} of {fewer.name}{own}"
    )


_BUILDERS: Mapping[Shortcut, Builder] = {
    "loop_counted": _loop_counted,
    "loop_subtracted": _loop_subtracted,
    "operands_in_memory": _effect(
        "The loop loads each operand from memory and stores it again, like code without "
        "optimisation",
        fewest_threads,
    ),
    "compare_counter": _effect(
        "Each comparison also incremented a counter in memory, and each increment waits for the "
        "one before it",
        fewest_threads,
    ),
    "vectors_through_memory": _effect(
        "Each operation loaded its vectors before it and stored them after it, one after another",
        fewest_threads,
    ),
    "scalar_only": _scalar_only,
    "rand_per_access": _rand_per_access,
    "clock_per_operation": _clock_per_operation,
    "lock_per_operation": _lock_per_operation,
    "copied_once": _copied_once,
    "blocks_in_cache": _blocks_in_cache,
    "time_per_block": _time_per_block,
    "page_cache": _effect(
        "The program had just written the file, so it was in the page cache: the figure is that of "
        "memory, not of the disk",
        farthest,
    ),
    "stdio_buffer": _effect(
        "Blocks went through the C library's buffer, which reads and writes blocks of its own size",
        smallest_block,
    ),
    "sync_each": _effect("Each write waited until the data was on the device", fewest_threads),
    "sent_not_received": _sent_not_received,
    "there_and_back": _effect(
        "Each block went there and back before the next one left, but counts once", farthest
    ),
    "no_wait_for_answer": _no_wait_for_answer,
    "more_threads_than_cpus": _more_threads_than_cpus,
    **RUNS,
}
