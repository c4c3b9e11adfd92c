"""Is this host as it should be? The answer in a sentence, then what to look at, by what it costs.

The reference is a baseline of the model; without one, the limits, and figures that were published
for the same hardware. If none of these is known, there is no reference.
"""

from collections import Counter
from collections.abc import Iterator, Sequence

from hostbench.base.units import bound, human, percent, plural
from hostbench.decisions.host_words import LOOK_AT, figure_words, judged
from hostbench.decisions.published import BesidePublished, beside_published
from hostbench.judge.between_jobs import VARIES
from hostbench.judge.clock import (
    held_clock_sentence,
    is_slow,
    share_of_limit,
    slow_clock_sentence,
)
from hostbench.judge.condition import BY_CARD, OUTSIDE_HOST, SHARE_LEAST, STOLEN_LEAST
from hostbench.judge.culprit import ON_DISK
from hostbench.judge.overview import (
    DELIVERED_LEAST,
    WORST_FIRST,
    SubsystemLine,
    not_delivered_sentence,
    overview,
)
from hostbench.model.baseline import SUSPECT_ERROR, HostCheck, HostWord, Receipt, ReceiptItem
from hostbench.model.host import HostInventory
from hostbench.model.result import (
    FAILURES,
    USABLE,
    CaseResult,
    Condition,
    ConditionState,
    ResultDocument,
    Verdict,
)

QUESTION = "Is this host as it should be?"
# The number of items on the first screen.
ITEMS_SHOWN = 5
TITLES_NAMED = 2
# From this share on, something counts as a loss of performance.
LOST_LEAST = 1 - DELIVERED_LEAST
AGAIN = "Measure again, and check both jobs together: hostbench baseline check FIRST,SECOND."
# Without a baseline, a subsystem is listed if its best figure is below this share of its limit.
SHARE_NAMED = 0.9
# With these drivers, the governor powersave still reaches the highest clock.
_OWN_CLOCK = ("intel_pstate", "amd-pstate-epp", "amd_pstate_epp")


def receipt_of(document: ResultDocument, check: HostCheck) -> Receipt:
    """Return the receipt of a job. `check` compares its host with a baseline of its model, or with
    none."""
    lines = overview(document.cases)
    published = [] if judged(check) else beside_published(document.cases)
    items = sorted(
        _items(document, check, lines, published),
        key=lambda item: (_costs(item), item.lost_ratio or 0.0),
        reverse=True,
    )
    return Receipt(
        word=check.word,
        answer=_answer(document, check, lines, items, published),
        faults=sum(_costs(item) for item in items),
        items=tuple(items),
        notes=(*check.notes, *_of_another_host(document)),
    )


# ---- the answer ----


def _answer(
    document: ResultDocument,
    check: HostCheck,
    lines: Sequence[SubsystemLine],
    items: Sequence[ReceiptItem],
    published: Sequence[BesidePublished],
) -> str:
    if judged(check):
        return _beside_others(check, items)
    if not any(case.verdict in USABLE for case in document.cases if not case.naive):
        return "Unknown: no figure of this job can be used."
    shares = {
        line.subsystem: share_of_limit(line.headline) for line in lines if line.headline is not None
    }
    known = [
        f"{name} reaches {percent(share)} of its limit"
        for name, share in shares.items()
        if share is not None
    ]
    known += _as_published(published)
    compared = {one.case.workload.partition(".")[0] for one in published}
    without = _and(
        [name for name, share in shares.items() if share is None and name not in compared]
    )
    others = (
        "no baseline of this model"
        if not check.hosts
        else "no baseline with enough hosts of this model"
    )
    unusable = _and([line.subsystem for line in lines if line.headline is None and line.measured])
    costs = sum(_costs(item) for item in items)
    if not known and not costs:
        return f"No reference: no limit of {without or unusable} is known, and there is {others}."
    rest = f"No reference for {without}: no known limit, {others}." if without else ""
    if unusable:
        rest = f"No headline figure of {unusable} can be used. {rest}".rstrip()
    found = f"; {', '.join(known)}." if known else "."
    small = sum(item.is_fault and not _costs(item) for item in items)
    slight = f", and {small} of little effect" if small else ""
    lead = f"Not quite: {plural(costs, 'finding')} below{slight}" if costs else "No fault found"
    return f"{lead}{found} {rest or f'There is {others}.'}"


def _as_published(found: Sequence[BesidePublished]) -> Iterator[str]:
    """Yield a text such as `gpu reaches 3 of 3 published figures (GH200 …)`."""
    for source in dict.fromkeys(one.published.source for one in found):
        of = [one for one in found if one.published.source == source]
        names = _and(list(dict.fromkeys(one.case.workload.partition(".")[0] for one in of)))
        reached = sum(not one.is_worse for one in of)
        yield f"{names} reaches {reached} of {plural(len(of), 'published figure')} ({source})"


