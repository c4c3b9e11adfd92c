"""Levels of the memory hierarchy, from the latency over the working set.

The curve is cut into straight pieces in log(size)–log(latency) by dynamic programming (Bellman and
Roth, "Curve fitting by segmented straight lines", J. Am. Stat. Assoc. 64, 1969), with a penalty for
each piece. A flat piece is a level; a level ends between the last size that is still on it and the
next one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, pairwise
from statistics import median

# Doublings of the latency for each doubling of the size: less is flat.
FLAT_SLOPE = 0.22
# A flat piece is a level from so many sizes on; fewer may be a bend within a rise.
LEVEL_SIZES = 3
SIZES_LEAST = 8
# Two flat pieces are two levels if the latency differs by more: what a TLB adds, or a neighbour for
# a while, is less.
LEVEL_RATIO = 1.5
# A size is still on a level up to so many times its latency, or its noise.
ON_LEVEL_RATIO = 1.08
ON_LEVEL_DEVIATIONS = 4.0
# Of the logarithm (base 2) of a latency: repetitions agree no better than to 1 %.
NOISE_LEAST = 0.015
# Noise above this share hides a level.
NOISE_MOST = 0.2
# For each piece: in variances of the noise and logarithms of the number of sizes, as the Bayesian
# information criterion has it, for two parameters and a place.
PIECE_PARAMETERS = 3.0
# The kernel's size and the one found are the same if they differ by less.
SAME_SIZE_RATIO = 1.1

# From the deviation of a second difference of three values to that of one, and from the median of
# absolute deviations to the standard deviation of a normal distribution.
_SECOND_DIFFERENCE, _NORMAL = math.sqrt(6), 1.4826


@dataclass(frozen=True)
class Level:
    """A level of the hierarchy: the latency there, and the sizes in bytes that its capacity is
    between; None for the last one."""

    latency_s: float
    capacity: tuple[float, float] | None

    @property
    def middle_bytes(self) -> float | None:
        """Return the geometric middle of the capacity."""
        return math.sqrt(self.capacity[0] * self.capacity[1]) if self.capacity else None


@dataclass(frozen=True)
class Curve:
    """What a curve shows: its levels, from the fastest on, or why it shows none."""

    levels: tuple[Level, ...]
    reason: str = ""


@dataclass(frozen=True)
class KernelCache:
    """A cache as the kernel describes it: the part that one CPU can use."""

    level: int
    size_bytes: float


class Agreement(StrEnum):
    """How a cache of the kernel and the curve agree."""

    SAME = "same"
    SMALLER = "smaller"
    LARGER = "larger"
    UNSURE = "unsure"


@dataclass(frozen=True)
class Finding:
    """A cache of the kernel and the level found for it; None with Agreement.UNSURE."""

    cache: KernelCache
    found: Level | None
    agreement: Agreement


@dataclass(frozen=True)
class _Piece:
    first: int
    last: int
    slope: float


def find_levels(points: Sequence[tuple[float, float]]) -> Curve:
    """Return the levels of a curve of working sets in bytes and latencies in seconds, each above
    zero."""
    ordered = sorted(points)
    if len(ordered) < SIZES_LEAST:
        return Curve((), f"{len(ordered)} sizes are too few, {SIZES_LEAST} are needed")
    x = [math.log2(size) for size, _ in ordered]
    if median(b - a for a, b in pairwise(x)) > 1:
        return Curve((), "the sizes are more than a factor of two apart")
    raw = [math.log2(latency) for _, latency in ordered]
    noise = _noise(raw)
    if noise > math.log2(1 + NOISE_MOST):
        return Curve((), f"neighbouring sizes differ by {100 * (2**noise - 1):.0f} % at random")
    y = _without_spikes(raw)
    flat = _levels_of(_pieces(x, y, noise), y)
    if not flat:
        return Curve((), "the latency nowhere stays the same")
    return Curve(tuple(_level(ordered, y, noise, one, flat[i + 1 :]) for i, one in enumerate(flat)))


def compare(levels: Sequence[Level], caches: Sequence[KernelCache]) -> list[Finding]:
    """Return, for each cache of the kernel, the level that ends at its size. Those between two such
    caches, or above or below all, have the levels in their order if there are as many."""
    ends = [level for level in levels if level.capacity]
    ordered = sorted(caches, key=lambda cache: cache.level)
    same = [next((end for end in ends if _is_size(end, cache)), None) for cache in ordered]
    findings: list[Finding] = []
    for is_same, group in groupby(zip(ordered, same, strict=True), key=lambda pair: bool(pair[1])):
        pairs = list(group)
        if is_same:
            findings += [Finding(cache, end, Agreement.SAME) for cache, end in pairs]
            continue
        below = findings[-1].found if findings else None
        above = next((end for end in same[len(findings) + len(pairs) :] if end), None)
        first = ends.index(below) + 1 if below else 0
        between = ends[first : ends.index(above) if above else len(ends)]
        findings += _in_order([cache for cache, _ in pairs], between)
    return findings


def _in_order(caches: Sequence[KernelCache], ends: Sequence[Level]) -> list[Finding]:
    """Return unsure findings unless there are as many levels as caches: otherwise the pairs of
    cache and level are unknown."""
    if len(caches) != len(ends):
        return [Finding(cache, None, Agreement.UNSURE) for cache in caches]
    return [
        Finding(
            cache,
            end,
            Agreement.SMALLER if (end.middle_bytes or 0) < cache.size_bytes else Agreement.LARGER,
        )
        for cache, end in zip(caches, ends, strict=True)
    ]


def _is_size(level: Level, cache: KernelCache) -> bool:
    assert level.capacity
    low, high = level.capacity
    return low / SAME_SIZE_RATIO <= cache.size_bytes <= high * SAME_SIZE_RATIO


def _noise(y: Sequence[float]) -> float:
    """Return the standard deviation of what is not a straight line from one size to the next."""
    bends = [abs(y[i - 1] - 2 * y[i] + y[i + 1]) for i in range(1, len(y) - 1)]
    return max(NOISE_LEAST, _NORMAL * median(bends) / _SECOND_DIFFERENCE)


def _without_spikes(y: Sequence[float]) -> list[float]:
    """Return medians of three: a rising curve stays as it is, a single disturbed size goes."""
    inner = [median(y[i - 1 : i + 2]) for i in range(1, len(y) - 1)]
    return [min(y[0], inner[0]), *inner, y[-1]]


def _pieces(x: Sequence[float], y: Sequence[float], noise: float) -> list[_Piece]:
    """Return the straight pieces with the least sum of squares and penalties."""
    penalty = PIECE_PARAMETERS * noise**2 * math.log(len(x))
    best, cut = [0.0], [0]
    for last in range(len(x)):
        costs = [
            best[first] + _squares(x, y, first, last) + penalty
            # A single size would be a piece that fits always.
            for first in range(max(last, 1))
        ]
        first = min(range(len(costs)), key=costs.__getitem__)
        best.append(costs[first])
        cut.append(first)
    pieces: list[_Piece] = []
    end = len(x)
    while end > 0:
        pieces.append(_Piece(cut[end], end - 1, _slope(x, y, cut[end], end - 1)))
        end = cut[end]
    return pieces[::-1]


def _slope(x: Sequence[float], y: Sequence[float], first: int, last: int) -> float:
    xs, ys = x[first : last + 1], y[first : last + 1]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    width = sum((a - middle_x) ** 2 for a in xs)
    rise = sum((a - middle_x) * (b - middle_y) for a, b in zip(xs, ys, strict=True))
    return rise / width if width else 0.0


def _squares(x: Sequence[float], y: Sequence[float], first: int, last: int) -> float:
    """Return the sum of squares around the line of best fit."""
    xs, ys = x[first : last + 1], y[first : last + 1]
    middle_x, middle_y = sum(xs) / len(xs), sum(ys) / len(ys)
    slope = _slope(x, y, first, last)
    return sum((b - middle_y - slope * (a - middle_x)) ** 2 for a, b in zip(xs, ys, strict=True))


def _levels_of(pieces: Sequence[_Piece], y: Sequence[float]) -> list[_Piece]:
    """Return the flat pieces; neighbours of about the same latency are one."""
    found: list[_Piece] = []
    for piece in pieces:
        if abs(piece.slope) > FLAT_SLOPE or piece.last - piece.first + 1 < LEVEL_SIZES:
            continue
        if found and _value(y, piece) - _value(y, found[-1]) < math.log2(LEVEL_RATIO):
            piece = _Piece(found.pop().first, piece.last, piece.slope)
        found.append(piece)
    return found


def _value(y: Sequence[float], piece: _Piece) -> float:
    return median(y[piece.first : piece.last + 1])


def _level(
    points: Sequence[tuple[float, float]],
    y: Sequence[float],
    noise: float,
    piece: _Piece,
    later: Sequence[_Piece],
) -> Level:
    """Return a level and where it ends: nowhere if no other follows and the curve does not rise."""
    value = _value(y, piece)
    most = value + max(math.log2(ON_LEVEL_RATIO), ON_LEVEL_DEVIATIONS * noise)
    end = later[0].first if later else len(y)
    # A slow rise within the level, as of a last-level cache that others use, too, is part of it.
    most = max(most, y[piece.last] if piece.slope > 0 else most)
    beyond = [i for i in range(piece.first, end) if all(one > most for one in y[i:end])]
    if not later and len(beyond) < LEVEL_SIZES:
        return Level(2**value, None)
    if not beyond:
        beyond = [end]
    return Level(2**value, (points[beyond[0] - 1][0], points[beyond[0]][0]))
