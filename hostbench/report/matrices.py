"""Heat maps of figures: how good each pair of CPUs, or of nodes, is beside the best."""

from collections.abc import Callable

from hostbench.base.units import human
from hostbench.report.content import MatrixScale

# Figures that differ by less have one colour, so that noise is no pattern.
LEAST_STEP = 1.25


def scale_of_times(nearest: float, farthest: float) -> MatrixScale:
    """Return five colours in steps of one ratio: times within one cache, within a socket and
    between two are multiples of each other. A cell is the nearest over its own time."""
    return _scale(farthest / nearest, lambda ratio: f"up to {human(nearest / ratio, 's')}", "more")


def scale_of_rates(highest: float, lowest: float, unit: str) -> MatrixScale:
    """Return the same of rates. A cell is its own rate over the highest."""
    return _scale(highest / lowest, lambda ratio: f"from {human(highest * ratio, unit)}", "less")


def _scale(spread: float, word: Callable[[float], str], last: str) -> MatrixScale:
    step = max(LEAST_STEP, spread ** (1 / 5))
    first, second, third, fourth = 1 / step, 1 / step**2, 1 / step**3, 1 / step**4
    return MatrixScale(
        (first, second, third, fourth),
        (word(first), word(second), word(third), word(fourth), last),
    )
