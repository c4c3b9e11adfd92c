"""Axes: the place of a value, and which values are round enough for a tick."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

# A tick at the end of an axis counts, despite rounding errors of binary fractions.
_ROUNDING = 1e-9
_ROUND = (1.0, 2.0, 2.5, 5.0, 10.0)
# 1, 2 and 5 of each decade have ticks if there are at most this many of them for each place.
FINE_MOST = 1.5


@dataclass(frozen=True)
class Scale:
    """An axis of values from `low` to `high` along pixels."""

    low: float
    high: float
    first_px: float
    last_px: float
    logarithmic: bool = False

    def px(self, value: float) -> float:
        """Return the place of a value in pixels."""
        low, high = self.low, self.high
        if self.logarithmic:
            value, low, high = (math.log(one) for one in (value, low, high))
        return self.first_px + (value - low) / (high - low) * (self.last_px - self.first_px)


def linear_ticks(low: float, high: float, most: int) -> list[float]:
    """Return equidistant multiples of 1, 2, 2.5 or 5 times a power of ten, with at most `most`
    steps between them."""
    least = (high - low) / most
    decade = 10.0 ** math.floor(math.log10(least))
    step = decade * next(one for one in _ROUND if one * decade >= least * (1 - _ROUNDING))
    first, last = math.ceil(low / step - _ROUNDING), math.floor(high / step + _ROUNDING)
    return [step * n for n in range(first, last + 1)]


def logarithmic_ticks(low: float, high: float, most: int) -> list[float]:
    """Return 1, 2 and 5 of each decade. If these are many, return at most `most` powers of ten; for
    at most one such tick, the ticks of a linear axis."""
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    every = math.ceil(len(decades) / most)
    powers = [10.0**decade for decade in decades]
    fine = [part * power for power in powers for part in (1, 2, 5) if low <= part * power <= high]
    coarse = [
        power
        for decade, power in zip(decades, powers, strict=True)
        if decade % every == 0 and low <= power <= high
    ]
    ticks = fine if len(fine) <= FINE_MOST * most or len(coarse) < 2 else coarse
    return ticks if len(ticks) > 1 else linear_ticks(low, high, most)


def powers_of_two(low: float, high: float, most: int) -> Sequence[float]:
    """Return as many powers of two as fit, including 1 KiB, 1 MiB and so on wherever possible."""
    first, last = max(0, math.ceil(math.log2(low))), math.floor(math.log2(high))
    every = ([n for n in range(first, last + 1) if n % step == 0] for step in (1, 2, 5, 10))
    found = next((exponents for exponents in every if len(exponents) <= most), [first, last])
    return [2.0**exponent for exponent in found]
