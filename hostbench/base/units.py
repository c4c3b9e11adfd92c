"""Figures for people: SI prefixes, three to four significant digits. And parts of sentences."""

import math
from collections.abc import Sequence

SHOWN_DIGITS = 4
_PREFIXES = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
# For times, nothing smaller: people say 0.4 ns, and compare it with other nanoseconds.
_SMALL_PREFIXES = ((1e-3, "m"), (1e-6, "µ"), (1e-9, "n"))
_BINARY_PREFIXES = ((1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))
_DECIMAL_BYTES = ((10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (10**3, "kB"))
_LONG_NUMBER = 10**SHOWN_DIGITS
_SHORT_UNITS = {"operation/s": "op/s", "operation": "op", "byte/s": "B/s", "byte": "B"}
_SECONDS_A_MINUTE = 60
_SECONDS_AN_HOUR = 3600


def significant(value: float, digits: int = SHOWN_DIGITS) -> str:
    """Return `value` with `digits` significant digits, without an exponent from 1e-3 to 1e6."""
    if value == 0:
        return "0"
    value = _rounded(value, digits)
    magnitude = math.floor(math.log10(abs(value)))
    if not -3 <= magnitude < 6:
        return f"{value:.{digits - 1}e}"
    return f"{value:.{max(0, digits - 1 - magnitude)}f}"


def _rounded(value: float, digits: int) -> float:
    """Round a value before its magnitude is determined: 999.96 G is 1.000 T and not 1000.0 G."""
    return float(f"{value:.{digits - 1}e}")


def human(value: float | None, unit: str) -> str:
    """Return `113.2 Gop/s` for 1.132e11 `operation/s`, and `–` for None."""
    if value is None:
        return "–"
    if unit == "1":
        return significant(value)
    factor, prefix = _prefix(_rounded(value, SHOWN_DIGITS), small=unit == "s")
    short = _SHORT_UNITS.get(unit, unit)
    return f"{significant(value / factor)} {prefix}{short}"


def tick(value: float, unit: str) -> str:
    """Return a round value for an axis: `200 ns`, `50 GB/s`, or a plain count such as `32`."""
    if unit == "1":
        return f"{value:g}"
    factor, prefix = _prefix(_rounded(value, SHOWN_DIGITS), small=unit == "s")
    return f"{value / factor:g} {prefix}{_SHORT_UNITS.get(unit, unit)}"


def _prefix(value: float, *, small: bool) -> tuple[float, str]:
    if value == 0:
        return 1.0, ""
    prefixes = _PREFIXES + (_SMALL_PREFIXES if small else ())
    found = next((one for one in prefixes if abs(value) >= one[0]), None)
    return found or (_SMALL_PREFIXES[-1] if small else (1.0, ""))


def binary_bytes(value: float) -> str:
    """Return a size of memory in powers of two, such as `32 KiB` or `1.5 GiB`."""
    for factor, unit in _BINARY_PREFIXES:
        if value >= factor:
            return f"{value / factor:.4g} {unit}"
    return f"{value:g} B"


def exact_bytes(value: int) -> str:
    """Return a size without rounding, so that different sizes look different: `64 MiB`, `1536 KiB`,
    `48 MB`, `1000 B`.

    It uses the largest binary unit that gives a short whole number, else the largest decimal one,
    else bytes.
    """
    for factor, unit in (*_BINARY_PREFIXES, (1, "B"), *_DECIMAL_BYTES):
        if value and value % factor == 0 and value // factor < _LONG_NUMBER:
            return f"{value // factor} {unit}"
    return f"{value} B"


def percent(ratio: float | None) -> str:
    """Return `98.3 %` for 0.983, and `–` for None."""
    if ratio is None:
        return "–"
    digits = 2 if abs(ratio) < 0.01 else 1
    return f"{ratio * 100:.{digits}f} %"


def plus_minus(half_width_ratio: float) -> str:
    """Return `± 4.8 %` for 0.048: half an interval, as a share of the figure.

    An interval is a factor in both directions. Where half of it is wider than the figure, a share
    would seem to reach below zero, so the result is `± > 100 %`.
    """
    return "± > 100 %" if half_width_ratio > 1 else f"± {percent(half_width_ratio)}"


def bound(ratio: float) -> str:
    """Return `80 %` for 0.8: a figure that was chosen, not measured."""
    return f"{ratio * 100:g} %"


def plural(number: int, noun: str) -> str:
    """Return `1 case`, `2 cases` or `1,000 cases`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def some_of(names: Sequence[str], most: int) -> str:
    """Return the first names, and how many more there are: `a, b and 7 more`."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def full_sentence(text: str) -> str:
    """Return the text with a full stop, unless it already ends a sentence."""
    return text if text.endswith((".", "!", "?")) else f"{text}."


def duration(seconds: float) -> str:
    """Return a time such as `7 s`, `1 min 15 s` or `2 h 05 min`."""
    whole = math.ceil(seconds)
    if whole < _SECONDS_A_MINUTE:
        return f"{whole} s"
    if whole < _SECONDS_AN_HOUR:
        return f"{whole // _SECONDS_A_MINUTE} min {whole % _SECONDS_A_MINUTE:02d} s"
    hours, rest = divmod(whole, _SECONDS_AN_HOUR)
    return f"{hours} h {rest // _SECONDS_A_MINUTE:02d} min"
