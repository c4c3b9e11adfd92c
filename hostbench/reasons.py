"""Why verdicts are what they are, in sentences."""

from collections.abc import Sequence

from hostbench.models.result import CaseResult, Reason, Verdict
from hostbench.peerjudge import shown_text
from hostbench.units import plural
from hostbench.verdict import NOT_IDLE


def reason_paragraphs(cases: Sequence[CaseResult]) -> list[str]:
    """Why each verdict is what it is; what the idle gate saw is said once for all it speaks for."""
    paragraphs = []
    gate: list[str] = []
    for case in cases:
        gate += [reason.text for reason in case.reasons if reason.code == NOT_IDLE]
        own = [reason.text for reason in case.reasons if reason.code != NOT_IDLE]
        if own:
            paragraphs.append(full_sentence(f"{case.title}, {case.verdict}: {'; '.join(own)}"))
        paragraphs += [
            full_sentence(f"{case.title}, {peer.tool} {peer.verdict}: {_texts(peer.reasons)}")
            for peer in case.peers
            if peer.reasons and peer.verdict is not Verdict.SKIPPED
        ]
    return paragraphs + [
        f"{plural(gate.count(text), 'case')}: {full_sentence(text)}" for text in dict.fromkeys(gate)
    ]


def _texts(reasons: Sequence[Reason]) -> str:
    return shown_text("; ".join(reason.text for reason in reasons))


def full_sentence(text: str) -> str:
    """The text with a full stop, unless it has one."""
    return text if text.endswith((".", "!", "?")) else f"{text}."
