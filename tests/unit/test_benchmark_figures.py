"""The tables of benchmarks/README.md hold what their raw figures give."""

import importlib
import re
import subprocess
import sys
from pathlib import Path
from statistics import median

import pytest

from benchmarks import figures
from benchmarks.arguments import given_number
from benchmarks.decisions import settings
from benchmarks.decisions.fresh import rows_of
from benchmarks.decisions.page import COMPARING
from benchmarks.decisions.page import written as page_with
from benchmarks.decisions.resampled import compared_tables, fresh_table, groups_of
from benchmarks.figures import (
    BENCHMARKS,
    CONFIDENCE,
    MAKERS,
    Entry,
    begun,
    load,
    maker,
    order_interval,
    save,
)
from benchmarks.missing import lacking
from benchmarks.tables import README, TABLES, Benchmark, marked, written

LINES = README.read_text().splitlines()
DECISIONS = BENCHMARKS / "decisions/results/amd"


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


def measured(name: str, of: str = "intel") -> list[Entry]:
    found = load(name, of)
    assert found is not None, name
    return found[1]


def test_the_tables_are_those_of_the_raw_figures() -> None:
    page = README.read_text()
    assert written(page) == page, "run python -m benchmarks.tables"
    tables = [one for one in TABLES if type(one) is not Benchmark]
    assert [one.name for one in tables if f"<!-- table: {one.name} -->" not in page] == []


@pytest.mark.exhaustive  # It compares 84 jobs in hundreds of ways: 90 s of CPU.
@pytest.mark.timeout(900)
def test_the_tables_of_decisions_are_those_of_the_measured_tests_and_jobs() -> None:
    measured_tests, jobs = DECISIONS / "settings.csv", DECISIONS / "jobs.csv"
    pages = settings.tables_of(measured_tests, jobs)
    assert list(pages) == [README, COMPARING]
    for page, tables in pages.items():
        text = page.read_text()
        again = page_with(text, tables)
        assert again == text, "run python -m benchmarks.decisions.settings --readme"
    assert {row.split(" | ")[0] for row in settings.least_table(rows_of(measured_tests))} >= {
        f"| {name}" for name in settings.CLASSES.values()
    }


def test_jobs_of_a_round_that_was_ended_in_its_middle_have_a_table(tmp_path: Path) -> None:
    head, *rows = (
        line
        for line in (DECISIONS / "jobs.csv").read_text().splitlines(keepends=True)
        if not line.startswith("#")
    )
    jobs = list(dict.fromkeys(row.split(",")[2] for row in rows))
    for count in (1, 8, 17):
        cut = tmp_path / "jobs.csv"
        cut.write_text(head + "".join(row for row in rows if row.split(",")[2] in jobs[:count]))
        groups = groups_of({"jobs": cut})
        first, *lines = [*fresh_table(cut, groups), *compared_tables(groups)]
        assert f"{count} of 84 jobs were measured," in first
        assert any("| say so |" in line for line in lines)


def test_the_text_says_what_the_table_of_comparisons_says() -> None:
    """All of it takes minutes to compute again: python -m benchmarks.decisions.resampled."""
    page = README.read_text()
    found = re.search(r"\| nothing changed, all of these \| (\d+) of (\d+) \|", page)
    assert found is not None
    wrong, reports = found.groups()
    share = f"{int(wrong) / int(reports):.1%}".replace("%", " %")
    assert f"Of {reports} reports on quiet jobs, {wrong} ({share}) are wrong" in page
    sentence = f"of {reports} reports on quiet jobs, {wrong} were wrong ({share})"
    assert sentence in COMPARING.read_text()


def test_nothing_is_above_its_limit() -> None:
    for one in MAKERS:
        _, entries = load("cpu/against_limit", one) or ({}, [])
        shares = [share for entry in entries for share in entry.numbers("efficiency")]
        assert max(shares, default=0.0) <= 1.02, one


def test_planted_caches() -> None:
    for entry in measured("disk/contamination"):
        flagged = entry.numbers("flagged")
        assert in_one_line(f"| {len(flagged)} | {sum(flagged):.0f} | {sum(flagged):.0f} | holds")


def test_lost_datagrams() -> None:
    for entry in measured("net/loss_is_exact"):
        sent, lost, counted = (
            sum(entry.numbers(name)) for name in ("sent_datagrams", "really_lost", "lost_datagrams")
        )
        head = f"| {entry.facts['drops']} | {entry.facts['udp_path']} |"
        cells = f"| {sent:,.0f} | {lost:,.0f} | {counted:,.0f} | {counted / sent:.2%} |"
        assert in_one_line(head, cells)