def _of_another_host(document: ResultDocument) -> Iterator[str]:
    """Yield a note on published figures that are no reference, because they are another host's."""
    if (published := document.suite.published) is not None:
        yield (
            f"The published figures of this suite are those of {published.host.name}, another "
            "host: the section Course report has them row by row."
        )


def _costs(item: ReceiptItem) -> bool:
    """Whether an item is a fault that costs a noticeable share of performance."""
    return item.is_fault and (item.lost_ratio is None or item.lost_ratio >= LOST_LEAST)


def _beside_others(check: HostCheck, items: Sequence[ReceiptItem]) -> str:
    found = judged(check)
    others = f"expected from {plural(check.hosts, 'other host')} of this model"
    error = f"error rate: at most {bound(check.error or 0.0)} of sound hosts are called low"
    off = [one for one in found if one.word is check.word]
    worse = f"{len(off)} of {plural(len(found), 'headline figure')} "
    worse += f"{'is' if len(off) == 1 else 'are'} worse than {others}"
    if check.word is HostWord.LOW:
        return f"No: {worse} ({error})."
    if check.word is HostWord.SUSPECT:
        return (
            f"Perhaps not: {worse}; up to {bound(SUSPECT_ERROR)} of sound hosts show this. "
            "Measure again."
        )
    taken = any(_costs(item) for item in items)
    but = ", but see the findings below" if taken else ""
    return f"Yes: all {plural(len(found), 'headline figure')} are as {others}{but} ({error})."


def _share(line: SubsystemLine) -> float | None:
    """Return the headline figure's share of its limit at the clock of the trials; the cost of a low
    clock is a separate item."""
    if line.headline is None or line.headline.verdict not in USABLE:
        return None
    return line.headline.metrics[line.headline.primary].efficiency


def _and(words: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(words[:-1]), *words[-1:])))


# ---- what to look at ----


def _items(
    document: ResultDocument,
    check: HostCheck,
    lines: Sequence[SubsystemLine],
    published: Sequence[BesidePublished],
) -> Iterator[ReceiptItem]:
    cases = [case for case in document.cases if not case.naive]
    yield from _without_figure(cases)
    yield from _off(check)
    yield from _conditions(cases, document.host)
    yield from _clock([case for case in cases if not _is_by_card(case.condition)])
    yield from _of_host(document.host, cases)
    yield from _varying(cases)
    known = {one.workload.partition(".")[0] for one in judged(check)}
    for line in lines:
        share = _share(line)
        if share is not None and share < SHARE_NAMED and line.subsystem not in known:
            yield _of_limit(line, share)
    for one in published:
        if one.is_worse:
            yield _below_published(one)


def _without_figure(cases: Sequence[CaseResult]) -> Iterator[ReceiptItem]:
    """Yield an item on cases that are corrupt, failed or invalid: a wrong result may be the host's
    fault."""
    wrong = [
        case
        for verdict in (*FAILURES, Verdict.INVALID)
        for case in cases
        if case.verdict is verdict
    ]
    if not wrong:
        return
    counts = Counter(case.verdict for case in wrong)
    words = _and([f"{counts[one]} {one}" for one in WORST_FIRST if counts[one]])
    named = ", ".join(case.title for case in wrong[:TITLES_NAMED])
    more = f" and {len(wrong) - TITLES_NAMED} more" if len(wrong) > TITLES_NAMED else ""
    yield ReceiptItem(
        text=f"{len(wrong)} of {plural(len(cases), 'case')} {'has' if len(wrong) == 1 else 'have'} "
        f"no figure to use ({words}).",
        evidence=f"{named}{more}; the reasons are listed below.",
        lost_ratio=1.0,
    )


def _off(check: HostCheck) -> Iterator[ReceiptItem]:
    """Yield an item on the figures that are below those of other hosts, for each subsystem and
    word, with its worst figure."""
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


