"""The levels that the latency shows, beside what the kernel says of the caches."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from hostbench.base.units import binary_bytes, human
from hostbench.model.host import HostInventory
from hostbench.model.result import CaseResult
from hostbench.report.content import Block, Bullets, CurveMark, Paragraph
from hostbench.report.figures import primary
from services.mem.params import CHAINS, PAGES, SHARE, SIZE, SMALL_PAGES, STRIDE, THREADS
from services.mem.report.values import INSTRUCTION, median_of, number_of, requested
from services.mem.topology import (
    SAME_SIZE_RATIO,
    SIZES_LEAST,
    Agreement,
    Curve,
    Finding,
    KernelCache,
    compare,
    find_levels,
)

# Below, 4 KiB pages bend the curve as well.
HUGE_RATIO = 0.9
BEST = "access_time_s_best"
MEANING = Paragraph(
    "Levels of the hierarchy as the curve shows them. A level ends between the last working set "
    "that is as fast as the smaller ones and the next one. Times are those of the best slice, "
    "since other programs and guests can only lengthen them. A cache is as the kernel says if its "
    "size is between these two working sets, or within 10 % of them."
)


@dataclass(frozen=True)
class FoundLevels:
    """The levels of the one curve that shows them best, and the kernel's caches beside them."""

    curve: Curve
    findings: tuple[Finding, ...]
    huge: bool


def found_levels(cases: Sequence[CaseResult], host: HostInventory) -> FoundLevels | None:
    """Return the levels of one thread's curve, of huge pages if there is one; None if no curve has
    enough sizes."""
    curves: dict[frozenset[tuple[str, str]], list[CaseResult]] = {}
    for case in cases:
        if primary(case) and number_of(case, SIZE) and case.params.get(THREADS) == 1:
            params = {
                (name, str(value))
                for name, value in requested(case).items()
                if name not in (SIZE, SHARE, CHAINS, STRIDE)
            }
            curves.setdefault(frozenset(params), []).append(case)
    enough = [found for found in curves.values() if len(found) >= SIZES_LEAST]
    if not enough:
        return None
    best = max(enough, key=lambda found: (found[0].params.get(PAGES) != SMALL_PAGES, len(found)))
    points = [
        (size, time_s)
        for case in best
        if (size := number_of(case, SIZE)) and (time_s := least_s(case))
    ]
    curve = find_levels(points)
    ratios = [median_of(case, "huge_page_ratio") or 0.0 for case in best]
    findings = tuple(compare(curve.levels, _caches(host))) if curve.levels else ()
    return FoundLevels(curve, findings, huge=min(ratios) >= HUGE_RATIO)


def least_s(case: CaseResult) -> float | None:
    """Return the time of an access in the best slice of all trials: who shares a cache for a while
    makes it look smaller for as long."""
    best = case.metrics.get(BEST) or primary(case)
    return best.statistics.minimum if best else None


def marks(found: FoundLevels | None) -> tuple[CurveMark, ...]:
    """Return where a level ends elsewhere than the kernel says."""
    if found is None:
        return ()
    same = {one.found for one in found.findings if one.agreement is Agreement.SAME}
    return tuple(
        CurveMark(f"bends at {_size(middle)}", middle)
        for level in found.curve.levels
        if level not in same and (middle := level.middle_bytes)
    )


def blocks(found: FoundLevels | None, host: HostInventory) -> Iterator[Block]:
    """Yield a sentence for each cache of the kernel, and one for the memory."""
    if found is None:
        return
    if not found.curve.levels:
        yield Paragraph(f"The levels that this curve shows are unsure: {found.curve.reason}.")
        return
    yield MEANING
    guest = host.virtualisation.is_guest
    lines = [_cache_sentence(one, guest=guest, last=False, also="") for one in found.findings[:-1]]
    lines += [
        _cache_sentence(one, guest=guest, last=True, also=_library(one.cache, host))
        for one in found.findings[-1:]
    ]
    lines += _further(found)
    if not found.huge:
        lines.append(
            "These are accesses in pages of 4 KiB: where the TLB ends, the curve bends, too, and "
            "an L2 cache looks smaller than it is. Measure in huge pages to be sure."
        )
    yield Bullets(tuple(lines))


def _library(cache: KernelCache, host: HostInventory) -> str:
    """Return what the C library says of the last cache, if it is another size. It reads CPUID
    itself; a hypervisor may set one part of that and not another, and may add up the caches of a
    socket."""
    size = host.memory.library_cache_bytes if host.memory else None
    if not size or 1 / SAME_SIZE_RATIO < size / cache.size_bytes < SAME_SIZE_RATIO:
        return ""
    source = ", from CPUID" if host.cpu.architecture == "x86_64" else ""
    return f" (the C library{source}, for a socket: {binary_bytes(size)})"


def _cache_sentence(finding: Finding, *, guest: bool, last: bool, also: str) -> str:
    """`also`: what else is known of the size."""
    cache, found = finding.cache, finding.found
    name, size = f"L{cache.level}", binary_bytes(cache.size_bytes)
    if found is None or found.capacity is None:
        return (
            f"{name}: unsure. The kernel says {size}{also}, and it is not clear which level of the "
            "curve ends where this cache does."
        )
    between = f"between {_size(found.capacity[0])} and {_size(found.capacity[1])}"
    time = f"an access takes {human(found.latency_s, 's')}"
    if finding.agreement is Agreement.SAME:
        return f"{name}: {size}, as the kernel says{also}; found {between}; {time}."
    if finding.agreement is Agreement.SMALLER:
        why = _why_smaller(guest=guest, last=last)
        return f"{name}: the kernel says {size}{also}, the curve bends {between}: {why}; {time}."
    why = "the hypervisor says less than there is" if guest else "the kernel's size is too small"
    return (
        f"{name}: the kernel says {size}{also}, the curve stays flat and bends {between}: {why}; "
        f"{time}."
    )


def _why_smaller(*, guest: bool, last: bool) -> str:
    if last and guest:
        return "this virtual machine has a part of it, or neighbours use it"
    if last:
        return "other programs use it, or a part is reserved"
    if guest:
        return (
            "the hypervisor backs huge pages by small ones, which fill its sets unevenly, or other "
            "programs use it, or it is smaller"
        )
    return "other programs use it"


def _further(found: FoundLevels) -> Iterator[str]:
    """Yield the levels that no cache of the kernel explains, and the memory."""
    known = {one.found for one in found.findings}
    for level in found.curve.levels:
        if level not in known and level.capacity:
            low, high = (_size(one) for one in level.capacity)
            time = human(level.latency_s, "s")
            yield f"A level that no cache explains ends between {low} and {high}, with {time}."
    last = found.curve.levels[-1]
    if last.capacity is None and len(found.curve.levels) > 1:
        yield f"The largest working sets: an access takes {human(last.latency_s, 's')}."


def _size(value: float) -> str:
    """Return a size with three digits: the end of a level is not known better."""
    number, _, unit = binary_bytes(value).partition(" ")
    return f"{float(number):.3g} {unit}"


def _caches(host: HostInventory) -> list[KernelCache]:
    return [
        KernelCache(cache.level, cache.size_bytes)
        for cache in host.caches
        if cache.size_bytes and cache.type != INSTRUCTION
    ]