def test_the_stack() -> None:
    ((pairs,), (starts,), (queue,)) = (
        measured(f"stack/{name}") for name in ("through_stack", "gate_to_start", "submissions")
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
    found = load("cpu/some", maker())
    assert found is not None and load("cpu/some", "other") is None
    facts, entries = found
    assert facts.pop("date") and facts == {"program": "cpu-bench 1.0", "library": "OpenBLAS 0.3"}
    assert entries == [
        Entry(
            {"command": "a: b, c"},
            {"ours": [1.5, None], "word": ["x, y", None], "theirs": [None, None]},
        ),
        Entry({"sweep": "one=1, two=2.5"}, {"ours": [None], "word": [None], "theirs": [1e-9]}),
    ]


def test_only_a_run_of_the_same_commit_is_gone_on_with(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "mem").mkdir()
    monkeypatch.setattr(figures, "BENCHMARKS", tmp_path)
    here = {"cpu": "EPYC", "kernel": "6.1", "commit": "abc1234"}
    monkeypatch.setattr(figures, "host", lambda subsystem: here)
    assert begun("mem/some") == []
    entry = Entry({"command": "read"}, {"ours": [1.0, 2.0]})
    save("mem/some", [entry])
    assert begun("mem/some") == [entry]
    for name, other in (("commit", "abc1234+"), ("commit", "def5678"), ("kernel", "6.2")):
        monkeypatch.setattr(figures, "host", lambda subsystem, now=here | {name: other}: now)
        assert begun("mem/some") == []
    monkeypatch.setattr(figures, "host", lambda subsystem: here | {"commit": "abc1234+"})
    save("mem/some", [entry])
    assert begun("mem/some") == [], "the files may have changed since"


def test_files_of_figures_do_not_change_what_is_measured(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = tmp_path / "benchmarks"
    raw, script, page = here / "mem/results/amd/some.csv", here / "some.py", here / "README.md"
    raw.parent.mkdir(parents=True)
    git = ["git", "-C", str(tmp_path), "-c", "user.name=me", "-c", "user.email=me@localhost"]
    for file in (raw, script, page):
        file.write_text("1\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "first"]):
        subprocess.run([*git, *command], check=True)
    monkeypatch.setattr(figures, "BENCHMARKS", here)
    monkeypatch.setattr(figures, "host", lambda subsystem: {"commit": figures._commit()})
    save("mem/some", [Entry({}, {"ours": [1.0]})], of="amd")
    page.write_text("2\n")
    for text, plus in (("1\n", False), ("2\n", True)):
        script.write_text(text)
        commit = figures._commit()
        assert len(commit) >= 7 and commit.endswith("+") == plus


def test_rows_whose_machine_code_changed_since_say_so() -> None:
    facts = {"changed": "gemm, int_mul sse2"}
    cases = ("`gemm`, threads 1", "`int_mul` sse2", "`int_mul` avx2", "none")
    assert [bool(marked(case, facts)) for case in cases] == [True, True, False, False]
    assert not any(marked(case, {}) for case in cases)


def test_a_script_takes_how_often_to_measure(monkeypatch: pytest.MonkeyPatch) -> None:
    given = [("", 1, 7), ("3", 1, 3), ("3", 2, 7), ("program 11", 2, 11)]
    for line, place, number in given:
        monkeypatch.setattr(sys, "argv", ["against.py", *line.split()])
        assert given_number(7, place=place) == number, line
    for word in ("0", "-1", "7.5", "seven", ""):
        monkeypatch.setattr(sys, "argv", ["/there/against.py", word])
        with pytest.raises(SystemExit) as refused:
            given_number(7)
        message = f"against: argument 1, {word!r}, is no whole number above 0: leave it out for 7"
        assert refused.value.code == message


def test_every_maker_answers_what_it_lacks() -> None:
    known = {"", "missing", "unequal conditions", "other machine code"}
    for one in TABLES:
        assert {lacking(one, of) for of in MAKERS} <= known


def test_what_no_longer_holds_is_to_be_measured_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(figures, "BENCHMARKS", tmp_path)
    monkeypatch.setattr(figures, "host", lambda subsystem: {"program": f"{subsystem}-bench 1.0"})
    table = Benchmark(name="cpu/some", command="benchmarks.cpu.some", minutes=1)
    assert lacking(table, maker()) == "missing"
    plain = Entry({"command": "a"}, {"ours": [1.0]})
    for facts, entry, why in (
        ({}, plain, ""),
        ({"differs": "pages"}, plain, "unequal conditions"),
        ({}, Entry({"differs": "pages"}, {"ours": [1.0]}), "unequal conditions"),
        ({"changed": "copy"}, plain, "other machine code"),
    ):
        save("cpu/some", [plain, entry], **facts)
        assert lacking(table, maker()) == why


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
