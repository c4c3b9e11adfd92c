"""Where a figure of a case changed over the jobs of a host, and how often that is wrong."""

import math
import random
import time
from pathlib import Path
from unittest import mock

import pytest

from hostbench.base.errors import UsageError
from hostbench.decisions.change_points import change_points
from hostbench.decisions.history import find_case, history, history_of
from hostbench.decisions.history_words import change_sentence, history_headline, history_remarks
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.sets import JobFilter
from hostbench.model.decision import FigureKind, History, JobFigures, Word
from hostbench.model.host import Boot
from hostbench.results.ids import submitted_unix_s
from hostbench.results.store import DOCUMENT
from tests.each import each
from tests.unit.decided import Hosts, case
from tests.unit.test_compare import more_than

TITLE = "cpu.fma 0"


def hosts(seed: int, spread: float = 0.01) -> Hosts:
    return Hosts((TITLE,), between=spread, rng=random.Random(seed))


def found(jobs: list[JobFigures], kind: FigureKind = FigureKind.UNDISTURBED) -> History:
    return history(jobs, jobs[-1].cases[TITLE], kind)


def test_where_nothing_changed_one_history_in_twenty_says_so_at_most() -> None:
    """With heavy tails, whatever the number of jobs is."""
    tried = 200
    counts = (8, 12, 20, 40, 90)
    wrong = sum(
        bool(found(hosts(seed).jobs(counts[seed % len(counts)])).changes) for seed in range(tried)
    )
    assert wrong <= more_than(0.05, tried), wrong


def drifting(seed: int, count: int, autocorrelation: float) -> list[float]:
    """Logarithms; each takes over so much of what the one before it was off by."""
    rng, log, logs = random.Random(seed), 0.0, []
    for _ in range(50 + count):
        log = autocorrelation * log + rng.gauss(0, 0.01)
        logs.append(log)
    return logs[50:]


def test_neighbouring_jobs_that_are_alike_are_no_change() -> None:
    tried = 200
    counts = (8, 12, 20, 40, 90)
    wrong = sum(
        bool(change_points(drifting(seed, counts[seed % 5], 0.4), confidence=0.95).splits)
        for seed in range(tried)
    )
    assert wrong <= more_than(0.05, tried), wrong


def test_few_jobs_show_less_autocorrelation_than_there_is() -> None:
    """39 of these series showed a change while what they show was taken as it is."""
    tried = 400
    wrong = sum(
        bool(change_points(drifting(seed, 12 + seed % 9, 0.6), confidence=0.95).splits)
        for seed in range(tried)
    )
    assert wrong <= more_than(0.05, tried), wrong


def test_jobs_that_alternate_are_no_change() -> None:
    """Kendall's correction makes their autocorrelation less than -1."""
    shown = change_points([1.0, 1.1] * 4, confidence=0.95)
    assert not shown.splits
    assert shown.autocorrelation is not None and -1 < shown.autocorrelation < -0.9


def test_a_slow_drift_under_noise_is_no_change() -> None:
    """Of two fifths of the variance: no pair of neighbours shows it, and the longer the series is,
    the more it makes. Too many of these showed a change where only neighbours counted."""
    tried = 200
    counts = (12, 20, 40, 60, 90)
    wrong = 0
    for seed in range(tried):
        slow = drifting(seed, counts[seed % 5], 0.9)
        rng = random.Random(-1 - seed)
        size = 0.01 / math.sqrt(1 - 0.9**2) * math.sqrt(0.6 / 0.4)
        logs = [log + rng.gauss(0, size) for log in slow]
        wrong += bool(change_points(logs, confidence=0.95).splits)
    assert wrong <= more_than(0.05, tried), wrong


@pytest.mark.parametrize("tried", [20, 60])
@pytest.mark.sampled(2)
def test_more_drift_than_is_assumed_counts_as_well_and_is_named(tried: int) -> None:
    """Three quarters of such series would show a change if it were not for what they show."""
    wrong = sum(
        bool(change_points(drifting(seed, 200, 0.8), confidence=0.95).splits)
        for seed in range(tried)
    )
    assert wrong <= more_than(0.15, tried), wrong
    jobs = hosts(1).jobs(200)
    values = drifting(1, 200, 0.8)
    one = found(
        [
            job.model_copy(update={"cases": {TITLE: case(TITLE, math.exp(log))}})
            for job, log in zip(jobs, values, strict=True)
        ]
    )
    assert one.autocorrelation is not None and one.autocorrelation > 0.6
    assert any("an autocorrelation of 0." in sentence for sentence in history_remarks(one))
    steady = found(hosts(1).jobs(40))
    assert not any("the host drifts" in sentence for sentence in history_remarks(steady))