def _conditions(cases: Sequence[CaseResult], host: HostInventory) -> Iterator[ReceiptItem]:
    """Yield an item for each kind of condition that took time from cases, by the case that lost
    most."""
    # A share of the disks' bytes is not a share of the CPUs' time, and the clock of a card is not
    # that of a CPU.
    by_kind: dict[tuple[ConditionState, bool, bool], list[tuple[float, CaseResult, Condition]]] = {}
    for case in cases:
        one = case.condition
        if one is not None and one.share is not None:
            kind = (one.state, _is_of_disk(one), _is_by_card(one))
            by_kind.setdefault(kind, []).append((one.share, case, one))
    for (state, _, by_card), found in by_kind.items():
        share, worst, condition = max(found, key=lambda one: one[0])
        affected = [case for _, case, _ in found]
        least = STOLEN_LEAST if state is ConditionState.STOLEN else SHARE_LEAST
        # Of a disturbed case a small share is the cause, too.
        if share < least and not any(case.verdict is Verdict.DISTURBED for case in affected):
            continue
        if by_card:
            yield _held_by_card(share, affected)
            continue
        known = [ratio for case in affected if (ratio := _left(state, case)) is not None]
        yield ReceiptItem(
            text=_condition_words(state, share, condition, host),
            evidence=_effect(state, affected, worst, len(cases)),
            lost_ratio=max(0.0, 1 - min(known)) if known else share,
        )
    rest = [case for case in cases if case.condition is None or case.condition.share is None]
    if (sentence := not_delivered_sentence(rest)) is not None:
        lost = 1 - min(c.delivered_ratio for c in rest if c.delivered_ratio is not None)
        yield ReceiptItem(
            text="Less was delivered than the hardware can do; the cause is unknown.",
            evidence=sentence,
            lost_ratio=lost,
        )


def _left(state: ConditionState, case: CaseResult) -> float | None:
    """Return the share of a case's speed that was left, or None if unknown.

    Heat and power cost speed, not time. The clock shows it, unless all cases had an equally low
    one.
    """
    if state is not ConditionState.THROTTLED:
        return case.delivered_ratio
    return case.clock.ratio if case.clock is not None and is_slow(case) else None


def _effect(
    state: ConditionState, affected: Sequence[CaseResult], worst: CaseResult, of: int
) -> str:
    """Return the effect on the cases."""
    if state is ConditionState.THROTTLED:
        held, slow = held_clock_sentence(affected), slow_clock_sentence(affected)
        return " ".join(filter(None, (held, slow)))
    if (sentence := not_delivered_sentence(affected)) is not None:
        return sentence
    if len(affected) == 1:
        return f"Seen in {worst.title}, {worst.verdict or 'not finished'}."
    disturbed = sum(case.verdict is Verdict.DISTURBED for case in affected)
    effect = f"{disturbed} disturbed" if disturbed else "the figures do not show it"
    return f"Seen in {len(affected)} of {plural(of, 'case')}, most in {worst.title}; {effect}."


def _condition_words(
    state: ConditionState, share: float, condition: Condition, host: HostInventory
) -> str:
    most = f"up to {percent(share)} of the CPU time"
    culprit = condition.culprit
    perhaps = "" if condition.is_sure else "most likely "
    if state is ConditionState.STOLEN:
        return f"Another guest on the same machine took {most} (steal time)."
    if state is ConditionState.QUOTA:
        quota = _quota_words(host) or culprit or "a CPU quota"
        return f"{quota[0].upper()}{quota[1:]} held back {most}."
    if state is ConditionState.THROTTLED:
        return f"Heat or power held the clock down for up to {percent(share)} of the time."
    if culprit is None:
        return f"Other processes took {most}; which ones is unknown."
    if _is_of_disk(condition):
        most = f"up to {percent(share)} of the bytes to and from disks"
        return f"Other processes moved {most}: {perhaps}{culprit.removesuffix(ON_DISK)}."
    if culprit == OUTSIDE_HOST:
        return f"Something outside this host took {most}."
    return f"Other processes took {most}: {perhaps}{culprit}."


def _held_by_card(share: float, affected: Sequence[CaseResult]) -> ReceiptItem:
    """Return an item on GPUs that lowered their clock. Under full load sound cards do, for power,
    so it is no fault; the program's warning, a reason of the case, says what the card named."""
    return ReceiptItem(
        text=f"A GPU's own limits held its clock down for up to {percent(share)} of the time.",
        evidence=f"{held_clock_sentence(affected)} The remarks on the cases say which limits: "
        "power is usual at full load, heat is not.",
        is_fault=False,
    )


def _is_of_disk(condition: Condition) -> bool:
    return condition.culprit is not None and condition.culprit.endswith(ON_DISK)


def _is_by_card(condition: Condition | None) -> bool:
    return condition is not None and condition.culprit == BY_CARD


def _quota_words(host: HostInventory) -> str | None:
    """Return a text on the CPU quota, or None if none is known, or if it allows all CPUs."""
    quota, cpus = host.cgroup.quota_cpus, len(host.allowed_cpus)
    if quota is None or quota >= cpus:
        return None
    return f"The CPU quota of this control group ({quota:g} of {plural(cpus, 'CPU')})"


