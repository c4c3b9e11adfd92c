"""What earlier jobs of a host say about the figure of this one."""

from pathlib import Path

import pytest

from hostbench.decisions import earlier
from hostbench.decisions.earlier import earlier_figures
from hostbench.decisions.index import INDEX
from hostbench.judge.between_jobs import VARIES
from hostbench.judge.case import finished_case
from hostbench.judge.figure import Measured
from hostbench.judge.trial import measured_trial
from hostbench.model.decision import CaseFigure
from hostbench.model.result import (
    BetweenJobs,
    CaseFigures,
    ClassSpreads,
    SessionRecord,
    StopReason,
    Verdict,
)
from hostbench.results.store import DOCUMENT, JobDirectory
from tests.unit import decided
from tests.unit.records import RATE_METRIC, bare_trial, end, planned, session, start


def judged(
    before: list[float | None], usual_half_width: float = 0.0, **disturbance: float
) -> tuple[Verdict, list[str], CaseFigures]:
    """The case of a job whose three trials all read 100, after jobs with these figures."""
    figures = [decided.case("aaaa", value) for value in before]
    trials = [
        measured_trial(
            bare_trial(index, events=(start(), end(100.0, **disturbance))), (RATE_METRIC,), {}
        )
        for index in range(3)
    ]
    one = Measured(planned(), (RATE_METRIC,), trials, earlier=figures)
    others = ClassSpreads(usual_half_width=usual_half_width)
    record = finished_case(one, (), None, StopReason.TARGET_REACHED, others)
    assert record.figures is not None
    return record.verdict, [reason.code for reason in record.figures.reasons], record.figures


@pytest.mark.parametrize(
    ("before", "usual", "off", "verdict"),
    [
        ([100.0, 101.0], 0.0, 0, Verdict.CLEAN),
        ([100.0, 97.0], 0.0, 1, Verdict.NOISY),
        # The target is 2 %.
        ([100.0, 97.5], 0.03, 0, Verdict.CLEAN),
        # One of ten counts, one of eleven does not, two of eleven do.
        ([70.0, *[100.0] * 8], 0.0, 1, Verdict.NOISY),
        ([70.0, *[100.0] * 9], 0.0, 1, Verdict.CLEAN),
        ([70.0, 130.0, *[100.0] * 8], 0.0, 2, Verdict.NOISY),
        # This job is the one that is off.
        ([70.0, 70.0], 0.0, 1, Verdict.NOISY),
        # Earlier jobs without a figure do not count.
        ([None, None, 100.0, 97.0], 0.0, 1, Verdict.NOISY),
    ],
)
def test_a_figure_that_varies_between_jobs_is_noisy(
    before: list[float | None], usual: float, off: int, verdict: Verdict
) -> None:
    known = [100.0, *(value for value in before if value is not None)]
    found, codes, figures = judged(before, usual)
    assert (found, codes) == (verdict, [VARIES] if verdict is Verdict.NOISY else [])
    assert figures.between_jobs == BetweenJobs(
        jobs=len(known), low=min(known), high=max(known), off=off, bound_ratio=max(0.02, usual)
    )


def test_the_reason_says_what_was_seen() -> None:
    _, _, figures = judged([60.0, 100.0, 100.0, 61.0], usual_half_width=0.3)
    assert [reason.text for reason in figures.reasons] == [
        "60.00 op/s to 100.0 op/s in this and 4 earlier jobs of this host: 2 of these 5 figures "
        "are more than 30 % off their median; hostbench history shows when"
    ]


def test_few_jobs_and_disturbed_ones_say_nothing() -> None:
    few: tuple[list[float | None], ...] = ([], [50.0], [None, None, 50.0])
    for before in few:
        verdict, codes, figures = judged(before)
        assert (verdict, codes, figures.between_jobs) == (Verdict.CLEAN, [], None)
    verdict, codes, figures = judged([50.0, 60.0], cpu_ratio=0.5, clean_slice_ratio=0.0)
    assert verdict is Verdict.DISTURBED and VARIES not in codes and figures.between_jobs is None


# ---- which jobs ----


def session_like(stored: JobDirectory, **changes: object) -> SessionRecord:
    """A session that measures the same as a stored job on the same host."""
    document = stored.load()
    cases = tuple(planned(case.case, workload=case.workload) for case in document.cases)
    plain = {
        "job": "20300101T000000Z-full-0000",
        "hostbench": document.hostbench,
        "programs": document.programs,
        "host": document.host,
        "workloads": document.workloads,
    }
    return session(cases, **(plain | changes))


def values(found: dict[str, list[CaseFigure]], case: str) -> list[float | None]:
    return [figure.undisturbed for figure in found.get(case, [])]


def test_jobs_of_this_machine_with_the_same_facts(tmp_path: Path) -> None:
    jobs = [decided.stored_job(tmp_path, number, 1 + number / 10) for number in range(3)]
    decided.stored_job(tmp_path, 3, 9.0, host="b")
    case = next(one for one in jobs[0].load().cases if one.undisturbed is not None)
    assert case.undisturbed is not None
    first = case.undisturbed.value
    seen = values(earlier_figures(tmp_path, session_like(jobs[0])), case.case)
    assert seen == pytest.approx([1.2 * first, 1.1 * first, first])
    # Its own job does not count: it may have been resumed.
    own = earlier_figures(tmp_path, session_like(jobs[0], job=jobs[2].id))
    assert values(own, case.case) == pytest.approx([1.1 * first, first])
    document = jobs[0].load()
    updated = document.host.model_copy(update={"kernel": "9.9.9"})
    assert not values(earlier_figures(tmp_path, session_like(jobs[0], host=updated)), case.case)
    other = tuple(one.model_copy(update={"sha256": "0" * 64}) for one in document.programs)
    assert not values(earlier_figures(tmp_path, session_like(jobs[0], programs=other)), case.case)


def test_only_the_newest_jobs_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [decided.stored_job(tmp_path, number, 1.0 + number) for number in range(4)]
    wanted = session_like(jobs[0])
    case = next(one for one in jobs[0].load().cases if one.undisturbed is not None)
    everything = values(earlier_figures(tmp_path, wanted), case.case)
    assert len(everything) == 4
    # So many with the case; and so many are looked at, whatever they have.
    for name in ("EARLIER_MOST", "LOOKED_AT"):
        with monkeypatch.context() as patched:
            patched.setattr(earlier, name, 2)
            assert values(earlier_figures(tmp_path, wanted), case.case) == everything[:2]


def test_a_damaged_index_or_document_holds_up_no_job(tmp_path: Path) -> None:
    assert earlier_figures(tmp_path, session()) == {}
    assert earlier_figures(tmp_path / "missing", session()) == {}
    jobs = [decided.stored_job(tmp_path, number) for number in range(3)]
    wanted = session_like(jobs[0])
    (jobs[1].path / DOCUMENT).write_text("{")
    (tmp_path / INDEX).write_bytes(b"no database")
    assert {len(figures) for figures in earlier_figures(tmp_path, wanted).values()} == {2}
