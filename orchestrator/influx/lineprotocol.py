"""Points as InfluxDB's line protocol, one line each, times in milliseconds.

https://docs.influxdata.com/influxdb/v2/reference/syntax/line-protocol/
"""

import math

from orchestrator.influx.points import Point

# In names and tag values a backslash escapes only what follows it here.
_NAME = str.maketrans({",": r"\,", " ": r"\ ", "=": r"\="})
_MEASUREMENT = str.maketrans({",": r"\,", " ": r"\ "})
_STRING = str.maketrans({'"': r"\"", "\\": r"\\"})


def line(point: Point) -> str:
    """The point as one line, without its end. Equal points give equal lines."""
    assert point.fields, "a point has at least one field"
    tags = "".join(
        f",{_plain(name).translate(_NAME)}={_plain(value).translate(_NAME)}"
        for name, value in sorted(point.tags.items())
    )
    fields = ",".join(
        f"{_plain(name).translate(_NAME)}={_field(value)}"
        for name, value in sorted(point.fields.items())
    )
    return f"{_plain(point.measurement).translate(_MEASUREMENT)}{tags} {fields} {point.time_ms}"


def _plain(text: str) -> str:
    """`text` without what a name or a tag value cannot hold: a line ends at a line feed, and a
    backslash at the end would escape the comma behind it, with no way to escape that."""
    return _printable(text, "_").replace("\\", "_")


def _printable(text: str, instead: str) -> str:
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else instead for character in text)


def _field(value: float | str) -> str:
    if isinstance(value, str):
        return f'"{_printable(value, " ").translate(_STRING)}"'
    assert math.isfinite(value), "models refuse what is not finite"
    return repr(float(value))
