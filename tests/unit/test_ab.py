"""Whether a setting matters, by blocks as they might be measured: the words are as rarely wrong as
they promise, wherever it stops."""

import math
import random
from collections.abc import Sequence

import pytest

from hostbench.decisions.ab import BLOCKS_MOST, Block, BlockFigure, SettingJudge, looks_of
from hostbench.model.decision import FigureKind, SettingFigure, Word

UNDISTURBED, DELIVERED = FigureKind.UNDISTURBED, FigureKind.DELIVERED
CHANGED = (Word.BETTER, Word.WORSE)
MARGIN = 0.02


class Host:
    """Trials of two settings on a host that drifts from trial to trial, with heavy tails, and what
    others take of what is delivered. Of every tenth block the undisturbed figure is missing."""

    def __init__(self, seed: int, spread: float = 0.02, drift: float = 0.02) -> None:
        self.rng = random.Random(seed)
        self.spread, self.drift, self.level = spread, drift, 0.0

    def block(self, effect: float) -> Block:
        order = self.rng.choice(("abba", "baab"))
        logs: dict[str, list[float]] = {"a": [], "b": []}
        delivered: dict[str, list[float]] = {"a": [], "b": []}
        for side in order:
            self.level += self.rng.gauss(0, self.drift)
            tail = 4 if self.rng.random() < 0.1 else 1
            log = self.level + self.rng.gauss(0, self.spread) * tail
            logs[side].append(log + (effect if side == "b" else 0.0))
            delivered[side].append(logs[side][-1] - abs(self.rng.gauss(0, self.spread)))
        block = {DELIVERED: figure(delivered["a"], delivered["b"])}
        if self.rng.random() >= 0.1:
            block[UNDISTURBED] = figure(logs["a"], logs["b"])
        return block

    def test(self, effect: float = 0.0, margin: float = MARGIN) -> SettingJudge:
        """One whole test, by the real rule to stop."""
        judge = SettingJudge("higher", margin, 24)
        while not judge.take(self.block(effect)):
            pass
        return judge


def figure(a: Sequence[float], b: Sequence[float]) -> BlockFigure:
    return BlockFigure(tuple(a), tuple(b))


def judged(differences: Sequence[float], direction: str = "higher") -> tuple[int, SettingFigure]:
    """After how many blocks of these differences it stopped, and its word."""
    judge = SettingJudge("lower" if direction == "lower" else "higher", MARGIN, 24)
    for difference in differences:
        if judge.take({DELIVERED: figure([0.0, 0.0], [difference, difference])}):
            break
    return judge.count, judge.figures()[DELIVERED]


def test_looks_are_fixed_beforehand() -> None:
    assert looks_of(8) == (8,)
    assert looks_of(24) == (8, 12, 16, 24)
    assert looks_of(30) == (8, 12, 16, 24, 30)
    assert looks_of(BLOCKS_MOST)[-2:] == (80, BLOCKS_MOST)


def called_changed(seed: int, tests: int) -> int:
    host = Host(seed)
    return sum(
        any(one.word in CHANGED for one in host.test().figures().values()) for _ in range(tests)
    )


def test_settings_that_do_not_differ() -> None:
    assert called_changed(seed=1, tests=30) <= 3


@pytest.mark.exhaustive
def test_settings_that_do_not_differ_200_times() -> None:
    """At most 5 % say so of any of both figures, at any of the looks."""
    assert called_changed(seed=2, tests=200) <= 10


@pytest.mark.exhaustive
def test_the_least_effect_is_found() -> None:
    """The one that a test printed, by the next test on that host; its interval holds it."""
    host, found, held = Host(3), 0, 0
    for number in range(100):
        least = host.test(margin=0.001).figures()[UNDISTURBED].least_effect_ratio
        assert least is not None
        effect = math.log1p(least) * (-1 if number % 2 else 1)
        again = host.test(effect, margin=0.001).figures()[UNDISTURBED]
        assert again.low is not None and again.high is not None
        found += again.word is (Word.BETTER if effect > 0 else Word.WORSE)
        held += again.low <= math.exp(effect) <= again.high
    assert found >= 90
    assert held >= 90


def test_a_change_beyond_the_margin_is_not_the_same() -> None:
    host = Host(4, spread=0.004, drift=0.002)
    words = [one.word for _ in range(40) for one in host.test(math.log(1.021)).figures().values()]
    assert words.count(Word.SAME) <= 2


def test_eight_blocks_of_one_sign_decide() -> None:
    faster = [0.05, 0.051, 0.049, 0.052, 0.05, 0.048, 0.05, 0.051]
    count, found = judged(faster)
    assert (count, found.word, found.blocks) == (8, Word.BETTER, 8)
    assert found.ratio == pytest.approx(math.exp(0.050125))
    assert found.low is not None and found.low > 1
    assert judged(faster, "lower")[1].word is Word.WORSE
    assert judged([0.05] * 8)[1].word is Word.BETTER


def test_the_same() -> None:
    count, found = judged([0.001, -0.001] * 12)
    assert (count, found.word) == (8, Word.SAME)
    assert judged([0.0] * 8)[1].word is Word.SAME


def test_undecided_goes_on_to_the_end() -> None:
    count, found = judged([0.2, -0.2] * 12)
    assert (count, found.word, found.reason) == (24, Word.UNDECIDED, None)
    assert found.least_effect_ratio is not None and found.least_effect_ratio > 0.1


def test_a_figure_that_was_decided_keeps_its_word() -> None:
    """The other one goes on, and what comes later takes nothing back."""
    judge = SettingJudge("higher", MARGIN, 24)
    wanders = random.Random(5)
    for number in range(24):
        noise = wanders.gauss(0, 0.2)
        judge.take(
            {
                UNDISTURBED: figure([0.0], [-0.05 if number < 8 else 0.3]),
                DELIVERED: figure([0.0], [noise if number % 2 else -noise]),
            }
        )
    found = judge.figures()
    assert (found[UNDISTURBED].word, found[UNDISTURBED].blocks) == (Word.WORSE, 8)
    assert (found[DELIVERED].word, found[DELIVERED].blocks) == (Word.UNDECIDED, 24)


def test_too_few_blocks_with_a_figure() -> None:
    judge = SettingJudge("higher", MARGIN, 8)
    for number in range(8):
        block = {DELIVERED: figure([0.0], [0.05])}
        judge.take(block | ({UNDISTURBED: figure([0.0], [0.05])} if number < 5 else {}))
    found = judge.figures()
    assert found[DELIVERED].word is Word.BETTER
    assert found[UNDISTURBED].word is Word.UNDECIDED
    assert "5 blocks" in (found[UNDISTURBED].reason or "")


def test_no_figure_at_all_ends_at_the_first_look() -> None:
    judge = SettingJudge("higher", MARGIN, 24)
    assert [judge.take({}) for _ in range(8)] == [False] * 7 + [True]
    assert judge.figures() == {}
