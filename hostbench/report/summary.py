"""The top of the report: what was run on what, how it went, and the figures to remember."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from hostbench.base.units import duration, plural
from hostbench.judge.case import reason_paragraphs
from hostbench.model.host import HostInventory
from hostbench.model.result import (
    UNSEALED_SCHEMA,
    CaseResult,
    JobState,
    ResultDocument,
    Verdict,
)
from hostbench.report.content import (
    Block,
    Bullets,
    Code,
    Facts,
    Fold,
    InBrief,
    Notice,
    Paragraph,
    Section,
    Text,
)
from hostbench.report.figures import by_workload, case_table, first_names, sentence
from hostbench.report.subsystem import SubsystemReport
from hostbench.results.sealed import UNSEALED

REASONS_SHOWN = 8

READING = (
    "Value: the median of n trials. Spread: half the interval that holds the true median. Limit: "
    "what the hardware could do at most. Of limit: the median of the trials' figures, each over "
    "its own limit."
)

_MEANING = {
    Verdict.FAILED: "the program failed or its result was wrong: there is no figure",
    Verdict.INVALID: "a figure above its theoretical limit, or a disk's that memory gave, so the "
    "figure or the limit is wrong: use neither",
    Verdict.DISTURBED: "something else took the CPU during the trials: the figures may be worse "
    "than what the host can do",
    Verdict.NOISY: "the trials differ by more than the target: compare them with care",
    Verdict.SKIPPED: "they cannot run here",
}
_SERIOUS = frozenset({Verdict.FAILED, Verdict.INVALID, Verdict.DISTURBED})


def utc(time_unix_s: float, *, date: bool = True) -> str:
    """`2026-11-20 20:17:44 UTC`."""
    moment = datetime.fromtimestamp(time_unix_s, UTC)
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC" if date else f"{moment:%H:%M:%S}"


def host_line(host: HostInventory) -> str:
    """The host in one line."""
    cpu = host.cpu
    shape = [plural(len(host.allowed_cpus), "CPU")]
    if cpu.cores and cpu.sockets:
        shape.append(f"{plural(cpu.cores, 'core')} in {plural(cpu.sockets, 'socket')}")
    memory = f"{host.memory_bytes / 2**30:.1f} GiB of memory" if host.memory_bytes else None
    guest = "virtual machine" if host.virtualisation.hypervisor else None
    container = host.virtualisation.container
    parts = [
        cpu.model_name or cpu.architecture,
        *shape,
        memory,
        guest,
        f"in a container ({container})" if container else None,
        host.distribution,
        f"Linux {host.kernel}",
    ]
    return ", ".join(part for part in parts if part)


def job_facts(document: ResultDocument) -> Facts:
    """What was run, when, with what."""
    job = document.job
    trials = sum(len(case.trials) for case in document.cases)
    workloads = first_names(list(by_workload(document.cases)), most=6)
    took = ""
    if job.finished_unix_s is not None:
        took = f", {duration(max(0.0, job.finished_unix_s - job.created_unix_s))} long"
    programs = [f"{program.name} {program.version}" for program in document.programs]
    items: list[tuple[str, Text]] = [
        (
            "What",
            f"suite {document.suite.name}: {plural(len(document.cases), 'case')} of {workloads}; "
            f"{plural(trials, 'trial')}",
        ),
        ("When", f"{utc(job.created_unix_s)}{took}"),
        ("With", ", ".join([f"hostbench {document.hostbench}", *programs])),
        ("Job", (Code(job.id), f", {job.state}")),
    ]
    if document.far_host is not None:
        items.append(("Far host", host_line(document.far_host.inventory)))
    return Facts(tuple(items))


def tally(cases: Sequence[CaseResult]) -> tuple[tuple[Verdict | None, int], ...]:
    """How many cases have which verdict, the best first; None: not finished."""
    found = [case.verdict for case in cases]
    return tuple((one, found.count(one)) for one in (*Verdict, None) if one in found)


def notices(document: ResultDocument) -> tuple[Notice, ...]:
    """What must be read before any figure."""
    return tuple(_notices(document))


def _notices(document: ResultDocument) -> Iterator[Notice]:
    if document.job.state is not JobState.SUCCEEDED:
        yield _job_notice(document)
    if document.schema_version == UNSEALED_SCHEMA:
        yield Notice(UNSEALED, serious=False)
    for verdict in (
        Verdict.FAILED,
        Verdict.INVALID,
        Verdict.DISTURBED,
        Verdict.NOISY,
        Verdict.SKIPPED,
    ):
        cases = [case for case in document.cases if case.verdict is verdict]
        if cases:
            which = first_names([case.title for case in cases])
            yield Notice(
                f"{plural(len(cases), 'case')} of {len(document.cases)} "
                f"{'is' if len(cases) == 1 else 'are'} {verdict}: {_MEANING[verdict]} ({which}).",
                serious=verdict in _SERIOUS,
            )


def _job_notice(document: ResultDocument) -> Notice:
    job = document.job
    done = sum(case.verdict is not None for case in document.cases)
    so_far = f"{done} of {plural(len(document.cases), 'case')} are complete"
    if job.state is JobState.RUNNING:
        return Notice(f"The job is still running: {so_far}. This is what it has so far.", True)
    why = f": {sentence(document.reason)}" if document.reason else "."
    text: Text = f"The job {'was interrupted' if job.state is JobState.INTERRUPTED else 'failed'}"
    text = f"{text}{why} {so_far}."
    if done == len(document.cases):
        return Notice(text, True)
    return Notice((f"{text} Go on with ", Code(f"hostbench run --resume {job.id}"), "."), True)


def _grouped_reasons(cases: Sequence[CaseResult]) -> tuple[str, ...]:
    """Each kind of reason once, with a case that stands for all that have it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for case in cases:
        for code, text in {reason.code: reason.text for reason in case.reasons}.items():
            found.setdefault(code, []).append((case.title, text))
    return tuple(
        sentence(f"{plural(len(pairs), 'case')}, such as {pairs[0][0]}: {pairs[0][1]}")
        for pairs in found.values()
    )


def summary_section(document: ResultDocument, subsystems: Sequence[SubsystemReport]) -> Section:
    """The figures to remember, and why each verdict is what it is."""
    headline = [case for subsystem in subsystems for case in subsystem.headline]
    blocks: list[Block] = [
        case_table(headline, "The figures to remember", titles=True),
        Paragraph(READING),
    ]
    reasons = tuple(reason_paragraphs(document.cases))
    if len(reasons) <= REASONS_SHOWN:
        blocks += [Bullets(reasons)] if reasons else []
    else:
        title = f"The reasons case by case ({len(reasons)})"
        blocks.append(Bullets(_grouped_reasons(document.cases)))
        blocks.append(Fold(title, (Bullets(reasons),), brief=InBrief.LEFT_OUT))
    return Section(anchor="summary", title="Summary", blocks=tuple(blocks))
