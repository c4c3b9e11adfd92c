"""The tables of benchmarks/README.md hold what their raw figures give."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from benchmarks import figures
from benchmarks.figures import CONFIDENCE, Entry, load, order_interval, save, spread
from benchmarks.pairs import Comparison, Target

ROOT = Path(__file__).parents[2]
LINES = (ROOT / "benchmarks/README.md").read_text().splitlines()
GIGA = 1e9
# The tables with RATIO_COLUMNS: their file, and what their medians are given in and to which digit.
COMPARED = {
    "mem/against_likwid": (1e-9, 1),
    "mem/against_stream": (1e-9, 1),
    "mem/against_multichase": (1e9, 1),
    "mem/against_assembly": (1e9, 2),
    "net/against_iperf3": (8e-9, 2),
    "net/against_sockperf": (1e6, 2),
}
# Those of the CPU give the extremes of the ratios: their file, and the column of the other tool.
CPU_TABLES = {
    "against_likwid": "likwid",
    "against_likwid_scalar_sse2": "likwid",
    "against_dgemm": "plain",
    "against_hpl": "hpl",
}


def in_one_line(*cells: str) -> bool:
    """Whether some row of some table has all of them, in this order."""
    for line in LINES:
        place = 0
        for cell in cells:
            place = line.find(cell, place)
            if place < 0:
                break
        else:
            return True
    return False


def compared_rows(name: str) -> Iterator[tuple[str, ...]]:
    scale, digits = COMPARED[name]
    for entry in load(name)[1]:
        ours = entry.numbers("ours")
        if theirs := entry.numbers("theirs"):
            comparison = Comparison(Target(str(entry.facts["target"])), tuple(ours), tuple(theirs))
            medians = (f"| {median(side) * scale:.{digits}f} |" for side in (ours, theirs))
            yield *medians, " | ".join(comparison.cells()[:-1])
        else:
            found = spread(ours)
            interval = f"{found['low'] * scale:.{digits}f} – {found['high'] * scale:.{digits}f}"
            yield f"| {found['median'] * scale:.{digits}f} |", interval


@pytest.mark.parametrize("name", COMPARED)
def test_pairs(name: str) -> None:
    rows = list(compared_rows(name))
    assert rows and [row for row in rows if not in_one_line(*row)] == []


@pytest.mark.parametrize("name", CPU_TABLES)
def test_pairs_of_the_cpu(name: str) -> None:
    rows = []
    for entry in load(f"cpu/{name}")[1]:
        ours, theirs = entry.numbers("ours"), entry.numbers(CPU_TABLES[name])
        ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
        rows.append(
            (
                f"| {median(ours) / GIGA:.1f} | {median(theirs) / GIGA:.1f} |",
                f"| {median(ratios):.3f} | {min(ratios):.3f} – {max(ratios):.3f}",
            )
        )
    assert rows and [row for row in rows if not in_one_line(*row)] == []


@pytest.mark.parametrize("name", ["against_fio", "against_fio_on_loop_device"])
def test_pairs_of_the_disk(name: str) -> None:
    rows = []
    for entry in load(f"disk/{name}")[1]:
        sides = [entry.numbers(f"{side}_operations_per_second") for side in ("ours", "theirs")]
        cells = [f"| {median(side):,.0f} |" for side in sides]
        for column in entry.columns:
            if column.startswith("ours_"):
                theirs = entry.numbers(column.replace("ours", "theirs", 1))
                ratios = [a / b for a, b in zip(entry.numbers(column), theirs, strict=True)]
                ratio = spread(ratios)
                found = f"{ratio['median']:.3f}** ({ratio['low']:.3f} – {ratio['high']:.3f})"
                cells.append(found)
        rows.append(cells)
    assert len(rows) == 9 and [row for row in rows if not in_one_line(*row)] == []


def test_trials_against_the_limit() -> None:
    entries = load("cpu/against_limit")[1]
    shares = [share for entry in entries for share in entry.numbers("efficiency")]
    assert in_one_line(f"Nothing in {len(shares)} trials was above 1.012 of its limit.")
    assert max(shares) <= 1.012
    medians = {
        str(entry.facts["command"]): median(entry.numbers("efficiency")) for entry in entries
    }
    fma = [value for command, value in medians.items() if command.startswith("cpu-bench fma ")]
    assert in_one_line(f"| {len(fma)} | {min(fma):.3f} – {max(fma):.3f} |")


def test_trials_beside_a_load() -> None:
    quiet, loaded = load("cpu/under_load")[1]
    middle = median(quiet.numbers("operations_per_second"))
    for name, entry in (("quiet", quiet), ("loaded", loaded)):
        cells = [f"| {name} |"]
        flagged = sum(codes is not None for codes in entry.columns["disturbed"])
        cells.append(f"{flagged} of {len(entry.columns['disturbed'])}")
        for column in ("operations_per_second", "operations_per_second_makespan"):
            shares = [value / middle for value in entry.numbers(column)]
            cells.append(f"{min(shares):.3f} – {max(shares):.3f}")
        assert in_one_line(*cells), cells


def test_planted_caches() -> None:
    entries = load("disk/contamination")[1]
    for entry in entries:
        flagged = entry.numbers("flagged")
        assert in_one_line(f"| {len(flagged)} | {sum(flagged):.0f} | {sum(flagged):.0f} | holds")


def test_lost_datagrams() -> None:
    for entry in load("net/loss_is_exact")[1]:
        sent, lost, told = (
            sum(entry.numbers(name)) for name in ("sent_datagrams", "really_lost", "lost_datagrams")
        )
        head = f"| {entry.facts['drops']} | {entry.facts['udp_path']} |"
        assert in_one_line(head, f"| {sent:,.0f} | {lost:,.0f} | {told:,.0f} | {told / sent:.2%} |")


def test_the_stack() -> None:
    ((pairs,), (starts,), (queue,)) = (
        load(f"stack/{name}")[1] for name in ("through_stack", "gate_to_start", "submissions")
    )
    ratios = [a / b for a, b in zip(pairs.numbers("stack"), pairs.numbers("alone"), strict=True)]
    assert in_one_line(f"{median(ratios):.4f}, {min(ratios):.4f} – {max(ratios):.4f}")
    for entry, column in ((starts, "gate_to_start_s"), (queue, "dispatch_s")):
        ms = [value * 1e3 for value in entry.numbers(column)]
        assert in_one_line(f"median {median(ms):.1f} ms, {min(ms):.1f} – {max(ms):.1f} ms")
    p50, p99 = (float(str(queue.facts[f"latency_s_{name}"])) * 1e3 for name in ("p50", "p99"))
    assert in_one_line(f"p50 {p50:.1f} ms, p99 {p99:.1f} ms")


def test_what_is_saved_is_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cpu").mkdir()
    monkeypatch.setattr(figures, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(figures, "host", lambda subsystem: {"program": f"{subsystem}-bench 1.0"})
    first = Entry({"command": "a: b, c", "rate": None}, {"ours": [1.5, None], "word": ["x, y", ""]})
    second = Entry({"sweep": {"one": 1, "two": 2.5}}, {"theirs": (1e-9,)})
    save("cpu/some", [first, second], library="OpenBLAS 0.3")
    facts, entries = load("cpu/some")
    assert facts.pop("date") and facts == {"program": "cpu-bench 1.0", "library": "OpenBLAS 0.3"}
    assert entries == [
        Entry(
            {"command": "a: b, c"},
            {"ours": [1.5, None], "word": ["x, y", None], "theirs": [None, None]},
        ),
        Entry({"sweep": "one=1, two=2.5"}, {"ours": [None], "word": [None], "theirs": [1e-9]}),
    ]


def test_the_interval_between_order_statistics_has_the_coverage_it_says() -> None:
    """At least 95 % and no narrower one has it; below six values the whole range has less."""
    stats = importlib.import_module("scipy.stats")
    for n in (*range(6, 40), 250):
        interval = order_interval([float(i) for i in range(n)])
        theirs = stats.quantile_test(range(n), p=0.5).confidence_interval(CONFIDENCE)
        assert (interval.low, interval.high) == (theirs.low, theirs.high), n
        rank = int(interval.low) + 1
        assert interval.confidence == pytest.approx(1 - 2 * stats.binom.cdf(rank - 1, n, 0.5))
        assert interval.confidence >= CONFIDENCE > 1 - 2 * stats.binom.cdf(rank, n, 0.5)
    for n, confidence in ((1, 0.0), (2, 0.5), (3, 0.75), (5, 0.9375)):
        interval = order_interval([7.0, 3.0, 5.0, 4.0, 6.0][:n])
        assert interval.confidence == confidence
