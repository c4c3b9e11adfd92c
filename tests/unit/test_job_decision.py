"""What is decided of a job when its document is stored."""

import random
from pathlib import Path

import pytest

from hostbench.decisions.baseline import made_of, measured_job
from hostbench.decisions.baseline_files import content_of
from hostbench.decisions.change_points import change_points, series_least
from hostbench.decisions.history import history, shared_confidence
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.job import JOBS_MOST, JobDecider
from hostbench.model.baseline import HEADLINES_MOST, HostWord
from hostbench.model.decision import FigureKind, Word
from hostbench.model.job_decision import JobDecisions
from hostbench.results.store import JobDirectory
from tests.unit.baseline_documents import of_host, of_hosts
from tests.unit.decided import Hosts, case, stored_job
from tests.unit.test_compare import more_than

BEFORE = 13


def decided(root: Path, job: JobDirectory, **environment: str) -> JobDecisions:
    """As when the job is the newest of all those that are there."""
    with FigureIndex(root) as index:
        return JobDecider(index, {"HOME": str(root / "home"), **environment}).of(job.load())


@pytest.fixture(scope="module")
def slower(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[JobDecisions]]:
    """A host that became slower by 7 % after BEFORE jobs, and the decision on each job then."""
    root = tmp_path_factory.mktemp("slower")
    rng = random.Random(5)
    decisions = []
    for number in range(BEFORE + 6):
        factor = (1.0 if number < BEFORE else 0.93) * (1 + rng.gauss(0, 0.003))
        decisions.append(decided(root, stored_job(root, number, factor)))
    return root, decisions


def test_a_change_is_seen_after_a_few_jobs(slower: tuple[Path, list[JobDecisions]]) -> None:
    _, decisions = slower
    words = [{one.history.word for one in each.figures} for each in decisions]
    assert words[:11] == [{Word.UNDECIDED}] * 11
    assert words[11:BEFORE] == [{Word.SAME}] * 2
    assert words[-2:] == [{Word.WORSE}] * 2
    for one in decisions[-1].figures:
        (change,) = one.history.changes
        assert abs(change.jobs_before - BEFORE) <= 1, one.check.title
        assert change.high < 1 and one.history.points[-1].job == decisions[-1].job
        assert one.check.word is HostWord.NO_REFERENCE


def test_later_jobs_change_nothing_of_what_is_reported(
    slower: tuple[Path, list[JobDecisions]],
) -> None:
    root, decisions = slower
    with FigureIndex(root) as index:
        decider = JobDecider(index, {"HOME": str(root / "home")})
        for before in decisions:
            assert decider.of(JobDirectory(root / before.job).load()) == before


def test_other_hosts_have_no_say(slower: tuple[Path, list[JobDecisions]], tmp_path: Path) -> None:
    for number in range(12):
        stored_job(tmp_path, number, host="a")
    other = decided(tmp_path, stored_job(tmp_path, 12, 0.5, host="b"))
    assert {len(one.history.points) for one in other.figures} == {1}
    assert len(other.figures) == HEADLINES_MOST


def test_a_job_that_is_not_stored_has_no_decisions(tmp_path: Path) -> None:
    stored_job(tmp_path, 0)
    with FigureIndex(tmp_path) as index:
        decider = JobDecider(index, {"HOME": str(tmp_path)})
        assert decider.of(of_host(1)).figures == ()


def test_jobs_before_the_newest_sixty_are_no_news() -> None:
    """By the same search: a level that is that old is what is usual now."""
    own = Hosts(("cpu.fma 0",), between=0.002)
    jobs = [*own.jobs(8, {"cpu.fma 0": 1.2}), *own.jobs(JOBS_MOST)]
    newest = jobs[-1].cases["cpu.fma 0"]
    assert history(jobs, newest).word is Word.WORSE
    assert history(jobs[-JOBS_MOST:], newest).word is Word.SAME


def test_a_figure_below_the_baseline_is_low(tmp_path: Path) -> None:
    folder = tmp_path / "data/hostbench/baselines"
    folder.mkdir(parents=True)
    sound = [measured_job(one) for one in of_hosts((0.99, 1.0, 1.005, 0.995, 1.01))]
    (folder / "model.json").write_bytes(content_of(made_of(sound)))
    slow = of_host(50, 0.8)
    job = JobDirectory(tmp_path / "results" / slow.job.id)
    job.path.mkdir(parents=True)
    job.store(slow)
    found = decided(tmp_path / "results", job, XDG_DATA_HOME=str(tmp_path / "data"))
    for one in found.figures:
        assert (one.check.word, one.check.hosts) == (HostWord.LOW, 5), one.check.title
        assert one.check.usual is not None and one.check.expected is not None
        assert one.check.value < one.check.expected < one.check.usual


@pytest.mark.parametrize("tried", [20, 60])
@pytest.mark.sampled(2)
def test_figures_together_are_wrong_as_rarely_as_one(tried: int) -> None:
    """Of hosts on which nothing changed, with heavy tails that all figures of a job share in part:
    the newest job, with twelve headline figures."""
    cases = tuple(f"cpu.fma {number}" for number in range(HEADLINES_MOST))
    confidence, wrong = shared_confidence(len(cases)), 0
    for seed in range(tried):
        jobs = Hosts(cases, within=0.01, rng=random.Random(seed)).jobs(20 + seed % 2 * 20)
        found = [history(jobs, jobs[-1].cases[name], confidence=confidence) for name in cases]
        wrong += any(one.changes for one in found)
    assert wrong <= more_than(0.05, tried), wrong


@pytest.mark.parametrize(("confidence", "least"), [(0.95, 8), (shared_confidence(12), 12)])
def test_so_many_values_are_the_least_that_can_decide(confidence: float, least: int) -> None:
    assert series_least(confidence) == least
    for length, found in ((least, 1), (least - 1, 0)):
        sorted_best = [float(place >= length // 2) + place / 1000 for place in range(length)]
        splits = change_points(sorted_best, confidence=confidence)
        assert len(splits.splits) <= found, length
    jobs = Hosts(("cpu.fma 0",)).jobs(least)
    newest = jobs[-1].cases["cpu.fma 0"]
    assert history(jobs, newest, confidence=confidence).word is not Word.UNDECIDED
    assert history(jobs[1:], newest, confidence=confidence).word is Word.UNDECIDED


def test_where_there_are_no_slices_what_was_delivered_is_the_figure() -> None:
    own = Hosts(("disk.seq_read 0",))
    jobs = [own.job() for _ in range(3)]
    bare = [
        job.model_copy(update={"cases": {"disk.seq_read 0": case("disk.seq_read 0", None, 5.0)}})
        for job in jobs
    ]
    newest = bare[-1].cases["disk.seq_read 0"]
    assert history(bare, newest).kind is FigureKind.DELIVERED
    assert len(history(bare, newest).points) == 3
    assert history(jobs, jobs[-1].cases["disk.seq_read 0"]).kind is FigureKind.UNDISTURBED
