"""The doctor's report for people: the worst first, each with its evidence and what to do."""

import textwrap
from collections.abc import Iterable
from typing import TextIO

from rich.console import Console
from rich.text import Text

from hostbench.cli.render_list import console_for
from hostbench.model.doctor import DoctorReport, Evidence, Finding, Place, Remedy, State

STYLES = {
    State.PROBLEM: "bold red",
    State.NOTICE: "yellow",
    State.UNKNOWN: "dim",
    State.OK: "green",
}
SUMMARY = (State.PROBLEM, State.NOTICE, State.OK, State.UNKNOWN)
PLURALS = {State.PROBLEM: "problems", State.NOTICE: "notices"}
WORD_COLUMNS = max(len(state) for state in State) + 2
_WHERE = {
    Place.CONTAINER_HOST: "outside this container",
    Place.VM_OWNER: "in a virtual machine only the host's owner can change this",
}


def show_report(report: DoctorReport, stream: TextIO) -> None:
    """Print the findings, then one line that counts them."""
    console = console_for(stream)
    scope = f", checks for {report.subsystem}" if report.subsystem else ""
    _wrapped(console, Text(), f"{report.hostname}, {report.cpu}{scope}")
    for state in State:
        findings = [finding for finding in report.findings if finding.state is state]
        if findings:
            console.print()
        for finding in findings:
            _show(console, finding)
    console.print()
    console.print(summary_line(report))


def summary_line(report: DoctorReport) -> str:
    """Return a text such as `2 problems, 5 notices, 20 ok, 3 unknown`."""
    return ", ".join(_counted(state, report.summary[state]) for state in SUMMARY)


def _counted(state: State, count: int) -> str:
    return f"{count} {state if count == 1 else PLURALS.get(state, state)}"


def _show(console: Console, finding: Finding) -> None:
    word = Text(f"{finding.state:<{WORD_COLUMNS}}", style=STYLES[finding.state])
    text = f"{finding.title}: {finding.text}"
    if finding.state is State.OK:
        _wrapped(console, word, f"{text} [{_seen(finding.evidence[:1])}]")
        return
    _wrapped(console, word, text)
    blank = Text(" " * WORD_COLUMNS)
    if finding.evidence:
        _wrapped(console, blank, f"seen: {_seen(finding.evidence)}", indent=2)
    if finding.remedy:
        _wrapped(console, blank, f"do: {_remedy(finding.remedy)}", indent=2)


def _wrapped(console: Console, lead: Text, text: str, indent: int = 0) -> None:
    """Print `text` after `lead`; later lines begin below it, `indent` further in."""
    lines = textwrap.wrap(
        text,
        width=console.width - len(lead),
        subsequent_indent=" " * indent,
        break_on_hyphens=False,
    )
    for number, line in enumerate(lines or [""]):
        console.print((lead if number == 0 else Text(" " * len(lead))) + Text(line), soft_wrap=True)


def _seen(evidence: Iterable[Evidence]) -> str:
    return "; ".join(_one(one) for one in evidence)


def _one(evidence: Evidence) -> str:
    if evidence.value is None:
        return f"{evidence.source} ({evidence.reason})"
    return f"{evidence.source} = {evidence.value or 'empty'}"


def _remedy(remedy: Remedy) -> str:
    notes = ["as root"] if remedy.needs_root and remedy.where is not Place.VM_OWNER else []
    if remedy.where in _WHERE:
        notes.append(_WHERE[remedy.where])
    return f"{remedy.action} ({', '.join(notes)})" if notes else remedy.action
