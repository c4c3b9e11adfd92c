"""Tables for people at the width of a terminal."""

import dataclasses
import io
import re
from collections.abc import Callable

import pytest

from hostbench.cli.render import CASES_IN_FULL, _short_titles, show_result
from hostbench.cli.render_list import show_jobs
from hostbench.model.result import JobState, JobSummary, ResultDocument, Verdict
from hostbench.page.job import report_of
from hostbench.report.markdown import markdown
from tests.unit.quick_documents import as_measured, busy, quiet, throttled, under_a_quota
from tests.unit.report_documents import full_run


def table(verdicts: dict[Verdict, int], hostname: str = "alpha") -> list[str]:
    summary = JobSummary(
        id="20261120T174501Z-quick-3f2a",
        suite="quick",
        state=JobState.SUCCEEDED,
        hostname=hostname,
        created_unix_s=1.8e9,
        finished_unix_s=1.8e9,
        cases=sum(verdicts.values()),
        verdicts=verdicts,
    )
    stream = io.StringIO()
    show_jobs([summary], 0, stream)
    return stream.getvalue().splitlines()


def test_a_line_that_is_wide_enough() -> None:
    header, line = table({Verdict.CLEAN: 12, Verdict.SKIPPED: 1})
    assert header.split() == ["job", "host", "state", "cases", "verdicts"]
    assert line.rstrip().endswith("12 clean, 1 skipped")


@pytest.mark.parametrize("length", range(4, 24))
def test_a_count_stays_beside_its_verdict(length: int) -> None:
    verdicts = {Verdict.CLEAN: 38, Verdict.NOISY: 10, Verdict.DISTURBED: 2, Verdict.SKIPPED: 1}
    header, *lines = table(verdicts, "h" * length)
    at = header.index("verdicts")
    counts = [line[at:].strip() for line in lines]
    assert len(counts) > 1 and max(map(len, lines)) <= 80
    pairs = " ".join(counts).split(", ")
    assert pairs == ["38 clean", "10 noisy", "2 disturbed", "1 skipped"]
    assert all(line.split()[0].isdigit() for line in counts)


def test_a_job_without_verdicts() -> None:
    assert len(table({})) == 2


def test_a_job_of_many_cases_has_a_line_for_each() -> None:
    """A run of the suite quick has some 50: it fits into 80 lines beside its progress."""
    document = full_run(trials=3, workloads=("fma", "compare", "linpack"))
    shown = [case for case in document.cases if case.verdict is not Verdict.SKIPPED]
    assert len(shown) > CASES_IN_FULL and any(case.peers for case in shown)
    text = io.StringIO()
    show_result(document, text)
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    assert len(lines) < 80
    words = " ".join(text.getvalue().split())
    assert re.search(r"likwid-bench 5.2.2: ours/peer 1.\d+ to 1.\d+ in \d+ cases \(", words)
    # What is wrong is reported in full, each kind once.
    for verdict in (Verdict.FAILED, Verdict.INVALID):
        first, *others = [case for case in shown if case.verdict is verdict]
        such = f"{1 + len(others)} cases, such as {first.title}" if others else first.title
        assert f"{such}: {first.reasons[0].text}" in words


@pytest.mark.parametrize(
    ("document", "answer", "finding", "line"),
    [
        (
            as_measured,
            "Not quite: 2 findings below",
            "2. Other processes moved up to 29.6 % of the bytes to and from disks: pytest, pid 372",
            "shared",
        ),
        (quiet, "No fault found; cpu reaches 100.0 %", "", "quiet 2 noisy"),
        (
            busy,
            "No headline figure of mem, disk and net can be used",
            "CPU time: cc1plus, 4 processes, of docker-3fa9c12b7d01. 29 cases delivered",
            "shared 50.0% 2 disturbed",
        ),
        (
            under_a_quota,
            "Not quite: 1 finding below",
            "1. The CPU quota of this control group (0.6 of 2 CPUs) held back up to 70.0 % of",
            "quota 70.0%",
        ),
        (
            throttled,
            "Not quite: 1 finding below; cpu reaches 79.0 % of its limit",
            "1. Heat or power held the clock down for up to 40.0 % of the time.",
            "throttled 40.0%",
        ),
    ],
)
def test_a_run_of_quick_has_at_most_72_lines(
    document: Callable[[], ResultDocument], answer: str, finding: str, line: str
) -> None:
    """Beside its progress, at 80 columns; its first lines name the trouble, and name it once."""
    text = io.StringIO()
    show_result(document(), text)
    lines = text.getvalue().splitlines()
    assert len(lines) <= 72 and max(map(len, lines)) <= 80
    head, rest = re.split("\n *case +figure", text.getvalue(), maxsplit=1)
    words = " ".join(head.split())
    assert f"Is this host as it should be? {answer}" in words or answer in words
    findings = re.search(r"(\d) findings? below", words)
    assert finding in words and line in words
    assert f"{int(findings[1]) + 1 if findings else 1}. " not in words
    (cpu,) = (one for one in head.splitlines() if one.startswith("cpu.fma fp32 avx2"))
    assert "236.3 Gop/s ±0.98%" in cpu
    # A row for each case that ran.
    assert sum(one.startswith(("cpu.", "mem.", "disk.", "net.")) for one in rest.splitlines()) == 47


def test_titles_are_cut_as_long_as_that_tells_them_apart() -> None:
    assert _short_titles(["one", "cpu.fma fp64 8 threads", "cpu.fma fp64 9 threads"], 12) == [
        *("one", "cpu.fma fp64 8 threads", "cpu.fma fp64 9 threads")
    ]
    assert _short_titles(["cpu.fma 8 threads", "cpu.dot 8 threads"], 10) == [
        *("cpu.fma 8…", "cpu.dot 8…")
    ]


@pytest.mark.parametrize(
    ("state", "reason", "sentence"),
    [
        (JobState.INTERRUPTED, "interrupted by SIGTERM", "The job was interrupted by SIGTERM."),
        (JobState.INTERRUPTED, "it was cut short", "The job was interrupted: it was cut short."),
        (JobState.FAILED, "a case failed", "The job failed: a case failed."),
    ],
)
def test_how_a_job_ended_is_one_sentence(state: JobState, reason: str, sentence: str) -> None:
    """The last line in the terminal, and the notice on top of the report."""
    document = full_run(trials=1, workloads=("fma",))
    summary = dataclasses.replace(document.job, state=state)
    document = document.model_copy(update={"job": summary, "reason": reason})
    text = io.StringIO()
    show_result(document, text)
    assert text.getvalue().splitlines()[-1] == sentence
    assert f"{sentence} " in markdown(report_of(document, "result.json"))
