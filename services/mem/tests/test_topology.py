"""Levels from curves: made-up ones whose levels are known, and a measured one."""

import json
import math
import random
from itertools import pairwise
from pathlib import Path

import pytest

from hostbench.plan.suite import built_in_suites, load_known_suite
from services.mem.topology import (
    Agreement,
    KernelCache,
    Level,
    compare,
    find_levels,
)

KIB, MIB = 1 << 10, 1 << 20
RECORDED = Path(__file__).with_name("recorded")
Points = list[tuple[float, float]]


def ladder() -> list[int]:
    """The sizes of the suite's latency in huge pages."""
    suite = load_known_suite(built_in_suites()["maps"])
    sizes = [
        case.grid["size_bytes"]
        for case in suite.cases
        if case.workload == "mem.pointer_chase" and "chains" not in case.grid
    ]
    return sorted(size for size in max(sizes, key=len) if isinstance(size, int))


def curve(
    capacities: tuple[float, ...],
    latencies_s: tuple[float, ...],
    *,
    sharp: bool,
    noise: float = 0.02,
    seed: int = 0,
) -> Points:
    """What a chase would show. `sharp`: least recently used lines go, so a set that is an eighth
    larger than a cache of eight ways misses always; else lines go at random."""
    rng = random.Random(seed)
    points = []
    for size in ladder():
        time_s = latencies_s[0]
        for capacity, (low, high) in zip(capacities, pairwise(latencies_s), strict=True):
            over = size / capacity
            misses = min(1.0, 8 * (over - 1)) if sharp else 1 - over**-1.5
            time_s += (high - low) * misses if over > 1 else 0
        points.append((float(size), time_s * math.exp(rng.gauss(0, noise))))
    return points


def ends(points: Points) -> list[float]:
    return [middle for level in find_levels(points).levels if (middle := level.middle_bytes)]


@pytest.mark.parametrize("sharp", [True, False])
def test_levels_of_any_size_are_found(sharp: bool) -> None:
    """Sizes anywhere, also where none of the suite's stands beside them. A few last-level caches
    near the largest size hide in its rise."""
    missed, far = 0, []
    for seed in range(60):
        rng = random.Random(seed)
        first = 2 ** rng.uniform(14.5, 16.6)
        second = first * 2 ** rng.uniform(3, 5)
        third = min(second * 2 ** rng.uniform(3, 5), 24 * MIB)
        one, two, three = 1.1e-9, 1.1e-9 * rng.uniform(2.5, 4), 12e-9
        times_s = (one, two, three, three * rng.uniform(4, 8))
        found = ends(curve((first, second, third), times_s, sharp=sharp, seed=seed))
        if len(found) != 3:
            missed += 1
            continue
        far += [abs(math.log(a / b)) for a, b in zip(found, (first, second, third), strict=True)]
    assert missed <= 3
    assert sorted(far)[int(0.95 * len(far))] < math.log(1.15)


@pytest.mark.parametrize("noise", [0.0, 0.01, 0.05])
@pytest.mark.parametrize("size", [32 * KIB, 48 * KIB, 64 * KIB])
def test_usual_caches_are_within_a_tenth(size: int, noise: float) -> None:
    points = curve((size, 16 * size), (1.1e-9, 3.5e-9, 14e-9), sharp=True, noise=noise)
    found = find_levels(points)
    first, second, last = found.levels
    for level, truth in ((first, size), (second, 16 * size)):
        assert level.capacity and level.capacity[0] <= truth < level.capacity[1]
        assert level.middle_bytes == pytest.approx(truth, rel=0.1)
    assert last.capacity is None
    for level, truth_s in zip(found.levels, (1.1e-9, 3.5e-9, 14e-9), strict=True):
        assert level.latency_s == pytest.approx(truth_s, rel=0.1)


