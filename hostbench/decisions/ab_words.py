"""Tests of settings in sentences."""

from collections.abc import Iterator

from hostbench.base.units import bound, human, percent, plural
from hostbench.decisions.words import DASH, relative
from hostbench.model.decision import SettingFigure, SettingSide, SettingTest, Word


def headline(test: SettingTest) -> str:
    """Return a sentence such as `better: B is better than A (undisturbed +3.1 %, delivered +2.9
    %).`"""
    by_word = {
        Word.BETTER: "B is better than A",
        Word.WORSE: "B is worse than A",
        Word.SAME: "A and B are the same",
    }
    if test.word in by_word:
        return f"{test.word}: {by_word[test.word]}{_by(test)}."
    if not test.figures:
        return f"{test.word}: no figure of both settings can be used."
    return f"{test.word}: {plural(test.blocks, 'block')} are not enough to decide{_by(test)}."


def _by(test: SettingTest) -> str:
    parts = [
        f"{kind} {relative(figure.ratio)}"
        for kind, figure in test.figures.items()
        if figure.ratio is not None
    ]
    return f" ({', '.join(parts)})" if parts else ""


def side_sentence(side: SettingSide) -> str:
    """Return a text such as `mem.read pages=4k, with MALLOC_ARENA_MAX=1, after 'echo 0 > …'`."""
    parts = [side.title]
    if side.environment:
        parts.append(f"with {' '.join(f'{k}={v}' for k, v in side.environment.items())}")
    if side.command is not None:
        parts.append(f"after {side.command!r}")
    return ", ".join(parts)


def interval(figure: SettingFigure) -> str:
    """Return a text such as `−5.3 to −4.7 %`."""
    if figure.low is None or figure.high is None:
        return DASH
    return f"{relative(figure.low).removesuffix(' %')} to {relative(figure.high)}"


def value(number: float | None, test: SettingTest) -> str:
    """Return a number in the unit of the figure."""
    return human(number, test.unit)


def blocks_sentence(test: SettingTest) -> str:
    """Return how long the test went on, and why it ended."""
    repeated = ""
    if test.repeated:
        repeated = f", {test.repeated} measured again: a trial was disturbed or invalid"
    is_decided = test.figures and all(
        figure.word is not Word.UNDECIDED for figure in test.figures.values()
    )
    most = test.looks[-1]
    why = "decided" if is_decided else f"of at most {most}"
    return f"{plural(test.blocks, 'block')} of four trials ({why}){repeated}."


def more_sentences(test: SettingTest) -> Iterator[str]:
    """Yield what the test could not show, and why."""
    for kind, figure in test.figures.items():
        if figure.word is not Word.UNDECIDED:
            continue
        if figure.reason is not None:
            yield f"{kind}: undecided: {figure.reason}."
        elif figure.least_effect_ratio is not None:
            yield (
                f"{kind}: {plural(figure.blocks, 'block')} would show changes of "
                f"{percent(figure.least_effect_ratio)} or more; longer trials or more --blocks "
                "show smaller ones."
            )
    for kind, reason in test.no_figure.items():
        yield f"{kind}: {reason}."
    if test.idle is False:
        yield "The host was not idle before the test."


def error_sentence(test: SettingTest) -> str:
    """Return how often such words are wrong."""
    wrong = bound(round(1 - test.confidence, 3))
    return (
        f"Error rate: if a setting changes nothing, at most {wrong} of tests call any figure "
        "better or worse, no matter when they stop."
    )
