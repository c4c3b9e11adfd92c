"""The words about two sets of jobs, and how often they are wrong."""

import dataclasses
import importlib
import random
import statistics
import time
from pathlib import Path
from types import ModuleType
from unittest import mock

import pytest

from hostbench.decisions import method
from hostbench.decisions.compare import compare
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.permutation import Column, arrangements, sign_flips, two_sides
from hostbench.decisions.sets import EARLIER_MOST, JobFilter, compared_sides
from hostbench.decisions.words import (
    headline,
    kinds_sentence,
    notices,
    relative,
    undecided_sentences,
)
from hostbench.model.decision import Comparison, FigureKind, JobFigures, Word
from hostbench.model.host import Boot
from hostbench.model.subsystem import MethodChange, Subsystem
from tests.patience import quickest
from tests.unit.decided import Hosts, case, indexed

NAMES = ("A", "B")
CHANGED = frozenset({Word.WORSE, Word.BETTER})


def compared(a: list[JobFigures], b: list[JobFigures], **more: object) -> Comparison:
    return compare(a, b, names=NAMES, **more)  # type: ignore[arg-type]


def words(comparison: Comparison) -> dict[str, Word]:
    return {one.case: one.word for one in comparison.cases}


def says_changed(comparison: Comparison) -> bool:
    return any(one.word in CHANGED for case in comparison.cases for one in case.changes.values())


def scipy_stats() -> ModuleType:
    """Its import takes half a second: not at collection, which is in every lane."""
    return importlib.import_module("scipy.stats")


def more_than(share: float, of: int) -> int:
    """So many of `of` are a sign that they are more than this share, at one in a thousand."""
    return int(scipy_stats().binom.ppf(0.999, of, share))


@pytest.mark.parametrize(("between", "most_cases"), [(0.0, 6), (0.02, 20)])
@pytest.mark.sampled(2)
def test_where_nothing_changed_one_report_in_twenty_says_so_at_most(
    between: float, most_cases: int
) -> None:
    """Whole reports, whatever their figures have in common."""
    tried = 100
    cases = tuple(f"mem.read {number}" for number in range(most_cases))
    hosts = Hosts(cases, between=between, rng=random.Random(7))
    wrong = sum(says_changed(compared(hosts.jobs(5), hosts.jobs(5))) for _ in range(tried))
    assert wrong <= more_than(0.05, tried)


def test_five_percent_of_a_register_kernel_is_found_within_eight_jobs() -> None:
    """Among thirty figures of memory that vary by 3 %, which hide nothing of it."""
    cases = (
        "cpu.fma 0",
        *(f"cpu.add {n}" for n in range(9)),
        *(f"mem.read {n}" for n in range(30)),
    )
    found = []
    for seed in range(12):
        hosts = Hosts(cases, within=0.004, between=0.004, rng=random.Random(seed))
        b = hosts.jobs(6, {"cpu.fma 0": 0.95})
        found.append(words(compared(hosts.jobs(6), b))["cpu.fma 0"])
    assert found.count(Word.WORSE) >= 11, found


def test_the_least_effect_that_is_printed_is_found() -> None:
    cases = tuple(f"mem.read {number}" for number in range(6))
    tried, found = 60, 0
    for seed in range(tried):
        hosts = Hosts(cases, within=0.01, between=0.0, rng=random.Random(seed))
        printed = compared(hosts.jobs(5), hosts.jobs(5)).cases[0].changes[FigureKind.UNDISTURBED]
        assert printed.least_effect_ratio is not None
        changed = {cases[0]: 1 / (1 + printed.least_effect_ratio)}
        found += words(compared(hosts.jobs(5), hosts.jobs(5, changed)))[cases[0]] in CHANGED
    assert tried - found <= more_than(0.05, tried), found


