"""The least cycles of a sequence, against schedules worked out by hand and against brute force."""

import itertools
import random
from fractions import Fraction

import pytest

from hostbench.host.ports import MicroOps, Usage, bound, in_words, parse
from tests.each import each

WIDE = 100


def cycles(*usages: str, issue_width: int = WIDE) -> Fraction:
    return bound([parse(usage) for usage in usages], issue_width).cycles


@pytest.mark.parametrize(
    ("usages", "expected"),
    [
        (["1*p01"], "1/2"),
        (["2*p01"], "1"),
        (["3*p05"], "3/2"),
        (["1*p01", "1*p15"], "2/3"),  # FMA and ADD of Golden Cove: three ports, perfectly shared
        (["1*p01", "1*p01", "1*p15"], "1"),  # two FMAs fill p0 and p1, the ADD goes to p5
        (["1*p5", "1*p05"], "1"),  # the second takes p0
        (["1*p5", "1*p05", "1*p05"], "3/2"),
        (["1*p0", "1*p5"], "1"),
        (["1*fp01[2]", "1*fp23[2]"], "1"),
        (["1*fp01[2]", "1*fp01[2]"], "2"),
        (["eliminated", "1*p015"], "1/3"),
        (["1*p0156A"], "1/5"),
        (["1*p0+2*p05"], "3/2"),
    ],
)
def test_known_sequences(usages: list[str], expected: str) -> None:
    assert cycles(*usages) == Fraction(expected)


def test_the_front_end_holds_what_ports_would_let_through() -> None:
    assert cycles("eliminated", "1*p01", "1*p015", issue_width=4) == Fraction(3, 4)
    assert bound([parse("eliminated")], 4) == (
        Fraction(1, 4),
        "the front end issues 4 µops a cycle and these are 1",
        True,
    )


def test_a_kept_port_takes_no_second_slot_of_the_front_end() -> None:
    assert cycles("1*fp0123[2]", issue_width=2) == Fraction(1, 2)
    assert cycles("2*fp0123", issue_width=2) == 1


def test_of_equal_bounds_the_ports_are_named() -> None:
    found = bound([parse("1*p0156")], 4)
    assert found == (Fraction(1, 4), "the 4 ports p0156 have 1 cycle of work", False)


@pytest.mark.parametrize(
    ("usages", "words"),
    [
        (["1*p5", "1*p05"], "port p5 has 1 cycle of work"),
        (["2*p05", "1*p05"], "the 2 ports p05 have 3 cycles of work"),
        (["1*p0156A"], "the 5 ports p0156A have 1 cycle of work"),
    ],
)
def test_what_holds_it_back_is_reported(usages: list[str], words: str) -> None:
    assert bound([parse(usage) for usage in usages], WIDE).because == words


def test_usages_in_words() -> None:
    assert in_words(parse("1*p0+2*p05")) == "1 µop on p0 + 2 µops on p05"
    assert in_words(parse("1*fp01[2]")) == "1 µop on fp01 for 2 cycles"
    assert in_words(parse("eliminated")) == "eliminated at rename"


def test_what_is_parsed() -> None:
    assert parse("1*p0+2*p5A[3]") == (
        MicroOps(1, frozenset({"p0"})),
        MicroOps(2, frozenset({"p5", "pA"}), 3),
    )


PORTS = ["p0", "p1", "p5", "p6"]


def best_schedule(usages: list[Usage]) -> int:
    """Whole cycles of the best assignment of every µop to a port, by trying all of them."""
    singles = [each.ports for usage in usages for each in usage for _ in range(each.count)]
    return min(
        max(chosen.count(port) for port in PORTS)
        for chosen in itertools.product(*(sorted(ports) for ports in singles))
    )


@each("seed", range(40))
def test_the_bound_is_what_the_best_schedule_takes(seed: int) -> None:
    """Rounded up: the exhaustive search moves whole µops, the bound averages over many passes."""
    chance = random.Random(seed)
    usages: list[Usage] = [
        (MicroOps(1, frozenset(chance.sample(PORTS, chance.randint(1, 3)))),)
        for _ in range(chance.randint(1, 7))
    ]
    least = bound(usages, WIDE).cycles
    assert best_schedule(usages) == -(-least.numerator // least.denominator)
