"""Figures as people read them."""

import pytest

from hostbench.base.units import (
    binary_bytes,
    duration,
    exact_bytes,
    human,
    percent,
    plural,
    plus_minus,
    significant,
    tick,
)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1.1324e11, "operation/s", "113.2 Gop/s"),
        (3.6e9, "Hz", "3.600 GHz"),
        (999.96e9, "operation/s", "1.000 Top/s"),
        (0.0, "operation/s", "0 op/s"),
        (None, "operation/s", "–"),
        (0.98765, "1", "0.9877"),
        (1.5e-6, "s", "1.500 µs"),
        (0.25, "s", "250.0 ms"),
        (3.4e10, "byte/s", "34.00 GB/s"),
        (4.4e-10, "s", "0.4400 ns"),
        (5e-15, "s", "5.000e-06 ns"),
        (-2.5e9, "Hz", "-2.500 GHz"),
    ],
)
def test_human(value: float | None, unit: str, text: str) -> None:
    assert human(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0, "0"), (1, "1.000"), (12345.6, "12350"), (9.99999, "10.00"), (0.00123456, "0.001235")],
)
def test_significant(value: float, text: str) -> None:
    assert significant(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.983, "98.3 %"), (0.0043, "0.43 %"), (1.5, "150.0 %"), (None, "–"), (0.0, "0.00 %")],
)
def test_percent(ratio: float | None, text: str) -> None:
    assert percent(ratio) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.048, "± 4.8 %"), (0.0043, "± 0.43 %"), (1.0, "± 100.0 %"), (20.43, "± > 100 %")],
)
def test_an_interval_wider_than_its_figure_has_no_share(ratio: float, text: str) -> None:
    assert plus_minus(ratio) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(6.2, "7 s"), (75, "1 min 15 s"), (60, "1 min 00 s"), (7500, "2 h 05 min")],
)
def test_duration(seconds: float, text: str) -> None:
    assert duration(seconds) == text


def test_plural() -> None:
    assert [plural(count, "case") for count in (1, 2, 1000)] == ["1 case", "2 cases", "1,000 cases"]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [(2e-7, "s", "200 ns"), (5e10, "byte/s", "50 GB/s"), (0, "s", "0 s"), (5e-10, "s", "0.5 ns")],
)
def test_tick(value: float, unit: str, text: str) -> None:
    assert tick(value, unit) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1, "1 B"),
        (4096, "4 KiB"),
        (1 << 30, "1 GiB"),
        (1e9, "953.7 MiB"),
        (480 << 20, "480 MiB"),
        (0, "0 B"),
    ],
)
def test_binary_bytes(value: float, text: str) -> None:
    assert binary_bytes(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0 B"),
        (8, "8 B"),
        (1000, "1000 B"),
        (1 << 30, "1 GiB"),
        (1536 << 10, "1536 KiB"),
        ((1 << 30) - 1024, "1073740800 B"),
        (48 * 10**6, "48 MB"),
        (40 * 10**9, "40 GB"),
        (10**12, "1 TB"),
        (10**12 + 1, "1000000000001 B"),
        (65536, "64 KiB"),
    ],
)
def test_exact_bytes(value: int, text: str) -> None:
    assert exact_bytes(value) == text