def test_twice_the_least_effect_is_found_within_a_job() -> None:
    right = 0
    for seed in range(50):
        before, after = 10 + seed % 3 * 5, 10 + seed % 4 * 4
        printed = found(hosts(seed).jobs(before + after)).least_effect_ratio
        assert printed is not None
        own = hosts(seed)
        factor = {TITLE: (1 + 2 * printed) ** (-1) ** seed}
        changes = found([*own.jobs(before), *own.jobs(after, factor)]).changes
        places = [change.jobs_before for change in changes[:1]]
        right += bool(places) and len(changes) == 1 and abs(places[0] - before) <= 1
    assert right >= 45, right


def test_beside_a_change_no_more_is_made_up() -> None:
    tried, wrong = 100, 0
    for seed in range(tried):
        own = hosts(seed)
        wrong += len(found([*own.jobs(14), *own.jobs(14, {TITLE: 0.9})]).changes) > 1
    assert wrong <= more_than(0.05, tried), wrong


def test_the_interval_of_a_change_holds_it() -> None:
    tried, held, seen = 60, 0, 0
    for seed in range(tried):
        own = hosts(seed)
        changes = found([*own.jobs(12), *own.jobs(14, {TITLE: 0.94})]).changes
        if len(changes) == 1:
            seen += 1
            held += changes[0].low <= 0.94 <= changes[0].high
    assert seen >= 50
    assert seen - held <= more_than(0.05, seen), (held, seen)


def test_several_changes_stand_in_order() -> None:
    own = hosts(3, spread=0.003)
    jobs = [*own.jobs(12), *own.jobs(15, {TITLE: 0.9}), *own.jobs(11, {TITLE: 1.1})]
    changes = found(jobs).changes
    assert [one.word for one in changes] == [Word.WORSE, Word.BETTER]
    assert [one.job for one in changes] == [jobs[12].job, jobs[27].job]
    assert [(one.jobs_before, one.jobs_after) for one in changes] == [(12, 15), (15, 11)]


def test_facts_that_changed_stand_at_the_change() -> None:
    own = hosts(5, spread=0.003)
    after = [own.job({TITLE: 0.9}, facts={"kernel": "6.8.0"}) for _ in range(10)]
    after[-1] = own.job({TITLE: 0.9}, facts={"kernel": "6.8.0", "governor": "powersave"})
    before = hosts(4, spread=0.003)
    before.made = -20
    (change,) = found([*before.jobs(10), *after]).changes
    assert [(one.fact, one.a, one.b) for one in change.facts] == [
        ("kernel", ("6.1.0",), ("6.8.0",))
    ]
    assert change.value_before > change.value_after
    sentence = change_sentence(change, "operation/s")
    assert " worse −" in sentence and "in 10 jobs before" in sentence


def test_a_quota_changes_what_is_delivered_only() -> None:
    own = hosts(6, spread=0.003)
    jobs = [*own.jobs(10), *(own.job(delivered=lambda value: 0.6 * value) for _ in range(10))]
    assert not found(jobs).changes
    (change,) = found(jobs, FigureKind.DELIVERED).changes
    assert change.ratio == pytest.approx(0.6, rel=0.02)


def test_a_single_strange_job_is_no_change() -> None:
    own = hosts(7, spread=0.003)
    jobs = [*own.jobs(15), own.job({TITLE: 0.5}), *own.jobs(15)]
    assert not found(jobs).changes


def test_figures_that_repeat_to_the_last_digit() -> None:
    assert not change_points([1.0] * 20, confidence=0.95).splits
    (split,) = change_points([1.0] * 10 + [1.1] * 10, confidence=0.95).splits
    assert (split.after, split.error) == (10, 0.0)


def test_too_few_jobs_are_undecided() -> None:
    few = found(hosts(8).jobs(7))
    assert few.word is Word.UNDECIDED and few.least_effect_ratio is None
    assert history_headline(few).endswith("undecided: finding a change needs 8 jobs.")


def test_disturbed_jobs_are_left_out_and_counted() -> None:
    jobs = hosts(9).jobs(10)
    bad = case(TITLE, None, None, "it was invalid")
    jobs[4] = jobs[4].model_copy(update={"cases": {TITLE: bad}})
    one = found(jobs)
    assert len(one.points) == 9
    assert one.left_out == ("1 job left out: it was invalid",)


