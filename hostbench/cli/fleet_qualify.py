"""The command `fleet qualify`. It imports what takes time to import."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hostbench.base.errors import ResourceError, UsageError, shown
from hostbench.base.exitcode import ExitCode
from hostbench.cli.fleet_options import OptionalName
from hostbench.cli.options import Json, Namespace, own_epilog, print_json, seconds

if TYPE_CHECKING:
    from collections.abc import Mapping

    from hostbench.fleet.kubernetes.gate import GateNode, Qualification
    from hostbench.model.fleet import FleetHost

qualifying = typer.Typer()
DAY_S = 86400.0
DAYS_MOST = 3650.0
CODES = own_epilog(
    {
        ExitCode.OK: "all nodes are qualified",
        ExitCode.CASE_FAILED: "Kubernetes refused a call",
        ExitCode.UNREACHABLE: "the cluster cannot be reached or does not accept the credentials",
        ExitCode.WORSE: "a node is not qualified",
        ExitCode.UNDECIDED: "a node was not measured, is suspect, has changed or is too old",
    }
)


@qualifying.command(epilog=CODES)
def qualify(
    name: OptionalName = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="What hostbench fleet report --json printed: nodes that it calls low are not "
            "qualified.",
        ),
    ] = None,
    max_age: Annotated[
        str | None,
        typer.Option(metavar="DAYS", help="Without NAME: also those that were measured earlier."),
    ] = None,
    reboots: Annotated[
        bool,
        typer.Option(
            "--reboots",
            help="Without NAME: also those that have booted since, perhaps with another firmware.",
        ),
    ] = False,
    set_taint: Annotated[
        bool,
        typer.Option(
            "--set-taint",
            help="Keep work off nodes that are not qualified, by the taint "
            "hostbench.dev/unqualified:NoSchedule. "
            "Qualified nodes lose this taint in any case.",
        ),
    ] = False,
    namespace: Namespace = None,
    as_json: Json = False,
) -> None:
    """Mark the nodes of a Kubernetes cluster by what a campaign measured: condition, label,
    taint."""
    from hostbench.fleet.engines import needs_lightkube

    needs_lightkube()
    from hostbench.fleet.kubernetes.gate import Gate, exit_code, outdated, qualification

    if name is None and report is not None:
        raise UsageError("--report applies to a campaign; give its NAME, too")
    if name is not None and max_age is not None:
        raise UsageError("--max-age is about nodes of earlier campaigns; leave out NAME")
    if name is not None and reboots:
        raise UsageError("--reboots is about nodes of earlier campaigns; leave out NAME")
    age_s = None if max_age is None else _age_s(max_age)
    gate = Gate(namespace, set_taint=set_taint)
    nodes, now_s = gate.nodes(), time.time()
    found: dict[str, Qualification] = {}
    if name is None:
        for node in nodes.values():
            if (one := outdated(node, now_s, age_s, reboots=reboots)) is not None:
                found[node.name] = one
    else:
        from hostbench.fleet.kubernetes.engine import KubernetesEngine

        hosts = None if report is None else _hosts(report)
        engine = KubernetesEngine(namespace, None)
        if engine.campaign(name).pairs:
            raise UsageError(f"{name} measures pairs of nodes; hostbench fleet pairs judges them")
        for status in engine.status(name):
            found[status.node] = qualification(status, hosts, now_s, nodes.get(status.node))
    gate.put(found, nodes)
    _show(found, nodes, as_json=as_json)
    raise typer.Exit(exit_code(tuple(found.values())))


def _age_s(text: str) -> float:
    days = seconds("--max-age", text)
    if not 0 < days <= DAYS_MOST:
        raise UsageError(
            f"--max-age {shown(text)} is not allowed: give more than 0 and at most "
            f"{DAYS_MOST:.0f} days"
        )
    return days * DAY_S


def _hosts(path: Path) -> "dict[str, FleetHost]":
    """Return the hosts of a report by name. Raise HostbenchError."""
    from pydantic import ValidationError

    from hostbench.model.fleet import FleetCheck

    try:
        report = FleetCheck.model_validate_json(path.read_bytes())
    except OSError as error:
        raise ResourceError(f"cannot read the report {path}: {error.strerror}") from None
    except ValidationError:
        raise UsageError(
            f"{path} is not a report of this hostbench version; make one with: hostbench fleet "
            f"report DOCUMENTS --json > {path}"
        ) from None
    return {host.host: host for host in report.hosts}


def _show(
    found: "Mapping[str, Qualification]", nodes: "Mapping[str, GateNode]", *, as_json: bool
) -> None:
    from hostbench.judge.peer import shown_text

    if as_json:
        trees = {
            node: {
                "qualified": one.answer,
                "reason": one.reason,
                "message": one.message,
                "measured_unix_s": one.measured_s,
                "in_cluster": node in nodes,
            }
            for node, one in found.items()
        }
        print_json({"kind": "hostbench.qualified", "nodes": trees})
        return
    for node, one in found.items():
        gone = "" if node in nodes else " (the cluster has no such node)"
        message = shown_text(one.message)  # may be what a pod wrote
        sys.stdout.write(f"{node}{gone}: {one.answer}: {one.reason}: {message}\n")
