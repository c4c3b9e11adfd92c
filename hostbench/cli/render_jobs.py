"""Jobs and hosts of an orchestrator as tables for people."""

import time
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import TextIO

from rich.table import Table
from rich.text import Text

from hostbench.base.units import duration, plural
from hostbench.cli.render_list import VerdictCounts, console_for
from hostbench.judge.peer import shown_text
from hostbench.model.jobs import (
    TERMINAL,
    HostView,
    JobList,
    JobView,
    QueueMemory,
    StackState,
)

STATE_STYLES = {
    StackState.QUEUED: "dim",
    StackState.WAITING: "cyan",
    StackState.RUNNING: "cyan",
    StackState.SUCCEEDED: "green",
    StackState.FAILED: "bold red",
    StackState.CANCELLED: "yellow",
    StackState.LOST: "bold red",
}
HOST_STYLES = {"idle": "green", "busy": "cyan", "gone": "bold red"}
GAP = (0, 1, 0, 0)


def show_jobs(found: JobList, stream: TextIO) -> None:
    """Print the jobs, newest first, and what Redis keeps."""
    console = console_for(stream)
    if not found.jobs:
        console.print("No job matches; submit one with: hostbench submit quick")
    else:
        console.print(_jobs_table(found.jobs))
    if found.memory is not None:
        console.print(Text(_memory(found.memory), style="bold red" if found.memory.full else "dim"))
    if found.next is not None:
        console.print("Older jobs are not shown; --limit 0 shows all.")


def _memory(memory: QueueMemory) -> str:
    if memory.full:
        return memory.refusal
    kept = plural(memory.ended_jobs, "ended job")
    if memory.oldest_ended_unix_s is not None:
        kept += f" since {_moment(memory.oldest_ended_unix_s)}"
    return f"Redis keeps {kept}, {memory.text}; earlier ones are listed from their results."


def _jobs_table(jobs: Sequence[JobView]) -> Table:
    table = Table(box=None, padding=GAP, pad_edge=False)
    # People copy an id, so it is never wrapped.
    table.add_column("job", no_wrap=True)
    table.add_column("state", no_wrap=True)
    table.add_column("host", overflow="fold")
    table.add_column("cases", justify="right", no_wrap=True)
    table.add_column("remark")
    for job in jobs:
        table.add_row(
            job.id,
            Text(job.state, style=STATE_STYLES[job.state]),
            ", ".join(job.hosts),
            _cases(job),
            _remark(job),
        )
    return table


def _cases(job: JobView) -> str:
    return f"{job.progress.done}/{job.progress.cases}" if job.progress else "–"


def _remark(job: JobView) -> str | VerdictCounts:
    if job.state is StackState.QUEUED:
        return job.place
    if job.state is StackState.WAITING:
        return shown_text(job.reason or "until its host is idle")
    if job.state is StackState.RUNNING and job.progress and job.progress.current:
        return shown_text(f"now {job.progress.current}")
    return VerdictCounts(job.verdicts) if job.verdicts else shown_text(job.reason or "")


def show_job(job: JobView, stream: TextIO) -> None:
    """Print everything about one job."""
    console = console_for(stream)
    console.print(Text.assemble(f"{job.id}: ", (job.state, STATE_STYLES[job.state])))
    table = Table(box=None, padding=GAP, pad_edge=False, show_header=False)
    table.add_column(no_wrap=True, style="dim")
    table.add_column(overflow="fold")
    for name, text in _facts(job):
        table.add_row(f"  {name}", shown_text(text))
    console.print(table)


def _facts(job: JobView) -> Iterator[tuple[str, str]]:
    if job.reason:
        yield "reason", job.reason
    yield "measures", job.what
    yield "hosts", ", ".join(job.hosts)
    yield "submitted", _moment(job.submitted_unix_s) + _priority(job)
    if job.state is StackState.QUEUED:
        yield "place", job.place
    if job.started_unix_s is not None:
        yield "started", _moment(job.started_unix_s) + _sessions(job)
    if job.ended_unix_s is not None:
        yield "ended", _moment(job.ended_unix_s) + _taken(job)
    if job.progress:
        yield "progress", _progress(job)
    if job.verdicts:
        yield "verdicts", str(VerdictCounts(job.verdicts))
    if job.exit_code is not None:
        yield "exit code", str(job.exit_code)
    yield "next", next_step(job)


def _priority(job: JobView) -> str:
    return f", priority {job.priority}" if job.priority else ""


def _sessions(job: JobView) -> str:
    return f", for the {_ordinal(job.sessions)} time" if job.sessions > 1 else ""


def _ordinal(number: int) -> str:
    tens = number % 100 // 10
    return f"{number}{'th' if tens == 1 else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _taken(job: JobView) -> str:
    if job.started_unix_s is None or job.ended_unix_s is None:
        return ""
    return f", after {duration(max(0.0, job.ended_unix_s - job.started_unix_s))}"


def _progress(job: JobView) -> str:
    progress = job.progress
    assert progress is not None
    text = f"{progress.done} of {plural(progress.cases, 'case')}"
    if progress.current and job.state not in TERMINAL:
        text += f", now {progress.current}"
    low, high = progress.estimate_low_s, progress.estimate_high_s
    if low is not None and high is not None and job.state not in TERMINAL:
        shortest, longest = duration(low), duration(high)
        text += f"; {longest if shortest == longest else f'{shortest} to {longest}'} in all"
    return text


def next_step(job: JobView) -> str:
    """Return the command that a reader of this job most likely wants."""
    if job.state not in TERMINAL:
        return f"hostbench watch {job.id}"
    if job.state is StackState.SUCCEEDED:
        return f"hostbench result {job.id} --report report.html"
    return f"hostbench resume {job.id}"


def _moment(unix_s: float) -> str:
    """Return the local time, and how long ago it was if that matters."""
    ago_s = time.time() - unix_s
    text = f"{datetime.fromtimestamp(unix_s).astimezone():%Y-%m-%d %H:%M:%S %Z}"
    return f"{text} ({ago(unix_s)})" if 0 <= ago_s < 86_400 else text


def ago(unix_s: float) -> str:
    """Return a text such as `12 s ago`."""
    return f"{duration(max(0.0, time.time() - unix_s))} ago"


def show_hosts(hosts: Sequence[HostView], stream: TextIO) -> None:
    """Print the hosts by name."""
    console = console_for(stream)
    if not hosts:
        console.print(
            "No host is registered. A service registers its host every 15 s: is one running?"
        )
        return
    table = Table(box=None, padding=GAP, pad_edge=False)
    table.add_column("host", overflow="fold")
    table.add_column("state", no_wrap=True)
    table.add_column("services")
    table.add_column("job", no_wrap=True)
    table.add_column("CPU")
    for host in sorted(hosts, key=lambda host: host.name):
        state = Text(host.state, style=HOST_STYLES[host.state])
        table.add_row(host.name, state, _services(host), host.job or "–", _cpu(host))
    console.print(table)
    for host in hosts:
        if host.state == "gone" and host.services:
            renewed_unix_s = max(service.renewed_unix_s for service in host.services)
            console.print(f"{host.name} last registered {ago(renewed_unix_s)}.")


def _services(host: HostView) -> str:
    return ", ".join(f"{s.subsystem} {s.program.version}" for s in host.services) or "–"


def _cpu(host: HostView) -> str:
    if host.inventory is None:
        return "–"
    cpu = host.inventory.cpu.model_name or host.inventory.cpu.architecture
    return f"{cpu}, {plural(len(host.inventory.allowed_cpus), 'CPU')}"