def test_the_interval_of_a_figure_holds_it() -> None:
    cases = tuple(f"mem.read {number}" for number in range(8))
    tried, held = 40, 0
    factors = {name: 1 + 0.02 * number for number, name in enumerate(cases)}
    for seed in range(tried):
        hosts = Hosts(cases, within=0.01, between=0.0, rng=random.Random(1000 + seed))
        comparison = compared(hosts.jobs(5), hosts.jobs(5, factors))
        held += sum(
            one.low is not None and one.high is not None and one.low <= factors[of.case] <= one.high
            for of in comparison.cases
            for one in of.changes.values()
        )
    of_all = tried * len(cases) * len(FigureKind)
    # The two figures of a case are alike here.
    assert of_all - held <= 2 * more_than(0.05, of_all // 2), held


def test_same_is_shown_and_not_what_could_not_show() -> None:
    hosts = Hosts(within=0.0005, between=0.0005)
    a, b = hosts.jobs(6), hosts.jobs(6)
    assert set(words(compared(a, b)).values()) == {Word.SAME}
    assert "same" in headline(compared(a, b))
    coarse = Hosts(within=0.05)
    comparison = compared(coarse.jobs(4), coarse.jobs(4))
    assert set(words(comparison).values()) == {Word.UNDECIDED}
    text = " ".join(undecided_sentences(comparison))
    assert "undecided figures would show changes of" in text and "more jobs on each side" in text
    assert Word.SAME in words(compared(coarse.jobs(8), coarse.jobs(8), margin=0.5)).values()


def test_figures_that_no_reasonable_number_of_jobs_decides() -> None:
    a = Hosts(("cpu.fma 0",), within=0.3).jobs(4)
    b = [job.model_copy(update={"job": f"{job.job[:-4]}000b"}) for job in a]
    text = " ".join(undecided_sentences(compared(a, b)))
    assert "2 undecided figures would need more than 200 more jobs on each side" in text
    assert "About" not in text


def test_sides_of_different_hosts_are_named() -> None:
    hosts = Hosts()
    a, b = hosts.jobs(4), [job.model_copy(update={"host": "b"}) for job in hosts.jobs(4)]
    assert not list(notices(compared(a, a[:1])))
    (notice,) = notices(compared(a, b))
    assert notice.startswith("The sides are of different hosts")


def test_what_is_delivered_changes_and_what_is_undisturbed_does_not() -> None:
    hosts = Hosts()
    a = hosts.jobs(5)
    b = [hosts.job(delivered=lambda value: value * 0.5) for _ in range(5)]
    comparison = compared(a, b)
    for one in comparison.cases:
        assert one.changes[FigureKind.DELIVERED].word is Word.WORSE
        assert one.changes[FigureKind.UNDISTURBED].word not in CHANGED
    assert "Only delivered figures changed" in (kinds_sentence(comparison) or "")


def test_one_against_one_needs_the_spread_between_jobs() -> None:
    hosts = Hosts(within=0.002, between=0.002)
    a, b = hosts.jobs(1), hosts.jobs(1, {hosts.cases[0]: 0.8})
    alone = compared(a, b)
    assert set(words(alone).values()) == {Word.UNDECIDED}
    assert all(one.more == 3 for of in alone.cases for one in of.changes.values())
    found = words(compared(a, b, earlier=hosts.jobs(12)))
    assert found[hosts.cases[0]] is Word.WORSE
    assert set(list(found.values())[1:]) <= {Word.SAME, Word.UNDECIDED}
    few = compared(a, b, earlier=hosts.jobs(11))
    assert set(words(few).values()) == {Word.UNDECIDED}
    assert few.earlier == 0, "they did not count"


@pytest.mark.parametrize("tried", [50, 200])
@pytest.mark.sampled(2)
def test_one_against_one_is_seldom_wrong(tried: int) -> None:
    wrong = 0
    for seed in range(tried):
        hosts = Hosts(rng=random.Random(seed))
        earlier = hosts.jobs(12)
        wrong += says_changed(compared(hosts.jobs(1), hosts.jobs(1), earlier=earlier))
    # A whole job may lie off, by tails that eight jobs do not show.
    assert wrong <= more_than(0.05, tried), wrong


def test_a_moment_of_a_guest_is_no_change() -> None:
    """All of A in one moment, all of B in another: what lies between is the drift of the host."""
    cases = tuple(f"mem.read {number}" for number in range(5))
    hosts = Hosts(cases, within=0.001, between=0.0, apart_s=30, is_guest=True)
    off = dict.fromkeys(cases, 1.08)
    a, b = hosts.jobs(6), hosts.jobs(6, off)
    assert set(words(compared(a, b)).values()) == {Word.UNDECIDED}
    own = dataclasses.replace(hosts, is_guest=False)
    assert set(words(compared(own.jobs(6), own.jobs(6, off))).values()) == {Word.BETTER}
    in_turn = [hosts.job(off if number % 2 else None) for number in range(12)]
    found = words(compared(in_turn[::2], in_turn[1::2]))
    assert set(found.values()) == {Word.BETTER}


def test_what_neighbours_leave_a_guest_differs_between_two_moments() -> None:
    """Register kernels were delivered 4 % less on another evening; a quota takes far more."""
    hosts = Hosts(within=0.001, between=0.0, apart_s=30, is_guest=True)
    quiet = hosts.jobs(6)
    for left, word in ((0.96, Word.UNDECIDED), (0.6, Word.WORSE)):
        b = [hosts.job(delivered=left.__mul__) for _ in range(6)]
        changes = [one.changes for one in compared(quiet, b).cases]
        assert {one[FigureKind.DELIVERED].word for one in changes} == {word}
        assert {one[FigureKind.UNDISTURBED].word for one in changes} == {Word.SAME}


def test_where_the_clock_was_set_back_the_order_is_unknown() -> None:
    cases = tuple(f"mem.read {number}" for number in range(5))
    hosts = Hosts(cases, within=0.001, between=0.0, apart_s=30, is_guest=True)
    off = dict.fromkeys(cases, 1.08)
    # By the boot's clock all of A came first.
    jobs = [
        hosts.job(off if number % 2 else None).model_copy(
            update={"boot": Boot(id="one", since_s=float(100 * (number % 2) + number))}
        )
        for number in range(12)
    ]
    found = compared(jobs[::2], jobs[1::2])
    assert set(words(found).values()) == {Word.UNDECIDED}
    assert found.clock_went_back == (jobs[1].job,)
    (notice,) = notices(found)
    assert notice.startswith(f"The clock of the host was set back before {jobs[1].job}: the order")
    two = [job.model_copy(update={"machine": "other"}) for job in jobs[1::2]]
    assert compared(jobs[::2], two).clock_went_back == ()


def test_facts_that_differ_stand_beside() -> None:
    hosts = Hosts()
    a = [hosts.job(facts={"microcode": "0x1", "governor": "performance"}) for _ in range(4)]
    b = [hosts.job(facts={"microcode": word}) for word in ("0x2", "0x2", "0x1", "0x2")]
    facts = {one.fact: (one.a, one.b) for one in compared(a, b).facts}
    assert facts == {
        "microcode": (("0x1",), ("0x2", "0x1")),
        "governor": (("performance",), ()),
    }


def test_what_cannot_be_compared_says_why() -> None:
    hosts = Hosts(("cpu.fma 0",))
    (a,) = hosts.jobs(1)
    bare = hosts.job()
    disturbed = bare.model_copy(
        update={
            "cases": {
                "cpu.fma 0": case("cpu.fma 0", None, None, "it was disturbed"),
                "cpu.add 0": case("cpu.add 0", 1.0, 1.0),
            }
        }
    )
    comparison = compared([a], [disturbed])
    assert comparison.word is Word.NOT_COMPARABLE
    reasons = {one.case: one.reason for one in comparison.cases}
    assert reasons == {
        "cpu.fma 0": "no job of side B has a figure of it: it was disturbed",
        "cpu.add 0": "no job of side A has this case",
    }


def test_a_case_with_other_parameters_says_which() -> None:
    (a,) = Hosts(()).jobs(1)

    def with_case(name: str, **given: float) -> JobFigures:
        figure = case("cpu.fma 0", 1.0, 1.0).model_copy(update={"case": name, "given": given})
        return a.model_copy(update={"cases": {name: figure}})

    comparison = compared([with_case("1", duration_s=0.1, threads=1)], [with_case("2", threads=1)])
    assert [one.reason for one in comparison.cases] == [
        "side B has it with other parameters: duration_s=the default in place of 0.1",
        "side A has it with other parameters: duration_s=0.1 in place of the default",
    ]


@pytest.mark.parametrize("factor", [None, 2.0])
def test_a_change_of_method_is_refused_or_mapped(factor: float | None) -> None:
    change = MethodChange(
        version="0.10", workloads=("fma",), why="a batch counts once", factor=factor
    )
    changed = {"cpu": Subsystem(name="cpu", title="CPU", port=1, method_changes=(change,))}
    hosts = Hosts(("cpu.fma 0", "cpu.add 0"), within=0.0005, between=0.0)
    a = [hosts.job(version="0.9.1") for _ in range(5)]
    b = [hosts.job({"cpu.fma 0": 2.0}, version="0.10.0") for _ in range(5)]
    with mock.patch.object(method, "subsystems", return_value=changed):
        comparison = compared(a, b)
        assert words(comparison)["cpu.add 0"] is Word.SAME
        mixed = compared([*a[:4], b[4]], [*b[:4], a[4]])
    fma = comparison.cases[0]
    if factor is None:
        assert fma.word is Word.NOT_COMPARABLE
        assert fma.reason == "a batch counts once since cpu-bench 0.10"
    else:
        assert fma.word is Word.SAME
    assert "differently" in (mixed.cases[0].reason or "")


def test_jobs_without_some_figures() -> None:
    """A figure that a few jobs lack is judged by the others, and beside those that all have."""
    hosts = Hosts(within=0.001, between=0.0)
    a, b = hosts.jobs(6), hosts.jobs(6, {hosts.cases[0]: 0.9, hosts.cases[1]: 0.9})
    lacking = case(hosts.cases[0], None, None, "it was disturbed")
    a[0] = a[0].model_copy(update={"cases": a[0].cases | {hosts.cases[0]: lacking}})
    b[3] = b[3].model_copy(update={"cases": b[3].cases | {hosts.cases[0]: lacking}})
    comparison = compared(a, b)
    assert [one.word for one in comparison.cases[:2]] == [Word.WORSE, Word.WORSE]
    change = comparison.cases[0].changes[FigureKind.UNDISTURBED]
    assert (change.jobs_a, change.jobs_b) == (5, 5)


def test_the_test_of_one_figure_is_the_one_that_everybody_knows() -> None:
    """Of one column: Student's statistic over the arrangements, as scipy has it."""
    stats, rng = scipy_stats(), random.Random(3)
    for _ in range(10):
        a, b = ([rng.gauss(mean, 1) for _ in range(5)] for mean in (0, 2))
        found = two_sides([Column("x", (*a, *b))], 5, 5, confidence=0.95)
        assert found is not None
        (judged,) = found
        says = abs(judged.difference) > judged.quantile * judged.error
        p = stats.permutation_test(
            (a, b), lambda x, y, axis: stats.ttest_ind(x, y, axis=axis).statistic, vectorized=True
        ).pvalue
        assert says == (p <= 0.05), p
        assert judged.difference == pytest.approx(statistics.fmean(b) - statistics.fmean(a))
    assert len(arrangements(5, 5)) == 252 / 2
    assert len(arrangements(1, 1, 6)) == 8 * 7 / 2
    assert len(arrangements(2, 3)) == 10
    assert two_sides([Column("x", (1.0, 2.0, 3.0, 4.0, 5.0, 6.0))], 3, 3, confidence=0.95) is None


def test_each_of_many_figures_has_its_own_answer() -> None:
    """Whatever the order of their classes is, and whichever jobs lack one: the difference of its
    means, over its own variance and, with the weight of two degrees, the usual one of its class."""
    rng = random.Random(4)
    classes = "xyz"
    columns = []
    for number in range(24):
        values: list[float | None] = [rng.gauss(number, 0.1 + number) for _ in range(12)]
        for job in rng.sample(range(12), rng.randrange(3)):
            values[job] = None
        columns.append(Column(rng.choice(classes), tuple(values)))
    for others in (0, 2):
        found = two_sides(columns, 5, 7 - others, confidence=0.95)
        assert found is not None
        means, variances, degrees, factors = [], [], [], []
        for column in columns:
            sides = (
                column.values[:5],
                column.values[5 : 12 - others],
                column.values[12 - others :],
            )
            groups = [[one for one in side if one is not None] for side in sides]
            means.append(statistics.fmean(groups[1]) - statistics.fmean(groups[0]))
            degrees.append(sum(len(one) - 1 for one in groups if one))
            squares = sum(statistics.pvariance(one) * len(one) for one in groups if one)
            variances.append(squares / degrees[-1])
            factors.append(1 / len(groups[0]) + 1 / len(groups[1]))
        usual = {
            name: statistics.median(
                one for one, of in zip(variances, columns, strict=True) if of.group == name
            )
            for name in classes
        }
        for number, judged in enumerate(found):
            moderated = variances[number] * degrees[number] + 2 * usual[columns[number].group]
            moderated /= degrees[number] + 2
            assert judged.difference == pytest.approx(means[number])
            assert judged.error == pytest.approx((moderated * factors[number]) ** 0.5)


def test_flipped_signs() -> None:
    stats, rng = scipy_stats(), random.Random(5)
    for mean in (0.0, 0.5, 1.5):
        values = [rng.gauss(mean, 1) for _ in range(9)]
        found = sign_flips([values], confidence=0.95)
        assert found is not None
        (judged,) = found
        p = stats.permutation_test(
            (values,),
            lambda x, axis: stats.ttest_1samp(x, 0, axis=axis).statistic,
            permutation_type="samples",
            vectorized=True,
        ).pvalue
        assert (abs(judged.difference) > judged.quantile * judged.error) == (p <= 0.05), p
    assert sign_flips([[1.0, 2.0, 3.0]], confidence=0.95) is None


def test_a_figure_that_never_varies() -> None:
    hosts = Hosts(within=0.0, between=0.0)
    a, b = hosts.jobs(4), hosts.jobs(4)
    assert set(words(compared(a, b)).values()) == {Word.SAME}
    changed = compared(a, hosts.jobs(4, {hosts.cases[0]: 0.97}))
    assert words(changed)[hosts.cases[0]] is Word.WORSE
    assert changed.word is Word.WORSE


@pytest.mark.exhaustive
def test_two_jobs_of_six_hundred_cases_take_less_than_two_seconds(tmp_path: Path) -> None:
    """With the index filled, and with as many earlier jobs as count."""
    hosts = Hosts(tuple(f"cpu.fma {number}" for number in range(600)))
    indexed(tmp_path, hosts.jobs(EARLIER_MOST + 2))

    def compared_s() -> float:
        began_s = time.process_time()  # other tests have the CPUs, too
        with FigureIndex(tmp_path) as index:
            sides = compared_sides(("latest-1", "latest"), index, JobFilter())
            found = compare(*sides.sides, names=("a", "b"), earlier=sides.earlier)
        took_s = time.process_time() - began_s
        assert (len(found.cases), found.earlier) == (600, EARLIER_MOST)
        return took_s

    assert quickest(compared_s, 2) < 2


def test_words_of_changes() -> None:
    assert [relative(ratio) for ratio in (1.031, 0.976, 1.0005, 1.0, 0.999999)] == [
        "+3.1 %",
        "−2.4 %",
        "+0.05 %",
        "0.00 %",
        "0.00 %",
    ]
