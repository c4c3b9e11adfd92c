"""The network between hosts in sentences, the same in the terminal and on the page."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import bound, human, percent, plural
from hostbench.decisions.lock_words import locks_words
from hostbench.decisions.words import relative
from hostbench.model.pairs import AtOnce, HostNetwork, Judged, Link, PairMatrix, PairWord, Uplink

# Smaller chances rest on the tails of the noise, which a few hundred measurements do not show.
CHANCE_LEAST = 0.001
HOSTS_NAMED = 5


def named(one: Judged) -> str:
    """Return what was judged, such as `host node7`, `uplink of rack r3` or `link a – b`."""
    if isinstance(one, HostNetwork):
        return f"host {one.host}"
    if isinstance(one, Uplink):
        return f"rack {one.rack}" if one.whole_rack else f"uplink of rack {one.rack}"
    assert isinstance(one, Link)
    return f"link {one.a} – {one.b}"


def conspicuous(matrix: PairMatrix) -> list[Judged]:
    """Return what is slow, then the suspect hosts and uplinks; of each first the uplinks, which
    slow down a whole rack, and the worst first. Suspect links are left out: one of twenty sound
    ones is."""
    kinds: list[tuple[PairWord, Sequence[Judged]]] = [
        (PairWord.SLOW, matrix.uplinks),
        (PairWord.SLOW, matrix.hosts),
        (PairWord.SLOW, matrix.links),
        (PairWord.SUSPECT, matrix.uplinks),
        (PairWord.SUSPECT, matrix.hosts),
    ]
    return [
        one
        for word, kind in kinds
        for one in sorted(kind, key=lambda judged: judged.ratio)
        if one.word is word
    ]


def suspect_links_sentence(matrix: PairMatrix) -> str | None:
    """Return how many links are suspect."""
    count = sum(one.word is PairWord.SUSPECT for one in matrix.links)
    if not count:
        return None
    return f"{plural(count, 'link')} of {len(matrix.links):,} suspect; one in twenty sound ones is."


def headline(matrix: PairMatrix) -> str:
    """Return the result in one sentence."""
    if matrix.undecided is not None:
        return f"Unknown: {matrix.undecided}."
    slow = _counts(matrix, PairWord.SLOW)
    suspect = _counts(matrix, PairWord.SUSPECT, links=False)
    if slow:
        more = f"; suspect: {suspect}" if suspect else ""
        return f"Slow: {slow}{more}."
    if suspect:
        return f"Suspect: {suspect}; none is surely slow."
    return f"No host and no uplink is slow, of {plural(len(matrix.hosts), 'host')}."


def _counts(matrix: PairMatrix, word: PairWord, *, links: bool = True) -> str:
    kinds: list[tuple[str, Sequence[Judged]]] = [
        ("host", matrix.hosts),
        ("uplink", matrix.uplinks),
        *([("link", matrix.links)] if links else []),
    ]
    counts = [(noun, sum(one.word is word for one in kind)) for noun, kind in kinds]
    *most, last = [plural(count, noun) for noun, count in counts if count] or [""]
    return f"{', '.join(most)} and {last}" if most else last


def evidence(one: Judged) -> str:
    """Return how far off it is, and how surely."""
    chance = "" if one.chance is None else f"; by chance: {_odds(one.chance)}"
    beside: dict[type[Judged], str] = {
        HostNetwork: "compared with the other hosts" + (" of its rack" if _rack(one) else ""),
        Uplink: "compared with the other racks",
        Link: "compared with what its hosts reach with other hosts",
    }
    times = plural(one.measured, "measurement")
    return f"{relative(one.ratio)} {beside[type(one)]}, in {times}{chance}."


def _rack(one: Judged) -> str | None:
    return one.rack if isinstance(one, HostNetwork) else None


def _odds(chance: float) -> str:
    """Return how many sound ones look so bad."""
    return f"{chance * 100:.2g} %" if chance >= CHANCE_LEAST else f"below {bound(CHANCE_LEAST)}"


def rack_sentences(matrix: PairMatrix) -> Iterator[str]:
    """Yield for each slow or suspect uplink what pairs within the rack say."""
    for one in matrix.uplinks:
        if one.word not in (PairWord.SLOW, PairWord.SUSPECT):
            continue
        if one.inside_ratio is None:
            yield (
                f"Rack {one.rack}: no pair within the rack was measured, so the hosts may be "
                "slow instead of the uplink."
            )
        elif one.whole_rack:
            yield (
                f"Rack {one.rack}: pairs within it are slow, too "
                f"({relative(one.inside_ratio)}): check its switch and what its hosts have in "
                "common."
            )
        else:
            yield (
                f"Rack {one.rack}: pairs within it are not slow ({relative(one.inside_ratio)}), "
                "so the uplink is slow."
            )


def base_sentence(matrix: PairMatrix) -> str:
    """Return what all of it rests on."""
    noise = (
        ""
        if matrix.noise_ratio is None
        else f"; a measurement varies by {percent(matrix.noise_ratio)}"
    )
    return (
        f"{matrix.title}: {plural(matrix.measurements, 'measurement')} between "
        f"{plural(len(matrix.hosts), 'host')}, median {human(matrix.value, matrix.unit)}{noise}."
    )


def coverage_sentence(matrix: PairMatrix) -> str:
    """Return which single links could have been seen."""
    share = percent(matrix.links_share)
    if matrix.links_share >= 1:
        return "Every link was measured."
    return (
        f"{len(matrix.links):,} links were measured, {share} of all: a single slow link had a "
        f"chance of {share} to be seen. hostbench fleet schedule --full measures every link."
    )


def error_sentence(matrix: PairMatrix) -> str:
    """Return how often the word slow is wrong."""
    rate = bound(matrix.error_rate)
    return (
        f"If everything is sound, at most {rate} of campaigns call any host or uplink slow, and "
        "at most as many any link. Suspect is not a decision: one in twenty sound ones is "
        "suspect."
    )


def locks_sentence(matrix: PairMatrix) -> str:
    """Return which lock was held on which hosts."""
    return f"Lock held: {locks_words(matrix.locks, HOSTS_NAMED)}."


def at_once_sentence(one: AtOnce) -> str:
    """Return what measuring at the same time costs."""
    where = "Across racks" if one.across else "Within a rack, or where no racks are known"
    low, high = relative(one.low).removesuffix(" %"), relative(one.high)
    return (
        f"{where}, pairs that are measured at the same time as others reach {percent(one.ratio)} "
        f"of what they reach alone (95 % interval of the difference: {low} to {high}; "
        f"{one.together:,} and {plural(one.alone, 'measurement')})."
    )


def next_sentence(matrix: PairMatrix) -> str | None:
    """Return what would decide the suspects."""
    if not matrix.next_rounds:
        return None
    pairs = sum(len(one.pairs) for one in matrix.next_rounds)
    what = "the suspects" if _counts(matrix, PairWord.SUSPECT, links=False) else "suspect links"
    return (
        f"To decide {what}, measure {plural(pairs, 'pair')} in "
        f"{plural(len(matrix.next_rounds), 'round')}, and report all documents together."
    )


def round_words(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the pairs of a round, near end first."""
    return ", ".join(f"{near} → {far}" for near, far in pairs)