def _clock(cases: Sequence[CaseResult]) -> Iterator[ReceiptItem]:
    held = [case.condition.also.get(ConditionState.THROTTLED) for case in cases if case.condition]
    is_main = any(
        case.condition and case.condition.state is ConditionState.THROTTLED for case in cases
    )
    if not is_main and any(held) and (sentence := held_clock_sentence(cases)) is not None:
        yield ReceiptItem(
            text="Heat or power held the clock down.",
            evidence=sentence,
            lost_ratio=max(share for share in held if share is not None),
        )
    # The cause of the low clock has an item of its own, with these figures.
    if is_main or (sentence := slow_clock_sentence(cases)) is None:
        return
    lost = 1 - min(case.clock.ratio for case in cases if case.clock is not None)
    yield ReceiptItem(
        text=f"The clock was up to {percent(lost)} below the expected one.",
        evidence=sentence,
        lost_ratio=lost,
    )


def _of_host(host: HostInventory, cases: Sequence[CaseResult]) -> Iterator[ReceiptItem]:
    """Yield items on facts of the host that cost performance, as far as the document has them."""
    memory = host.memory
    if memory is not None and memory.channels and memory.channels_wired:
        count, wired = sum(one.count for one in memory.channels), memory.channels_wired
        if count < wired:
            empty = wired - count
            yield ReceiptItem(
                text=f"{empty} of {plural(wired, 'memory channel')} "
                f"{'seems' if empty == 1 else 'seem'} empty.",
                evidence=f"{memory.channels_source or 'The firmware'} lists memory on {count}; "
                "bandwidth grows with the number of channels in use.",
                lost_ratio=empty / wired,
            )
    quota = _quota_words(host)
    # If the quota stopped the threads, an item above already shows what it took.
    has_stopped = any(
        case.condition is not None and case.condition.state is ConditionState.QUOTA
        for case in cases
    )
    if quota is not None and not has_stopped:
        yield ReceiptItem(
            text=f"{quota} limits this job.",
            evidence="Read at the start of the job.",
            lost_ratio=1 - (host.cgroup.quota_cpus or 0.0) / len(host.allowed_cpus),
        )
    clock = host.frequency
    driver = f"clock driver {clock.driver or 'unknown'}"
    if clock.turbo is False:
        yield ReceiptItem(text="Turbo is off.", evidence=f"Read from the {driver}.")
    if clock.governor == "powersave" and clock.driver not in _OWN_CLOCK:
        yield ReceiptItem(
            text="The governor powersave keeps the lowest clock.",
            evidence=f"Read from the {driver}; the governor performance allows the highest.",
        )
    if memory is not None and memory.transparent_huge_pages == "never":
        yield ReceiptItem(
            text="Transparent huge pages are off: large arrays are read and written slower.",
            evidence="/sys/kernel/mm/transparent_hugepage/enabled is never.",
        )


def _varying(cases: Sequence[CaseResult]) -> Iterator[ReceiptItem]:
    """Yield an item for each subsystem whose figures vary from job to job, with the case that
    varies most."""
    by_subsystem: dict[str, list[tuple[float, CaseResult, str]]] = {}
    for case in cases:
        why = next((reason.text for reason in case.reasons if reason.code == VARIES), None)
        if why is not None and (known := case.between_jobs) is not None:
            found = by_subsystem.setdefault(case.workload.partition(".")[0], [])
            found.append((1 - known.low / known.high, case, why))
    for subsystem, found in by_subsystem.items():
        lost, worst, why = max(found, key=lambda one: one[0])
        yield ReceiptItem(
            text=f"{plural(len(found), 'figure')} of {subsystem} "
            f"{'varies' if len(found) == 1 else 'vary'} from job to job on this host, most that of "
            f"{worst.title}.",
            evidence=f"{why}.",
            lost_ratio=lost,
            is_fault=False,
        )


def _of_limit(line: SubsystemLine, share: float) -> ReceiptItem:
    assert line.headline is not None
    metric = line.headline.metrics[line.headline.primary]
    limit = human(metric.limit.value if metric.limit else None, metric.unit)
    return ReceiptItem(
        text=f"{line.headline.title} reaches {percent(share)} of its limit.",
        evidence=f"{human(metric.statistics.median, metric.unit)} of {limit}; whether other hosts "
        "of this model reach more is unknown without a baseline.",
        lost_ratio=1 - share,
        is_fault=False,
    )


def _below_published(one: BesidePublished) -> ReceiptItem:
    known = one.published
    bound_words = (
        f"at most {human(known.most, one.unit)}"
        if one.direction == "lower"
        else f"at least {human(known.least, one.unit)}"
    )
    return ReceiptItem(
        text=f"{one.case.title} is {percent(one.lost_ratio)} worse than published.",
        evidence=f"{human(one.value, one.unit)}; published: {bound_words} ({known.source}).",
        lost_ratio=one.lost_ratio,
        is_fault=False,
    )
