"""Is this host as it should be? The answer in a sentence, then what to look at, by what it costs.

It says what the document and the baselines hold, and nothing else: where neither a baseline nor a
limit tells, there is no reference.
"""

from collections.abc import Iterator, Sequence

from hostbench.base.units import bound, human, percent, plural
from hostbench.decisions.host_words import LOOK_AT, figure_words, judged
from hostbench.judge.clock import held_clock_sentence, slow_clock_sentence
from hostbench.judge.condition import SHARE_LEAST, STOLEN_LEAST
from hostbench.judge.overview import (
    DELIVERED_LEAST,
    SubsystemLine,
    not_delivered_sentence,
    overview,
)
from hostbench.model.baseline import SUSPECT_ERROR, HostCheck, HostWord, Receipt, ReceiptItem
from hostbench.model.host import HostInventory
from hostbench.model.result import (
    USABLE,
    CaseResult,
    Condition,
    ConditionState,
    ResultDocument,
    Verdict,
)

QUESTION = "Is this host as it should be?"
# On the first screen.
ITEMS_SHOWN = 5
# From so much on something counts as having cost performance.
LOST_LEAST = 1 - DELIVERED_LEAST
AGAIN = "Measure again, and have both jobs decide: hostbench baseline check THIS,FRESH."
# The best figure of a subsystem below this share of its limit is named where no baseline tells what
# is usual.
SHARE_NAMED = 0.9
# Drivers whose governor powersave still goes up to the highest clock.
_OWN_CLOCK = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


def receipt_of(document: ResultDocument, check: HostCheck) -> Receipt:
    """The receipt of a job. `check`: its host beside a baseline of its model, or beside none."""
    lines = overview(document.cases)
    items = sorted(
        _items(document, check, lines),
        key=lambda item: (_costs(item), item.lost_ratio or 0.0),
        reverse=True,
    )
    return Receipt(
        word=check.word,
        answer=_answer(document, check, lines, items),
        faults=sum(_costs(item) for item in items),
        items=tuple(items),
        notes=check.notes,
    )


# ---- the answer ----


def _answer(
    document: ResultDocument,
    check: HostCheck,
    lines: Sequence[SubsystemLine],
    items: Sequence[ReceiptItem],
) -> str:
    found = judged(check)
    if found:
        return _beside_others(check, items)
    if not any(case.verdict in USABLE for case in document.cases if not case.naive):
        return "It cannot be told: this job has no figure that may be used."
    shares = {line.subsystem: _share(line) for line in lines if line.headline is not None}
    reached = [(name, percent(share)) for name, share in shares.items() if share is not None]
    without = _and([name for name, share in shares.items() if share is None])
    if not reached:
        return f"No reference: neither a baseline of this model nor a limit is known for {without}."
    lead = "No fault was seen, as far as limits tell"
    if costs := sum(_costs(item) for item in items):
        verb = "costs" if costs == 1 else "cost"
        lead = f"Not quite: {plural(costs, 'thing')} below {verb} performance"
    (name, share), *others = reached
    parts = [f"{name} reaches {share} of its limit", *(f"{one} {of}" for one, of in others)]
    rest = f"; there is no reference for {without}" if without else ""
    return f"{lead}; {', '.join(parts)}{rest} (no baseline of this model is known)."


def _costs(item: ReceiptItem) -> bool:
    """Whether something is wrong, and not a trifle."""
    return item.is_fault and (item.lost_ratio is None or item.lost_ratio >= LOST_LEAST)


def _beside_others(check: HostCheck, items: Sequence[ReceiptItem]) -> str:
    found = judged(check)
    others = f"{plural(check.hosts, 'other host')} of this model"
    error = f"at most {bound(check.error or 0.0)} of sound hosts are called low"
    off = [one for one in found if one.word is check.word]
    figures = f"{len(off)} of {plural(len(found), 'headline figure')}"
    if check.word is HostWord.LOW:
        verb = "is" if len(off) == 1 else "are"
        return f"No: {figures} {verb} below what {others} lead to expect ({error})."
    if check.word is HostWord.SUSPECT:
        verb = "is" if len(off) == 1 else "are"
        return (
            f"Perhaps not: {figures} {verb} below what {others} lead to expect, as happens to "
            f"up to {bound(SUSPECT_ERROR)} of sound hosts; measure again."
        )
    taken = any(_costs(item) for item in items)
    but = ", but see what cost performance meanwhile" if taken else ""
    return (
        f"Yes: all {plural(len(found), 'headline figure')} are as {others} lead to expect{but} "
        f"({error})."
    )