def test_a_disturbed_size_is_no_level() -> None:
    points = curve((32 * KIB, 512 * KIB), (1.1e-9, 3.5e-9, 14e-9), sharp=True)
    calm = ends(points)
    for at in (4, 20, 40):
        size, time_s = points[at]
        spoilt = [*points[:at], (size, 3 * time_s), *points[at + 1 :]]
        assert ends(spoilt) == calm


def test_a_flat_curve_has_one_level_without_an_end() -> None:
    (level,) = find_levels(curve((), (1.1e-9,), sharp=True)).levels
    assert level.capacity is None


@pytest.mark.parametrize(
    ("points", "reason"),
    [
        ([], "0 sizes are too few"),
        ([(4096.0 * i, 1e-9) for i in range(1, 8)], "7 sizes are too few"),
        ([(4096.0 * 4**i, 1e-9) for i in range(12)], "factor of two"),
        (curve((32 * KIB,), (1e-9, 3e-9), sharp=True, noise=0.6), "at random"),
        ([(4096.0 * 1.4**i, 1e-9 * 1.4**i) for i in range(30)], "nowhere stays the same"),
    ],
)
def test_curves_that_show_no_level_have_a_reason(points: Points, reason: str) -> None:
    found = find_levels(points)
    assert not found.levels
    assert reason in found.reason


def level(low: float, high: float) -> Level:
    return Level(1e-9, (low, high))


KERNEL = (KernelCache(1, 32 * KIB), KernelCache(2, 512 * KIB), KernelCache(3, 32 * MIB))
L1, L2 = level(30 * KIB, 34 * KIB), level(480 * KIB, 544 * KIB)
MEMORY = Level(1e-7, None)


@pytest.mark.parametrize(
    ("levels", "agreements"),
    [
        ((L1, L2, level(30 * MIB, 34 * MIB), MEMORY), ("same", "same", "same")),
        ((L1, L2, level(11 * MIB, 13 * MIB), MEMORY), ("same", "same", "smaller")),
        ((L1, L2, level(80 * MIB, 90 * MIB), MEMORY), ("same", "same", "larger")),
        ((L1, L2, MEMORY), ("same", "same", "unsure")),
        ((L1, L2, level(3 * MIB, 4 * MIB), level(11 * MIB, 13 * MIB)), ("same", "same", "unsure")),
        ((L1, level(30 * MIB, 34 * MIB), MEMORY), ("same", "unsure", "same")),
        ((L1, level(900 * KIB, MIB), level(30 * MIB, 34 * MIB)), ("same", "larger", "same")),
        ((MEMORY,), ("unsure", "unsure", "unsure")),
    ],
)
def test_caches_beside_the_levels(levels: tuple[Level, ...], agreements: tuple[str, ...]) -> None:
    findings = compare(levels, KERNEL)
    assert tuple(one.agreement for one in findings) == tuple(map(Agreement, agreements))
    assert [one.cache for one in findings] == list(KERNEL)
    for one in findings:
        assert (one.found is None) == (one.agreement is Agreement.UNSURE)


def test_a_host_without_caches_has_nothing_beside_its_levels() -> None:
    assert compare((L1, L2, MEMORY), ()) == []


def test_a_guest_beside_other_work_has_its_l1_cache_and_parts_of_the_others() -> None:
    """Measured on a Zen 3 guest (32 KiB, 512 KiB, 32 MiB by sysfs) whose CPUs other programs used:
    a part of the L2 cache was not to be had, nor most of the L3 cache."""
    text = (RECORDED / "latency-disturbed-zen3-guest.json").read_text()
    found = find_levels([(size, time_s) for size, time_s in json.loads(text)])
    first, second, third = compare(found.levels, KERNEL)
    assert first.agreement is Agreement.SAME
    assert first.found and first.found.middle_bytes == pytest.approx(32 * KIB, rel=0.1)
    assert (second.agreement, third.agreement) == (Agreement.SMALLER, Agreement.SMALLER)
    assert third.found and third.found.middle_bytes == pytest.approx(1.4 * MIB, rel=0.1)
    assert found.levels[-1].capacity is None
