"""Whatever stands in a point, InfluxDB reads back what was meant."""

import itertools

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.influx.points import Point, line
from tests.stack.influx_server import InfluxServer

TIME_MS = 1_795_219_632_036
TEXT = st.text(st.characters(exclude_categories=()), min_size=1, max_size=40)


numbers = itertools.count()


def point(label: str, reason: str = "", value: float = 1.0, host: str = "alpha") -> Point:
    return Point("result", {"host": host, "label": label}, {"v": value, "r": reason}, TIME_MS)


@pytest.mark.parametrize(
    ("label", "written"),
    [
        ("fp64 2 threads", r"fp64\ 2\ threads"),
        ("n=8000,x", r"n\=8000\,x"),
        ("back\\", "back_"),
        ("two\nlines", "two_lines"),
        ('"quoted"', '"quoted"'),
        ("Größe µ", r"Größe\ µ"),
    ],
)
def test_tags(label: str, written: str) -> None:
    assert line(point(label)) == f'result,host=alpha,label={written} r="",v=1.0 {TIME_MS}'


def test_strings() -> None:
    text = line(point("x", 'a "b" \\ c, d=e\nf'))
    assert text == rf'result,host=alpha,label=x r="a \"b\" \\ c, d=e f",v=1.0 {TIME_MS}'


@pytest.mark.parametrize(
    ("value", "written"), [(1, "1.0"), (1e300, "1e+300"), (-2.5e-9, "-2.5e-09"), (0.1, "0.1")]
)
def test_numbers_are_floats_in_full(value: float, written: str) -> None:
    assert line(point("x", "", value)).split("v=")[1] == f"{written} {TIME_MS}"


@settings(
    deadline=None, max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(label=TEXT, reason=TEXT, value=st.floats(allow_nan=False, allow_infinity=False))
@pytest.mark.exhaustive
def test_influxdb_reads_back_what_was_written(
    influx_server: InfluxServer, database: str, label: str, reason: str, value: float
) -> None:
    host = f"host-{next(numbers)}"
    one = point(label, reason, value, host)
    with influx_server.client(database=database) as client:
        client.write([line(one)])
        (series,) = client.query(
            f"""SELECT "v", "r" FROM "result" WHERE "host" = '{host}' GROUP BY *"""
        )
    assert series.tags["label"] == "".join(
        "_" if c == "\\" or not c.isprintable() else c for c in label
    )
    printable = "".join(c if c.isprintable() else " " for c in reason)
    assert [list(values) for values in series.values] == [[TIME_MS, value, printable]]