def _share(line: SubsystemLine) -> float | None:
    """Of the limit, at the clock of the trials: what the clock costs is told apart."""
    if line.headline is None or line.headline.verdict not in USABLE:
        return None
    return line.headline.metrics[line.headline.primary].efficiency


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


# ---- what to look at ----


def _items(
    document: ResultDocument, check: HostCheck, lines: Sequence[SubsystemLine]
) -> Iterator[ReceiptItem]:
    cases = [case for case in document.cases if not case.naive]
    yield from _off(check)
    yield from _conditions(cases)
    yield from _clock(cases)
    yield from _of_host(document.host)
    known = {one.workload.partition(".")[0] for one in judged(check)}
    for line in lines:
        share = _share(line)
        if share is not None and share < SHARE_NAMED and line.subsystem not in known:
            yield _of_limit(line, share)


def _off(check: HostCheck) -> Iterator[ReceiptItem]:
    """Figures below those of other hosts: one item a subsystem and word, its worst figure named."""
    named: set[str] = set()
    for word in (HostWord.LOW, HostWord.SUSPECT):
        by_subsystem: dict[str, list[tuple[float, str]]] = {}
        for one in check.figures:
            subsystem = one.workload.partition(".")[0]
            if one.word is word and subsystem not in named:
                found = by_subsystem.setdefault(subsystem, [])
                found.append((one.lost_ratio or 0.0, figure_words(one)))
        named |= by_subsystem.keys()
        for subsystem, found in by_subsystem.items():
            lost, worst = max(found)
            more = f", and {plural(len(found) - 1, 'more figure')} of {subsystem}"
            look = AGAIN
            if word is HostWord.LOW:
                look = f"Look at {LOOK_AT.get(subsystem, 'what differs from the other hosts')}."
            yield ReceiptItem(
                text=f"{worst}{more if len(found) > 1 else ''}.",
                evidence=look,
                lost_ratio=lost,
                is_fault=word is HostWord.LOW,
            )


def _conditions(cases: Sequence[CaseResult]) -> Iterator[ReceiptItem]:
    """What took time from the cases, one item a kind, by the case that it took most from."""
    worst: dict[ConditionState, tuple[float, CaseResult, Condition]] = {}
    counts: dict[ConditionState, int] = {}
    for case in cases:
        one = case.condition
        if one is None or one.share is None:
            continue
        counts[one.state] = counts.get(one.state, 0) + 1
        if one.share > worst.get(one.state, (0.0,))[0]:
            worst[one.state] = (one.share, case, one)
    for state, (share, case, condition) in worst.items():
        if share < (STOLEN_LEAST if state is ConditionState.STOLEN else SHARE_LEAST):
            continue
        affected = [c for c in cases if c.condition is not None and c.condition.state is state]
        delivered = [c.delivered_ratio for c in affected if c.delivered_ratio is not None]
        evidence = not_delivered_sentence(affected)
        if state is ConditionState.THROTTLED and (held := held_clock_sentence(cases)) is not None:
            evidence = held
        elif evidence is not None:
            evidence = f"{evidence.partition('; the host:')[0].rstrip('.')}."
        else:
            disturbed = sum(c.verdict is Verdict.DISTURBED for c in affected)
            effect = (
                f"{disturbed} of them disturbed" if disturbed else "their figures do not show it"
            )
            evidence = f"Seen in {counts[state]} of {plural(len(cases), 'case')}, most in "
            evidence += f"{case.title}; {effect}."
        yield ReceiptItem(
            text=_condition_words(state, share, condition),
            evidence=evidence,
            lost_ratio=max(0.0, 1 - min(delivered)) if delivered else share,
        )
    explained = {id(c) for c in cases if c.condition is not None and c.condition.share is not None}
    rest = [case for case in cases if id(case) not in explained]
    if (sentence := not_delivered_sentence(rest)) is not None:
        lost = 1 - min(c.delivered_ratio for c in rest if c.delivered_ratio is not None)
        yield ReceiptItem(
            text="Less was delivered than the hardware does.", evidence=sentence, lost_ratio=lost
        )


