"""From a difference of logarithms to the word for a figure."""

import math
from dataclasses import dataclass

from hostbench.judge.statistics import NORMAL
from hostbench.model.decision import LEAST_EFFECT_POWER, Change, Word
from hostbench.model.table import Direction

# Beyond this number, "measure more" is no useful advice.
MORE_MOST = 200
# The spread is an estimate. With this probability, the spread of the next jobs is no larger than
# the one assumed, so the least effects are found as often as stated (tests/unit/test_compare.py).
SPREAD_HELD = 0.8
# The width of an interval after more jobs is uncertain, so aim for this part of it.
SURELY = 0.9


@dataclass(frozen=True)
class Difference:
    """How a figure differs between two sides, in logarithms.

    `half` is half the interval that holds the true difference; `error` is the standard error, from
    a spread that is known with `degrees` degrees of freedom. Both None: the spread is unknown, and
    `reason` says why.
    """

    value: float
    half: float | None
    error: float | None
    degrees: int = 0
    reason: str | None = None


def change(
    difference: Difference,
    direction: Direction,
    margin: float,
    medians: tuple[float, float],
    jobs: tuple[int, int],
    *,
    jobs_least: int,
) -> Change:
    """Return the word for a difference. `medians` and `jobs` belong to both sides; with fewer than
    `jobs_least` jobs on a side, nothing is decided."""
    known = {
        "value_a": medians[0],
        "value_b": medians[1],
        "ratio": math.exp(difference.value),
        "margin": margin,
        "jobs_a": jobs[0],
        "jobs_b": jobs[1],
    }
    if difference.half is None or difference.error is None:
        more = max(0, jobs_least - min(jobs)) or None
        return Change(word=Word.UNDECIDED, reason=difference.reason, more=more, **known)
    value, half = difference.value, difference.half
    room = math.log1p(margin)
    word, more = Word.UNDECIDED, None
    if abs(value) + half <= room:
        word = Word.SAME  # also where a difference is sure: it is too small to matter
    elif abs(value) > half:
        word = Word.BETTER if (value > 0) == (direction == "higher") else Word.WORSE
    else:
        # Enough for the interval to exclude 1 or to lie within the margin, whichever is nearer.
        wanted = SURELY * max(abs(value), room - abs(value))
        least = min(jobs)
        needed = max(jobs_least, math.ceil(least * (half / wanted) ** 2))
        more = needed - least if least < needed <= MORE_MOST + least else None
    # A change within the margin is called the same, however certain it is.
    least_effect = max(half, room - half) + NORMAL.inv_cdf(LEAST_EFFECT_POWER) * difference.error
    least_effect *= _largest_spread(difference.degrees)
    return Change(
        word=word,
        low=math.exp(value - half),
        high=math.exp(value + half),
        least_effect_ratio=math.expm1(least_effect),
        more=more,
        **known,
    )


def _largest_spread(degrees: int) -> float:
    """Return the factor from an estimated standard deviation to the largest plausible one, by
    Wilson and Hilferty's quantile of chi-squared."""
    part = 2 / (9 * degrees)
    quantile = (1 - part + NORMAL.inv_cdf(1 - SPREAD_HELD) * math.sqrt(part)) ** 3
    return 1 / math.sqrt(quantile)
