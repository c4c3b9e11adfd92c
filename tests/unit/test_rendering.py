"""Tables for people at the width of a terminal."""

import io

import pytest

from hostbench.cli.render_list import show_jobs
from hostbench.model.result import JobState, JobSummary, Verdict


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
    said = [line[at:].strip() for line in lines]
    assert len(said) > 1 and max(map(len, lines)) <= 80
    pairs = " ".join(said).split(", ")
    assert pairs == ["38 clean", "10 noisy", "2 disturbed", "1 skipped"]
    assert all(line.split()[0].isdigit() for line in said)


def test_a_job_without_verdicts() -> None:
    assert len(table({})) == 2