def _condition_words(state: ConditionState, share: float, condition: Condition) -> str:
    most = f"up to {percent(share)} of the CPUs' time"
    culprit = condition.culprit or "something"
    perhaps = "" if condition.is_sure or condition.culprit is None else "most likely "
    if state is ConditionState.STOLEN:
        return f"A neighbour on the same machine took {most} (stolen by the hypervisor)."
    if state is ConditionState.QUOTA:
        return f"{culprit[0].upper()}{culprit[1:]} held back {most}."
    if state is ConditionState.THROTTLED:
        return (
            f"{culprit[0].upper()}{culprit[1:]} held the clock down {percent(share)} of the time."
        )
    if condition.culprit is None:
        return f"Others took {most}; who is unknown."
    return f"Others took {most}: {perhaps}{culprit}."


def _clock(cases: Sequence[CaseResult]) -> Iterator[ReceiptItem]:
    held = [case.condition.also.get(ConditionState.THROTTLED) for case in cases if case.condition]
    if (sentence := held_clock_sentence(cases)) is not None and any(held):
        yield ReceiptItem(
            text="Heat or power held the clock down, beside what took more.",
            evidence=sentence,
            lost_ratio=max(share for share in held if share is not None),
        )
    if (sentence := slow_clock_sentence(cases)) is None:
        return
    ratios = [case.clock.ratio for case in cases if case.clock is not None]
    lost = 1 - min(ratios)
    yield ReceiptItem(
        text=f"The clock was up to {percent(lost)} below the expected one.",
        evidence=sentence,
        lost_ratio=lost,
    )


def _of_host(host: HostInventory) -> Iterator[ReceiptItem]:
    """Facts of the host that cost performance, as far as the document has them."""
    memory = host.memory
    if memory is not None and memory.channels and memory.channels_wired:
        count, wired = sum(one.count for one in memory.channels), memory.channels_wired
        if count < wired:
            empty = wired - count
            yield ReceiptItem(
                text=f"{empty} of {plural(wired, 'memory channel')} "
                f"{'seems' if empty == 1 else 'seem'} empty.",
                evidence=f"{memory.channels_source or 'The firmware'} lists memory on {count}; "
                "memory bandwidth goes with the channels.",
                lost_ratio=empty / wired,
            )
    quota, cpus = host.cgroup.quota_cpus, len(host.allowed_cpus)
    if quota is not None and quota < cpus:
        yield ReceiptItem(
            text=f"The control group may use {quota:g} of {plural(cpus, 'CPU')}.",
            evidence="Its CPU quota, read at the start of the job.",
            lost_ratio=1 - quota / cpus,
        )
    clock = host.frequency
    if clock.turbo is False:
        yield ReceiptItem(
            text="Turbo is off.", evidence=f"The clock driver {clock.driver or ''} says so."
        )
    if clock.governor == "powersave" and clock.driver not in _OWN_CLOCK:
        yield ReceiptItem(
            text="The governor powersave keeps the lowest clock.",
            evidence=f"Clock driver {clock.driver or 'unknown'}; performance does not.",
        )
    if memory is not None and memory.transparent_huge_pages == "never":
        yield ReceiptItem(
            text="Transparent huge pages are off: large arrays are read and written slower.",
            evidence="/sys/kernel/mm/transparent_hugepage/enabled is never.",
        )


def _of_limit(line: SubsystemLine, share: float) -> ReceiptItem:
    assert line.headline is not None
    metric = line.headline.metrics[line.headline.primary]
    limit = human(metric.limit.value if metric.limit else None, metric.unit)
    return ReceiptItem(
        text=f"{line.headline.title} reaches {percent(share)} of its limit.",
        evidence=f"{human(metric.statistics.median, metric.unit)} of {limit}; how much of it "
        "sound hosts reach, only a baseline tells.",
        lost_ratio=1 - share,
        is_fault=False,
    )
