"""Completion in a shell: workloads and their parameters, from the tables of the programs here."""

from collections.abc import Iterator

import typer

from hostbench.base.errors import HostbenchError
from hostbench.model.registry import subsystem_names
from hostbench.model.table import Table, Workload
from hostbench.programs.program import load_program

Completions = list[tuple[str, str]]


def workload_names(incomplete: str) -> Completions:
    """Return names such as `cpu.fma`, each with what it does."""
    subsystem, dot, _ = incomplete.partition(".")
    found = [name for name in subsystem_names() if name == subsystem or not dot]
    return [
        (name, workload.description)
        for table in _tables(name for name in found if name.startswith(subsystem))
        for workload in table.workloads
        if (name := f"{table.subsystem}.{workload.name}").startswith(incomplete)
    ]


def assignments(context: typer.Context, incomplete: str) -> Completions:
    """Return `isa=` with its meaning, then `isa=avx2`: what the preceding --workload accepts."""
    workload = _workload(str(context.params.get("workload") or ""))
    if workload is None:
        return []
    name, equals, _ = incomplete.partition("=")
    param = workload.param(name) if equals else None
    if param is not None:
        words = [f"{name}={word}" for word in param.words]
        return [(word, param.help) for word in words if word.startswith(incomplete)]
    return [
        (f"{param.name}=", param.help)
        for param in workload.params
        if param.scope == "request" and param.name.startswith(incomplete)
    ]


def _workload(full_name: str) -> Workload | None:
    subsystem, _, name = full_name.partition(".")
    tables = _tables(one for one in subsystem_names() if one == subsystem)
    return next((table.workload(name) for table in tables), None)


def _tables(subsystems: Iterator[str]) -> Iterator[Table]:
    """Yield the tables of the available programs; a shell gets no error."""
    for subsystem in subsystems:
        try:
            yield load_program(subsystem).table
        except (HostbenchError, OSError):
            continue
