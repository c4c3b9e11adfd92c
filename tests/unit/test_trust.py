"""What is promised of intervals, held against the stored rounds of benchmarks/trust, which are
judged by today's rule: a drift that is changed for one class shows here what it does to the others.
"""

import itertools

import pytest

from benchmarks.figures import BENCHMARKS
from benchmarks.trust.drift import (
    DRIFTS,
    Rule,
    Seen,
    cells,
    grouped,
    held,
    holds,
    least_rule,
    seen,
    todays,
)
from benchmarks.trust.table import CELL_LEAST_RATIO, kinds, load, of_class, sharpness

ROUNDS = BENCHMARKS / "trust/results/amd/jobs.csv"
COVERED_LEAST, SHARP_MOST = 0.95, 1.5


@pytest.fixture(scope="module")
def figures() -> list[Seen]:
    return list(seen(ROUNDS))


def test_intervals_hold_the_truth_as_often_as_they_claim(figures: list[Seen]) -> None:
    """Of figures quiet and planted and of what was delivered, in each class and each cell."""
    for kind, rule in todays().items():
        own = [one for one in figures if one.kind == kind]
        pools = list(grouped(own, "pool"))
        assert len(pools) == 3
        for pool in pools:
            inside, of = held(pool, rule)
            assert inside >= COVERED_LEAST * of, (kind, pool[0].pool, inside, of)
        for name, inside, of in cells(own, rule):
            assert inside >= CELL_LEAST_RATIO * of, (name, inside, of)


def test_intervals_are_no_wider_than_figures_spread() -> None:
    rows = load(ROUNDS)
    for kind, (figure, low, high) in itertools.product(
        kinds(), (("value", "low", "high"), ("delivered", "delivered_low", "delivered_high"))
    ):
        own = of_class(rows, kind)
        some = own if figure == "delivered" else [row for row in own if row["plant"] == "none"]
        assert 0.9 < float(sharpness(some, figure, low, high)) <= SHARP_MOST, (kind, figure)


def test_a_rule_is_chosen_by_what_it_must_hold(figures: list[Seen]) -> None:
    """The least drifts that are enough for the disk: the next smaller one is not."""
    own = [one for one in figures if one.kind == "disk"]
    rule = least_rule(own, of_share=2.0)
    assert rule is not None and holds(own, rule)
    smaller = DRIFTS[DRIFTS.index(rule.rates) - 1]
    assert not holds(own, Rule(smaller, rule.times, rule.of_share))
