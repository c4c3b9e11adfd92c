"""Which hosts of a fleet measure the network between them, in which order.

A round is a set of pairs in which no host occurs twice, so all pairs of a round can be measured at
once. All rounds come from one tournament by the circle method: one host keeps its place, the others
move on by one place a round, and hosts at opposite places meet.
"""

import random
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import overload

Pair = tuple[str, str]
Round = tuple[Pair, ...]


def tournament(nodes: Sequence[str]) -> Sequence[Round]:
    """Return rounds in which every pair of hosts occurs once: n - 1 rounds, or n if n is odd; then
    one host rests in each round."""
    return _Tournament([*nodes, *([None] if len(nodes) % 2 else [])])


class _Tournament(Sequence[Round]):
    """Makes each round when it is needed: all pairs of 10,000 hosts would take gigabytes."""

    def __init__(self, places: Sequence[str | None]) -> None:
        self._places = places

    def __len__(self) -> int:
        return len(self._places) - 1

    @overload
    def __getitem__(self, at: int) -> Round: ...
    @overload
    def __getitem__(self, at: slice) -> list[Round]: ...
    def __getitem__(self, at: int | slice) -> Round | list[Round]:
        found = range(len(self))[at]  # IndexError ends an iteration.
        if isinstance(found, range):
            return [_round(self._places, one) for one in found]
        return _round(self._places, found)


def matchings(
    nodes: Sequence[str], rounds: int, racks: Mapping[str, str] | None = None, seed: int = 0
) -> list[Round]:
    """Return `rounds` random perfect matchings without a pair in common; the same for the same
    arguments. There are as many as a tournament has rounds.

    `racks` has the rack of each host. With racks, the first round stays within them as far as their
    sizes allow: pairs within a rack tell a slow uplink from slow hosts.
    """
    rng = random.Random(seed)  # noqa: S311 - a schedule is no secret
    pairs = list(_within_racks(nodes, racks or {}, rng))
    rng.shuffle(pairs)
    places = [a for a, _ in pairs] + [b for _, b in reversed(pairs)]
    chosen = [0, *rng.sample(range(1, len(places) - 1), rounds - 1)]
    return [tuple(_either_way(pair, rng) for pair in _round(places, at)) for at in chosen]


def rounds_most(nodes: int) -> int:
    """Return how many rounds a tournament of so many hosts has."""
    return nodes - 1 + nodes % 2


def pairs_of(nodes: int) -> int:
    """Return how many pairs so many hosts make."""
    return nodes * (nodes - 1) // 2


def link(pair: Pair) -> Pair:
    """Return the pair without its direction: the lower name first."""
    a, b = pair
    return (a, b) if a <= b else (b, a)


@dataclass(frozen=True)
class Suspects:
    """What is to be measured again: hosts, racks whose uplink may be slow, and links."""

    hosts: tuple[str, ...] = ()
    uplinks: tuple[str, ...] = ()
    links: tuple[Pair, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.hosts or self.uplinks or self.links)


def retests(
    suspects: Suspects,
    good: Collection[str],
    racks: Mapping[str, str],
    times: Counter[Pair],
    repeats: int,
    seed: int = 0,
) -> list[Round]:
    """Return rounds that measure each suspect `repeats` times.

    A suspect host gets another `good` host each time, one with which it was measured least so far
    (`times` counts the measurements of each link). For an uplink, a good host of the rack is
    measured with one of another rack whose uplink is not suspect. A suspect link is measured again
    as it is.
    """
    rng = random.Random(seed)  # noqa: S311
    times = Counter(times)
    left: Counter[tuple[str, str | Pair]] = Counter()
    for host in suspects.hosts:
        left["host", host] = repeats
    for rack in suspects.uplinks:
        left["uplink", rack] = repeats
    for one in suspects.links:
        left["link", one] = repeats
    found: list[Round] = []
    while left:
        free = sorted(good)
        rng.shuffle(free)
        busy: set[str] = set()
        taken: list[Pair] = []
        for kind, what in sorted(left, key=lambda need: (-left[need], rng.random())):
            pair = _retest(
                kind, what, [h for h in free if h not in busy], busy, suspects, racks, times
            )
            if pair is None:
                continue
            busy.update(pair)
            taken.append(_either_way(pair, rng))
            times[link(pair)] += 1
            left[kind, what] -= 1
        left = +left
        if not taken:
            break
        found.append(tuple(taken))
    return found


def _retest(
    kind: str,
    what: "str | Pair",
    free: Sequence[str],
    busy: Set[str],
    suspects: Suspects,
    racks: Mapping[str, str],
    times: Counter[Pair],
) -> Pair | None:
    """Return a pair that measures this suspect once more, of hosts that are free; None: there is
    none in this round."""
    if isinstance(what, tuple):
        return what if busy.isdisjoint(what) else None
    if kind == "host":
        if what in busy:
            return None
        partner = min(
            (one for one in free if one != what),
            key=lambda one: times[link((what, one))],
            default=None,
        )
        return None if partner is None else (what, partner)
    inside = [one for one in free if racks.get(one) == what]
    outside = [one for one in free if racks.get(one) not in (what, *suspects.uplinks)]
    if not inside or not outside:
        return None
    return min(((inside[0], one) for one in outside), key=lambda pair: times[link(pair)])


def _round(places: Sequence[str | None], at: int) -> Round:
    """Return the round at this place of the tournament of hosts at these places, an even number;
    the partner of None rests."""
    first, *others = places
    moved = len(others) - at
    row = [first, *others[moved:], *others[:moved]]
    opposite = zip(row[: len(row) // 2], reversed(row), strict=False)
    return tuple((a, b) for a, b in opposite if a is not None and b is not None)


def _within_racks(
    nodes: Sequence[str], racks: Mapping[str, str], rng: random.Random
) -> Iterator[tuple[str | None, str | None]]:
    """Yield pairs of all hosts, within racks where possible; one host has the partner None if their
    number is odd."""
    by_rack: dict[str | None, list[str | None]] = {}
    for node in nodes:
        by_rack.setdefault(racks.get(node), []).append(node)
    over: list[str | None] = []
    for own in by_rack.values():
        rng.shuffle(own)
        over += [own.pop()] if len(own) % 2 else []
        yield from zip(own[::2], own[1::2], strict=True)
    over += [None] if len(over) % 2 else []
    yield from zip(over[::2], over[1::2], strict=True)


def _either_way(pair: Pair, rng: random.Random) -> Pair:
    """Return the pair, near end first, with either host as the near end."""
    return pair if rng.random() < 0.5 else (pair[1], pair[0])
