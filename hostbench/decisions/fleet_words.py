"""A campaign's answer in sentences, the same in terminal, Markdown and page."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from hostbench.base.units import bound, human, percent, plural, some_of
from hostbench.decisions.host_words import TOLERANCE
from hostbench.decisions.lock_words import locks_words
from hostbench.decisions.words import relative
from hostbench.model.baseline import HOSTS_LEAST, HostWord
from hostbench.model.fleet import (
    SURE_ERROR,
    CaseRatio,
    CommonFact,
    FleetCheck,
    FleetFigure,
    FleetHost,
    HostFact,
    Population,
)
from hostbench.model.summary import FAILURES, Verdict

HOSTS_NAMED = 10
NAMED = 3
FACTS_NAMED = 4
LOST_NAMED = REFUSED_NAMED = 10


def fleet_headline(fleet: FleetCheck) -> str:
    """Return the answer in one sentence, with its error rate."""
    count = f"{len(fleet.hosts):,}"
    low, suspect = fleet.of(HostWord.LOW), fleet.of(HostWord.SUSPECT)
    if fleet.word is HostWord.NO_REFERENCE:
        return f"None of {count} hosts can be judged: {_why_none(fleet)}."
    unknown = len(fleet.of(HostWord.NO_REFERENCE))
    more = [f"{len(suspect):,} {_are(len(suspect))} suspect"] if suspect else []
    more += [f"{unknown:,} cannot be judged"] if unknown else []
    others = f", and {' and '.join(more)}" if more else ""
    error = f"error rate: at most {bound(fleet.error)} of sound hosts are called low"
    if not low:
        return f"No host of {count} is low{others} ({error})."
    sure = sum(host.is_sure for host in low)
    if sure:
        error += f", and of those surely low at most {bound(SURE_ERROR)} are sound"
    which = "surely" if sure == len(low) else f"{sure:,} of them surely"
    surely = f", {which}" if sure else ""
    return f"{len(low):,} of {count} hosts {_are(len(low))} low{surely}{others} ({error})."


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _why_none(fleet: FleetCheck) -> str:
    if all(not host.figures for host in fleet.hosts):
        most = next(lost_groups(fleet), None)
        what = "no document has a clean or noisy figure"
        if most is None:
            return f"{what}; measure again"
        by = f" by {most.culprit}" if most.culprit else ""
        return (
            f"{what}, and most cases were {most.what}{by}; keep other work away (hostbench fleet "
            "run --exclusive) and measure again"
        )
    return (
        f"each has fewer than {HOSTS_LEAST} others of its model with the same cases; measure "
        "more hosts, or provide a baseline"
    )


def fleet_sentences(fleet: FleetCheck) -> Iterator[str]:
    """Yield the answer: its sentence, the populations, low hosts, what they have in common, what is
    missing, the locks, and notes."""
    yield fleet_headline(fleet)
    yield from population_sentences(fleet)
    for word in (HostWord.LOW, HostWord.SUSPECT):
        found = fleet.of(word)
        for host in found[:HOSTS_NAMED]:
            yield f"{host_words(host)}."
        if len(found) > HOSTS_NAMED:
            yield f"{len(found) - HOSTS_NAMED:,} more hosts are {word}: --csv has them."
    yield from (f"{common_words(one)}." for one in fleet.common[:NAMED])
    if again := again_sentence(fleet):
        yield again
    yield from missing_sentences(fleet)
    yield f"Lock held: {locks_words(fleet.locks, NAMED)}."
    yield from fleet.notes


def host_words(host: FleetHost) -> str:
    """Return a host with its clearest figure and the facts in which it differs."""
    worst = host.off[0] if host.off else None
    if worst is None:
        return f"{host.host}: {host.word}"
    more = f", and {plural(len(host.off) - 1, 'more figure')}" if len(host.off) > 1 else ""
    facts = f"; differs in {facts_words(host.facts)}" if host.facts else ""
    return f"{host.host}: {off_words(worst)}{more}{facts}"


def off_words(one: FleetFigure) -> str:
    """Return a text such as `mem.triad 38.00 GB/s, 10.2 % worse than usual, expected at least 41.00
    GB/s (999 hosts, 95/95): low`."""
    side = "least" if one.direction == "higher" else "most"
    return (
        f"{one.title} {human(one.value, one.unit)}, {percent(one.lost_ratio)} worse than usual, "
        f"expected at {side} {human(one.expected, one.unit)} ({one.hosts:,} hosts, {TOLERANCE}): "
        f"{one.word}"
    )


def facts_words(facts: tuple[HostFact, ...], most: int = FACTS_NAMED) -> str:
    """Return a text such as `kernel 6.8.0 (usual 6.1.0; 11 of 999 others have it)`."""
    more = f" and {len(facts) - most} more" if len(facts) > most else ""
    named = ", ".join(
        f"{one.fact} {one.value} (usual {one.usual}; "
        f"{'no other has' if not one.alike else f'{one.alike:,} of {one.of:,} others have'} it)"
        for one in facts[:most]
    )
    return named + more


def common_words(one: CommonFact) -> str:
    """Return a text such as `6 of 7 low hosts have kernel 6.8.0, and 11 of 993 others`."""
    return (
        f"{one.low:,} of {one.lows:,} low hosts have {one.fact} {one.value}, and "
        f"{one.others:,} of {one.of_others:,} others"
    )


def population_sentences(fleet: FleetCheck) -> Iterator[str]:
    """Yield the populations that are not like the largest one of their hardware."""
    for one in fleet.populations:
        if one.beside is not None:
            yield population_words(one, fleet.populations[one.beside])


def population_words(one: Population, other: Population) -> str:
    """Return a population beside the largest one, and in what the two differ."""
    facts = ", ".join(f"{name} {value}" for name, value in one.facts[:FACTS_NAMED])
    having = f"with {facts}" if facts else "with no single fact in common"
    how = ", ".join(ratio_words(ratio) for ratio in one.differs[:NAMED])
    return (
        f"{plural(one.hosts, 'host')} {having} form a population separate from the other "
        f"{other.hosts:,} and are judged separately: {how or 'other figures'}."
    )


def ratio_words(one: CaseRatio) -> str:
    """Return a text such as `mem.triad −6.0 % (worse)`."""
    return f"{one.title} {relative(one.ratio)} ({'worse' if one.is_worse else 'better'})"


def again_sentence(fleet: FleetCheck) -> str | None:
    """Return what would decide the suspect hosts."""
    suspect = fleet.of(HostWord.SUSPECT)
    if not suspect:
        return None
    return (
        f"Suspect: a single job does not decide figures of memory, disks and networks of a guest. "
        f"Measure the {plural(len(suspect), 'host')} again, and report the documents of both "
        "campaigns together."
    )


@dataclass(frozen=True)
class LostGroup:
    """Cases that were lost in one way: `what` became of them, by whom, how many they are, and on
    which hosts."""

    what: str
    culprit: str | None
    cases: int
    hosts: tuple[str, ...]
    titles: tuple[str, ...]


def lost_groups(fleet: FleetCheck) -> Iterator[LostGroup]:
    """Yield what was lost in any document, the most cases first; who disturbs is named without the
    number of the process."""
    found: dict[tuple[str, str | None], list[tuple[str, str]]] = {}
    for host in fleet.hosts:
        for one in host.lost:
            what = str(one.verdict or "missing")
            culprit = one.culprit if one.verdict is Verdict.DISTURBED else None
            if culprit is not None:
                culprit = ", ".join(
                    part for part in culprit.split(", ") if not part.startswith("pid ")
                )
            elif one.verdict in (*FAILURES, Verdict.INVALID, Verdict.SKIPPED):
                what += f" ({one.reason})" if one.reason else ""
            found.setdefault((what, culprit), []).append((host.host, one.title))
    for (what, culprit), lost in sorted(found.items(), key=lambda item: -len(item[1])):
        yield LostGroup(
            what=what,
            culprit=culprit,
            cases=len(lost),
            hosts=tuple(dict.fromkeys(host for host, _ in lost)),
            titles=tuple(title for title, _ in Counter(t for _, t in lost).most_common(NAMED)),
        )


def missing_sentences(fleet: FleetCheck) -> Iterator[str]:
    """Yield what was skipped, missing, damaged, failed or disturbed, and by whom."""
    if fleet.missing:
        yield f"{plural(len(fleet.missing), 'node')} without a document: {named(fleet.missing)}."
    yield from (f"Left out: {why}." for why in fleet.refused[:REFUSED_NAMED])
    if len(fleet.refused) > REFUSED_NAMED:
        more = len(fleet.refused) - REFUSED_NAMED
        yield f"{plural(more, 'more document')} left out: --json and --csv have them."
    groups = list(lost_groups(fleet))
    for one in groups[:LOST_NAMED]:
        by = f", by {one.culprit}" if one.culprit else ""
        yield (
            f"{plural(one.cases, 'case')} {one.what}{by}, on {plural(len(one.hosts), 'host')}: "
            f"{named(one.hosts)} ({one.titles[0]}{', …' if len(one.titles) > 1 else ''})."
        )
    if len(groups) > LOST_NAMED:
        cases = sum(one.cases for one in groups[LOST_NAMED:])
        yield f"{plural(cases, 'more case')} without a figure: --csv has them."


def named(names: tuple[str, ...], most: int = NAMED) -> str:
    """Return the first names, and how many more there are."""
    return some_of(names, most)
