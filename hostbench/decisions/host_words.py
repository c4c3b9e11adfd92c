"""A host compared with others, in sentences: the same in terminal, Markdown and page."""

from collections.abc import Iterator

from hostbench.base.units import bound, human, percent, plural
from hostbench.model.baseline import (
    TOLERANCE_CONFIDENCE,
    TOLERANCE_COVERAGE,
    BaselineFile,
    FigureCheck,
    HostCheck,
    HostWord,
)

# Where to look first when figures of a subsystem are low.
LOOK_AT = {
    "cpu": "the clock: turbo, heat, power limits, neighbours on the same cores",
    "mem": "memory channels and their speed",
    "disk": "the disk's free space, its link, and other users of it",
    "net": "the link's speed, duplex and drivers, and other users of it",
    "gpu": "the GPU's clock, power limit, temperature and PCI Express link",
}
FIGURES_NAMED = 6
TOLERANCE = f"{TOLERANCE_COVERAGE * 100:g}/{TOLERANCE_CONFIDENCE * 100:g}"


def figure_words(one: FigureCheck) -> str:
    """Return a text such as `mem.triad 38.00 GB/s, expected at least 41.00 GB/s (12 hosts, 95/95):
    low`."""
    figure = f"{one.title} {human(one.value, one.unit)}"
    if one.expected is None:
        share = "no reference" if one.share_of_limit is None else percent(one.share_of_limit)
        return f"{figure}, {share}{' of its limit' if one.share_of_limit is not None else ''}"
    side = "least" if one.direction == "higher" else "most"
    free = ", distribution-free" if one.distribution_free else ""
    return (
        f"{figure}, expected at {side} {human(one.expected, one.unit)} ({one.hosts:,} hosts, "
        f"{TOLERANCE}{free}): {one.word}"
    )


def advice(word: HostWord, subsystem: str) -> str | None:
    """Return where to look when figures of a subsystem are low or suspect, or None."""
    if word is HostWord.SUSPECT:
        return "measure again, and check both jobs"
    look = LOOK_AT.get(subsystem)
    return f"look at {look}" if word is HostWord.LOW and look else None


def figure_sentences(check: HostCheck, most: int = FIGURES_NAMED) -> Iterator[str]:
    """Yield the figures that are off, the worst first, at most `most` of each word. The first
    figure of each subsystem also says where to look."""
    for word in (HostWord.LOW, HostWord.SUSPECT):
        found = [one for one in check.figures if one.word is word]
        found.sort(key=lambda one: one.lost_ratio or 0.0, reverse=True)
        advised: set[str | None] = {None}
        for one in found[:most]:
            look = advice(word, one.workload.partition(".")[0])
            yield f"{figure_words(one)}{'' if look in advised else f'; {look}'}."
            advised.add(look)
        if len(found) > most:
            yield f"{len(found) - most} more figures are {word}: --json has them."


def error_sentence(check: HostCheck) -> str | None:
    """Return how often such a word is wrong, or None without a baseline."""
    if check.error is None:
        return None
    return (
        f"Error rate: at most {bound(check.error)} of sound hosts are called low, over all "
        f"{plural(len(judged(check)), 'headline figure')}."
    )


def judged(check: HostCheck) -> list[FigureCheck]:
    """Return the headline figures that the baseline has."""
    return [one for one in check.headlines if one.p is not None]


def check_sentences(check: HostCheck) -> Iterator[str]:
    """Yield a check in sentences: the answer, each figure that is off, the error rate, and
    notes."""
    yield headline(check)
    yield from figure_sentences(check)
    if (error := error_sentence(check)) is not None:
        yield error
    yield from check.notes


def headline(check: HostCheck) -> str:
    """Return the comparison of the host with others in one sentence."""
    if not check.figures:
        return "no reference: the job has no clean or noisy figure; measure again."
    found = judged(check)
    if not found:
        return f"no reference: no baseline has enough other hosts of {check.key.words}."
    counts = [(sum(one.word is word for one in found), word) for word in HostWord]
    (count, word), *others = [(count, word) for count, word in counts if count]
    rest = "".join(f", {count} {word}" for count, word in others)
    return (
        f"{check.word}: compared with {plural(check.hosts, 'other host')} of this model, {count} "
        f"of {plural(len(found), 'headline figure')} {'is' if count == 1 else 'are'} {word}{rest}."
    )


def baseline_words(one: BaselineFile) -> str:
    """Return a baseline in short, or why it is not used."""
    if one.key is None:
        return one.error or ""
    return (
        f"{one.file}: {plural(one.hosts, 'host')}, {plural(one.jobs, 'job')}, "
        f"{plural(one.cases, 'case')} of {one.key.words}"
    )
