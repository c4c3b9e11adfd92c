"""Which CPUs share a core, a cache or a socket: what the times of hand-overs show, beside what the
kernel says.

Sorted, the times of all pairs rise in steps: pairs of one core, of one cache, of one socket, of
two. Where they jump, the pairs below the jump make groups. If the pairs of each group are all below
it, the CPUs of a group share something that the others do not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

from hostbench.base.files import cpu_list
from hostbench.base.units import human, plural
from hostbench.model.host import HostInventory
from hostbench.report.content import Block, Bullets, Paragraph
from hostbench.report.inventory import cpu_list as as_list
from hostbench.report.matrices import LEAST_STEP

Groups = frozenset[frozenset[int]]
Distances = Mapping[tuple[int, int], float]

# Of two CPUs there is one pair, and nothing to compare it with.
CPUS_LEAST = 3
# Of a group's pairs, so many must be near: other work may have held up a few.
NEAR_LEAST = 0.9
GROUPS_NAMED = 4


@dataclass(frozen=True)
class Step:
    """CPUs in groups: a hand-over takes up to `within_s` in a group, and at least `between_s`
    between two of them, both in seconds."""

    groups: Groups
    within_s: float
    between_s: float


def steps(distances: Distances) -> tuple[Step, ...]:
    """Return the groups at each jump of the times that makes some, from the nearest; none where a
    pair was not measured, or of two CPUs."""
    cpus = {cpu for pair in distances for cpu in pair}
    if len(cpus) < CPUS_LEAST or len(distances) < len(cpus) * (len(cpus) - 1) // 2:
        return ()
    times = {frozenset(pair): time_s for pair, time_s in distances.items()}
    found: dict[Groups, Step] = {}
    for within_s, between_s in pairwise(sorted(times.values())):
        if between_s < LEAST_STEP * within_s:
            continue
        near = {pair for pair, time_s in times.items() if time_s <= within_s}
        groups = _connected(cpus, near)
        if 1 < len(groups) < len(cpus) and all(_is_near(group, near) for group in groups):
            found.setdefault(groups, Step(groups, within_s, between_s))
    return tuple(found.values())


def _connected(cpus: set[int], near: set[frozenset[int]]) -> Groups:
    neighbours = {cpu: {other for pair in near if cpu in pair for other in pair} for cpu in cpus}
    groups, left = set[frozenset[int]](), set(cpus)
    while left:
        group, edge = set[int](), {min(left)}
        while edge:
            group |= edge
            edge = {other for cpu in edge for other in neighbours[cpu]} - group
        groups.add(frozenset(group))
        left -= group
    return frozenset(groups)


def _is_near(group: frozenset[int], near: set[frozenset[int]]) -> bool:
    pairs = [frozenset(pair) for pair in combinations(group, 2)]
    return sum(pair in near for pair in pairs) >= NEAR_LEAST * len(pairs)


def shared_caches(host: HostInventory, cpus: frozenset[int]) -> dict[Groups, str]:
    """Return the groups of these CPUs that share caches, as the kernel says, with the names of
    these caches. Caches that all CPUs share, or none, make no groups."""
    found: dict[Groups, list[str]] = {}
    for cache in sorted(host.caches, key=lambda cache: cache.level):
        sharers = [frozenset(cpu_list(text) or ()) & cpus for text in cache.cpu_lists]
        groups = frozenset(group for group in sharers if group)
        if 1 < len(groups) < len(cpus) and frozenset().union(*groups) == cpus:
            name = f"L{cache.level}"
            names = found.setdefault(groups, [])
            if name not in names:
                names.append(name)
    return {groups: " and ".join(names) for groups, names in found.items()}


def sharing_blocks(distances: Distances, host: HostInventory) -> Iterator[Block]:
    """Yield a sentence for each step, and for each group of the kernel's that no step shows."""
    cpus = frozenset(cpu for pair in distances for cpu in pair)
    if len(cpus) < CPUS_LEAST or len(distances) < len(cpus) * (len(cpus) - 1) // 2:
        return
    found, kernel = steps(distances), shared_caches(host, cpus)
    guest = host.virtualisation.is_guest
    lines = [_step_sentence(one, kernel.get(one.groups), guest=guest) for one in found]
    shown = {one.groups for one in found}
    lines += [
        _missing_sentence(groups, names, guest=guest)
        for groups, names in kernel.items()
        if groups not in shown
    ]
    if lines:
        yield Paragraph("Which CPUs share something by their times, beside the kernel's caches:")
        yield Bullets(tuple(lines))
    else:
        times = distances.values()
        yield Paragraph(
            f"The times of all pairs, from {human(min(times), 's')} to {human(max(times), 's')}, "
            "rise without a jump that makes groups of CPUs. The kernel, too, shows no cache that "
            "some of them share."
        )


def _step_sentence(step: Step, names: str | None, *, guest: bool) -> str:
    times = (
        f"a hand-over takes up to {human(step.within_s, 's')} within a group, and "
        f"{human(step.between_s, 's')} or more between two"
    )
    groups = _in_words(step.groups)
    if names:
        return f"{groups} share {names}, as the kernel says: {times}."
    why = "the hypervisor hides what they share" if guest else "such as a die or a socket"
    return f"{groups} are near each other, and the kernel shows no such cache ({why}): {times}."


def _missing_sentence(groups: Groups, names: str, *, guest: bool) -> str:
    why = (
        "the hypervisor moves its CPUs between cores, or reports caches that are not there"
        if guest
        else "it makes no difference to a hand-over here, or other programs disturbed the trials"
    )
    return (
        f"The kernel says that {_in_words(groups)} share {names}; the times do not show it: {why}."
    )


def _in_words(groups: Groups) -> str:
    """Return the groups by their first CPU: `CPUs 0,4; 1,5 and 2,6` has three."""
    lists = [as_list(tuple(group)) for group in sorted(groups, key=min)]
    if len(lists) > GROUPS_NAMED:
        more = plural(len(lists) - GROUPS_NAMED, "more group")
        return f"CPUs {'; '.join(lists[:GROUPS_NAMED])} and {more}"
    return f"CPUs {'; '.join(lists[:-1])} and {lists[-1]}"
