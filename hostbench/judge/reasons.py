"""Why verdicts are what they are, in sentences."""

from collections.abc import Sequence

from hostbench.base.units import plural
from hostbench.judge.peer import shown_text
from hostbench.judge.trial import NOT_IDLE
from hostbench.model.result import CaseResult, Reason, Verdict


def reason_paragraphs(cases: Sequence[CaseResult]) -> list[str]:
    """Why each verdict is what it is; what several cases lack, and what the idle gate saw, is said
    once for all of them."""
    paragraphs = _skipped(cases)
    gate: list[str] = []
    for case in cases:
        gate += [reason.text for reason in case.reasons if reason.code == NOT_IDLE]
        own = [reason.text for reason in case.reasons if reason.code != NOT_IDLE]
        if own and case.verdict is not Verdict.SKIPPED:
            paragraphs.append(full_sentence(f"{case.title}, {case.verdict}: {'; '.join(own)}"))
        paragraphs += [
            full_sentence(f"{case.title}, {peer.tool} {peer.verdict}: {_texts(peer.reasons)}")
            for peer in case.peers
            if peer.reasons and peer.verdict is not Verdict.SKIPPED
        ]
    return paragraphs + [
        f"{plural(gate.count(text), 'case')}: {full_sentence(text)}" for text in dict.fromkeys(gate)
    ]


def _skipped(cases: Sequence[CaseResult]) -> list[str]:
    """Why cases were skipped, each reason with all that have it: a GPU is missing for many."""
    titles: dict[str, list[str]] = {}
    for case in cases:
        if case.verdict is Verdict.SKIPPED:
            own = [reason.text for reason in case.reasons if reason.code != NOT_IDLE]
            titles.setdefault("; ".join(own), []).append(case.title)
    return [full_sentence(f"{', '.join(found)}, skipped: {why}") for why, found in titles.items()]


def _texts(reasons: Sequence[Reason]) -> str:
    return shown_text("; ".join(reason.text for reason in reasons))


def full_sentence(text: str) -> str:
    """The text with a full stop, unless it has one."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