def test_a_clock_that_went_backwards_is_named() -> None:
    """A job was begun before it was submitted."""
    jobs = hosts(10).jobs(10)
    submitted = submitted_unix_s(jobs[6].job)
    jobs[6] = jobs[6].model_copy(update={"created_unix_s": submitted - 1})
    one = found(jobs)
    assert one.clock_went_back == (jobs[6].job,)
    assert [point.job for point in one.points].index(jobs[6].job) == 0
    assert any("was set back before" in sentence for sentence in history_remarks(one))


def test_a_job_that_overtook_another_in_the_queue_moved_no_clock() -> None:
    jobs = hosts(10).jobs(10)
    jobs[6] = jobs[6].model_copy(update={"created_unix_s": jobs[2].created_unix_s - 1})
    assert found(jobs).clock_went_back == ()


def test_within_a_boot_a_clock_that_went_backwards_is_known() -> None:
    """Ids are made of the same wall clock: they follow its times."""
    jobs = hosts(10).jobs(10)
    measured_in_turn = [0, 1, 2, 7, 8, 9, 3, 4, 5, 6]
    boots = [
        jobs[number].model_copy(update={"boot": Boot(id="one", since_s=60.0 * place)})
        for place, number in enumerate(measured_in_turn)
    ]
    assert found(boots).clock_went_back == (jobs[3].job,)
    apart = [job.model_copy(update={"boot": Boot(id=job.job, since_s=5.0)}) for job in boots]
    assert found(apart).clock_went_back == ()


CASES = [case("mem.triad 64 MiB", 1.0), case("mem.triad 1 GiB", 1.0), case("cpu.fma fp64 avx2", 1)]


@each(
    ("name", "title"),
    [
        ("cpu.fma", "cpu.fma fp64 avx2"),
        ("mem.triad 64", "mem.triad 64 MiB"),
        ("mem.triad 1 GiB", "mem.triad 1 GiB"),
        ("abcdef0", "mem.triad 64 MiB"),
    ],
)
def test_a_case_is_chosen_by_title_workload_or_hash(name: str, title: str) -> None:
    cases = [CASES[0].model_copy(update={"case": "abcdef0123456789"}), *CASES[1:]]
    assert find_case(cases, name).title == title


@each(
    ("name", "why"),
    [
        ("mem.triad", "may be any of 2 cases; give one: 'mem.triad 1 GiB', 'mem.triad 64 MiB'"),
        ("mem.tria", "may be any of 2 cases"),
        ("mem.trida", "did you mean 'mem.triad'?"),
        ("", "no stored job has a case ''"),
    ],
)
def test_a_case_that_is_not_one_is_refused(name: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        find_case(CASES, name)
    assert why in refused.value.message


def test_cases_of_one_title_are_named_by_their_hashes() -> None:
    first, second = (
        CASES[0].model_copy(update={"case": name, "given": {"threads": 1, "duration_s": seconds}})
        for name, seconds in (("abcdef012345", 1.0), ("fedcba543210", 10.0))
    )
    with pytest.raises(UsageError) as refused:
        find_case([first, second, CASES[1]], first.title)
    assert refused.value.message == (
        "'mem.triad 64 MiB' may be any of 2 cases; give one: abcdef012345 (duration_s=1.0), "
        "fedcba543210 (duration_s=10.0)"
    )


def test_no_jobs_at_all() -> None:
    with pytest.raises(UsageError, match="has no jobs with figures"):
        find_case([], "cpu.fma")


@pytest.mark.exhaustive
def test_a_thousand_jobs_take_less_than_three_seconds(tmp_path: Path) -> None:
    """With the index filled, three changes among them."""
    own = Hosts((TITLE, *(f"mem.read {n}" for n in range(5))), rng=random.Random(11))
    jobs = [own.job({TITLE: 1 - 0.02 * (number // 250)}) for number in range(1000)]
    by_id = {job.job: job for job in jobs}
    for job in jobs:
        (tmp_path / job.job).mkdir()
        (tmp_path / job.job / DOCUMENT).touch()
    read = "hostbench.decisions.index.read_figures"
    with (
        mock.patch(read, lambda document: by_id[document.parent.name]),
        FigureIndex(tmp_path) as index,
    ):
        index.refresh()
    began_s = time.process_time()  # other tests have the CPUs, too
    with FigureIndex(tmp_path) as index:
        one = history_of(index, TITLE, JobFilter(host="a", suite="quick"))
    took_s = time.process_time() - began_s
    assert len(one.points) == 1000
    assert len(one.changes) == 3
    assert took_s < 3, took_s
