"""From pieces of work to windows of 100 ms, and from windows to figures."""

import math
import random
import statistics
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from services.gpu.tests.compiler import compiler
from tests.compiled import compiled
from tests.machine_code import ROOT

Piece = tuple[int, float, float]


@pytest.fixture(scope="module")
def probe() -> Path:
    return build("window_probe.c")


@pytest.fixture(scope="module")
def engine() -> Path:
    return build("phase_probe.c", "windows.c")


def build(probe: str, *parts: str) -> Path:
    bench, harness = ROOT / "services/gpu/bench", ROOT / "harness"
    parts = ("window_record.c", *parts)
    sources = [Path(__file__).parent / probe, *(bench / part for part in parts)]
    sources.append(harness / "statistics.c")
    options = ["-std=gnu17", "-Wall", "-Wextra", "-Werror", f"-I{bench}", f"-I{harness}", "-lm"]
    return compiled(Path(probe).stem, sources, options, compiler=compiler())


def figures(probe: Path, lanes: int, pieces: Sequence[Piece]) -> list[float]:
    """count, median, best, cv, rate of the whole, work, seconds."""
    lines = "".join(f"{lane} {work!r} {seconds!r}\n" for lane, work, seconds in pieces)
    answer = subprocess.run(
        [probe], input=f"{lanes}\n{lines}", capture_output=True, text=True, check=True
    )
    return [float(word) for word in answer.stdout.split()]


def test_windows_are_of_100_ms_and_the_rest_is_none(probe: Path) -> None:
    drawn = random.Random(3)
    pieces = [(0, drawn.uniform(1e9, 2e9), 0.02) for _ in range(53)]
    rates = [sum(work for _, work, _ in pieces[i : i + 5]) / 0.1 for i in range(0, 50, 5)]
    count, median, best, cv, whole, work, seconds = figures(probe, 1, pieces)
    assert count == 10
    assert median == pytest.approx(statistics.median(rates))
    assert best == pytest.approx(max(rates))
    assert cv == pytest.approx(statistics.stdev(rates) / statistics.mean(rates))
    assert work == pytest.approx(sum(work for _, work, _ in pieces))
    assert seconds == pytest.approx(53 * 0.02) and whole == pytest.approx(work / seconds)


def test_less_than_a_window_is_one(probe: Path) -> None:
    count, median, best, cv, whole, work, seconds = figures(probe, 1, [(0, 10.0, 0.01)] * 3)
    assert count == 1 and work == 30.0 and seconds == pytest.approx(0.03)
    assert median == best == whole == pytest.approx(1000)
    assert math.isnan(cv)


def test_lanes_add_up_each_by_its_own_time(probe: Path) -> None:
    pieces: list[Piece] = [(0, 10.0, 0.05), (1, 30.0, 0.1), (0, 10.0, 0.05), (1, 30.0, 0.1)] * 2
    count, median, _, _, whole, work, seconds = figures(probe, 2, pieces)
    assert count == 2 and median == pytest.approx(200 + 300)
    assert work == 160.0 and whole == pytest.approx(500) and seconds == pytest.approx(0.3)


def test_a_spread_that_is_small_beside_the_rate(probe: Path) -> None:
    pieces = [(0, 1e12 + (i % 2), 0.1) for i in range(100)]
    cv = figures(probe, 1, pieces)[3]
    assert cv == pytest.approx(statistics.stdev([0, 1] * 50) / 1e12, rel=1e-3)


def test_nothing_has_no_rate(probe: Path) -> None:
    count, median, *_ = figures(probe, 1, [])
    assert count == 0 and math.isnan(median)


# ---- a trial ---------------------------------------------------------------------------------


def trial(engine: Path, cold_s: float, warm_s: float, pieces: int) -> tuple[dict[str, int], str]:
    """Numbers by name, and the warning."""
    answer = subprocess.run(
        [engine, str(cold_s), str(warm_s), str(pieces)], capture_output=True, text=True, check=True
    )
    numbers = dict(line.split(" ", 1) for line in answer.stdout.splitlines())
    warning = numbers.pop("warning", "")
    return {name: int(value) for name, value in numbers.items()}, warning


def test_pieces_stay_as_long_as_they_should_be(engine: Path) -> None:
    """A card that was idle is calibrated while it is slow."""
    numbers, warning = trial(engine, cold_s=20e-6, warm_s=1e-6, pieces=50)
    assert numbers["calibrated"] == pytest.approx(7e-3 / 20e-6, rel=0.3)
    assert numbers["size"] == pytest.approx(7e-3 / 1e-6, rel=0.3)
    assert numbers["looked"] == 2 and not warning


@pytest.mark.parametrize("warm_s", [0.6e-6, 1e-6, 50e-6])
def test_pieces_that_are_long_enough_stay(engine: Path, warm_s: float) -> None:
    numbers, _ = trial(engine, cold_s=1e-6, warm_s=warm_s, pieces=50)
    assert numbers["size"] == numbers["calibrated"]


def test_a_phase_without_a_piece(engine: Path) -> None:
    """Nothing is there to be looked at, and nothing is wrong: the device did what it had to."""
    numbers, warning = trial(engine, cold_s=1e-6, warm_s=1e-6, pieces=0)
    assert numbers["looked"] == 1 and warning == "nothing_done"
