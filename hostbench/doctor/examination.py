"""Runs the checks and reports what they found."""

import time
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from hostbench import __version__
from hostbench.doctor import (
    boot,
    calls,
    clock,
    cores,
    environment,
    installation,
    kernel,
    memory,
    noise,
    power,
    rights,
    runs,
    share,
    storage,
    temperature,
)
from hostbench.doctor.check import Check, Topic
from hostbench.doctor.observation import WINDOW_S, observe
from hostbench.doctor.subsystem import HasChecks
from hostbench.doctor.view import View
from hostbench.host.gpu import has_driver
from hostbench.host.inventory import inventory
from hostbench.host.scratch import scratch_directory
from hostbench.model.doctor import DOCTOR_SCHEMA, DoctorReport, Finding, State
from hostbench.model.registry import find_subsystem, subsystem_names, subsystems

MODULES = (
    noise,
    runs,
    share,
    clock,
    temperature,
    power,
    cores,
    memory,
    kernel,
    boot,
    environment,
    rights,
    storage,
    installation,
)
_STATES, _TOPICS = list(State), list(Topic)


def all_checks() -> tuple[Check, ...]:
    """Return the whole table: the topics' checks, then those of the subsystems."""
    own = [check for module in MODULES for check in module.CHECKS]
    for subsystem in subsystems().values():
        if isinstance(subsystem, HasChecks):
            own += subsystem.checks()
    names = Counter(check.name for check in own)
    assert max(names.values()) == 1, f"two checks of one name: {names.most_common(1)}"
    return tuple(own)


def checks_for(subsystem: str | None) -> tuple[Check, ...]:
    """Return the checks that affect a subsystem; None: all."""
    return tuple(check for check in all_checks() if subsystem is None or check.touches(subsystem))


def examine(results: Path, subsystem: str | None) -> DoctorReport:
    """Watch this host for a second, read everything else, and report. Raise UsageError for an
    unknown subsystem."""
    examined = subsystems().values() if subsystem is None else [find_subsystem(subsystem)]
    root, checks = Path("/"), checks_for(subsystem)
    observation = observe(root, WINDOW_S)
    # Drivers open files of their own for writing, so they are started only if there is a card.
    gpu = any(one.has_devices for one in examined) and has_driver(root)
    host = inventory(root, gpu=gpu)
    view = View(root, host, results, scratch_directory(), calls.ask(), observation)
    return report(view, checks, subsystem)


def report(view: View, checks: Iterable[Check], subsystem: str | None) -> DoctorReport:
    """Return the report of all checks on a view."""
    findings = sorted((_finding(view, check) for check in checks), key=_order)
    counts = Counter(finding.state for finding in findings)
    host = view.host
    return DoctorReport(
        schema=DOCTOR_SCHEMA,
        version=__version__,
        hostname=host.hostname,
        cpu=host.cpu.model_name or host.cpu.architecture,
        time_unix_s=time.time(),
        window_s=view.observation.window.seconds if view.observation else None,
        subsystem=subsystem,
        summary={state: counts[state] for state in State},
        findings=tuple(findings),
    )


def _finding(view: View, check: Check) -> Finding:
    outcome = check.look(view)
    advice = outcome.advice
    return Finding(
        check=check.name,
        topic=check.topic,
        title=check.title,
        state=outcome.state,
        text=outcome.text,
        evidence=outcome.evidence,
        remedy=advice.placed(view.host.virtualisation) if advice else None,
        subsystems=check.subsystems or subsystem_names(),
    )


def _order(finding: Finding) -> tuple[int, int]:
    return _STATES.index(finding.state), _TOPICS.index(Topic(finding.topic))
