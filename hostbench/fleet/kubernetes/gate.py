"""The gate: whether a node may have work, as a node condition, a label and, where wanted, a taint.

Schedulers, autoscalers and people read conditions and labels already. So nothing of hostbench has
to run for the gate to hold: what it found stays with the node, and says how old it is.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from lightkube import Client
from lightkube.resources.core_v1 import Node
from lightkube.types import PatchType

from hostbench.base.exitcode import ExitCode
from hostbench.decisions.fleet_words import host_words
from hostbench.fleet.campaign import MeasuredSystem, NodeStatus
from hostbench.fleet.kubernetes.api import CHUNK, Api
from hostbench.fleet.kubernetes.facts import node_facts
from hostbench.fleet.kubernetes.objects import PREFIX, Taint
from hostbench.fleet.kubernetes.taints import add_taint, remove_taint
from hostbench.host.inventory import boot_hash, machine_hash
from hostbench.model.baseline import HostWord
from hostbench.model.fleet import FleetHost
from hostbench.results.ids import submitted_unix_s

CONDITION = "HostbenchQualified"
QUALIFIED_LABEL = f"{PREFIX}/qualified"
UNQUALIFIED = Taint(f"{PREFIX}/unqualified", "", "NoSchedule")
# Another firmware takes a boot, and nodes report no firmware. A boot alone is no other system.
BOOT = "boot"
# On a node: the kernel, system and boot that it was measured with, as JSON.
SYSTEM_ANNOTATION = f"{PREFIX}/qualified-system"
# What the API server takes as a condition's message.
MESSAGE_CHARACTERS_MOST = 1024

Answer = Literal["True", "False", "Unknown"]
# What the report of a campaign says of a host that is not as it should be.
_OFF: Mapping[HostWord, tuple[Answer, str]] = {
    HostWord.LOW: ("False", "Low"),
    HostWord.SUSPECT: ("Unknown", "Suspect"),
}


@dataclass(frozen=True)
class Qualification:
    """What the condition of a node says. `reason` is one word, `message` a sentence, `measured_s`
    when the node was measured, in seconds since 1970; None: it was not. `system`: what a qualified
    node was measured with."""

    answer: Answer
    reason: str
    message: str
    measured_s: float | None = None
    system: Mapping[str, str] | None = None


@dataclass(frozen=True)
class GateNode:
    """What the gate knows of a node: its system now, and what an earlier call put there.
    `documented`: the system now, as a document would have it."""

    name: str
    system: Mapping[str, str]
    tainted: bool
    documented: MeasuredSystem | None = None
    qualified: Qualification | None = None
    since: str | None = None
    qualified_system: Mapping[str, str] | None = None


def qualification(
    status: NodeStatus,
    report: Mapping[str, FleetHost] | None,
    now_s: float,
    node: GateNode | None,
) -> Qualification:
    """Return the answer of a campaign about a node. `report`: the hosts in the report of the
    campaign by name, if there is one. `now_s`: seconds since 1970 here. `node`: what the gate knows
    of it; None: the cluster has no such node."""
    result, before = status.result, None if node is None else node.qualified
    if result is None:
        reason = f"the campaign has not measured it: {status.state}"
        detail = f": {status.reason}" if status.reason else ""
        return Qualification("Unknown", "NotMeasured", f"{reason}{detail}")
    # The node's clock may be ahead: a measurement of the future would hold past every age that is
    # allowed.
    measured_s = min(submitted_unix_s(result.job), now_s)
    where = f"campaign {result.member.campaign}, job {result.job}"
    if before is not None and before.measured_s is not None and where in before.message:
        measured_s = min(measured_s, before.measured_s)
    code = result.exit_code
    if code is not ExitCode.OK:
        reason = "".join(part.capitalize() for part in code.name.split("_"))
        return Qualification("False", reason, f"{code.meaning}: {where}", measured_s)
    host = None if report is None else report.get(status.node)
    if report is not None and host is None:
        message = f"the report has no host of this name; {where}"
        return Qualification("Unknown", "NotJudged", message, measured_s)
    if host is not None and host.word in _OFF:
        answer, reason = _OFF[host.word]
        return Qualification(answer, reason, f"{host_words(host)}; {where}", measured_s)
    if result.system is None:
        message = f"an earlier hostbench measured it and did not note its kernel; {where}"
        return Qualification("Unknown", "SystemUnknown", message, measured_s)
    if node is None:
        return Qualification("True", "Measured", where, measured_s)
    if (change := _change_since(result.system, node)) is not None:
        return Qualification("Unknown", "SystemChanged", f"{change}; {where}", measured_s)
    system = _system_when_measured(result.system, node)
    return Qualification("True", "Measured", where, measured_s, system)


def _change_since(measured: MeasuredSystem, node: GateNode) -> str | None:
    """Return what was changed at a node between its measurement and now."""
    now = node.documented
    if now is None:
        return None
    if now.kernel != measured.kernel:
        return f"its kernel was {measured.kernel} when it was measured and is {now.kernel}"
    if now.machine is not None and now.machine != measured.machine:
        return "another machine was measured under this name"
    return None


def _system_when_measured(measured: MeasuredSystem, node: GateNode) -> dict[str, str]:
    """Return the system that was measured, in the node's words. The name of the system is that of
    now, since a pod does not see it; so is all of it that has not changed since."""
    system = dict(node.system)
    if measured.boot is None:
        system.pop(BOOT, None)
    elif node.documented is not None and node.documented.boot not in {None, measured.boot}:
        # It has booted since it was measured: no node says this of its boot.
        system[BOOT] = f"the one with the hash {measured.boot}"
    return system


def outdated(
    node: GateNode, now_s: float, age_s_most: float | None, *, reboots: bool = False
) -> Qualification | None:
    """Return why a qualified node has to be measured again, or None. `reboots`: a boot since then
    is a reason."""
    found = node.qualified
    if found is None or found.answer != "True":
        return None
    before = node.qualified_system or {}
    for name, value in node.system.items():
        if before.get(name) == value:
            continue
        if name != BOOT:
            message = f"its {name} was {before.get(name, 'not known')} and is {value}"
            return Qualification("Unknown", "SystemChanged", message, found.measured_s)
        if reboots:
            if BOOT in before:
                message = "the node has booted since it was measured, perhaps with another firmware"
                return Qualification("Unknown", "Rebooted", message, found.measured_s)
            message = (
                f"its boot was not recorded when it was qualified ({found.message}), so it may "
                "have booted since: measure it again"
            )
            return Qualification("Unknown", "BootUnknown", message, found.measured_s)
    measured_s = found.measured_s or 0.0
    if age_s_most is not None and now_s - measured_s > age_s_most:
        days = (now_s - measured_s) / 86400
        return Qualification("Unknown", "TooOld", f"measured {days:.0f} days ago", measured_s)
    return None


class Gate:
    """The nodes of a cluster as the gate sees them. `set_taint`: nodes that are not qualified get
    the taint UNQUALIFIED; those that are lose it in any case."""

    def __init__(self, namespace: str | None, *, set_taint: bool) -> None:
        """Find the cluster. Raise ResourceError."""
        self._api = Api(namespace)
        self._set_taint = set_taint

    def nodes(self) -> dict[str, GateNode]:
        """Return all nodes by name. Raise HostbenchError."""
        found = self._api.all(lambda client: map(_gate_node, client.list(Node, chunk_size=CHUNK)))
        return {node.name: node for node in found}

    def put(self, found: Mapping[str, Qualification], nodes: Mapping[str, GateNode]) -> None:
        """Give nodes their condition, label and taint. Nodes that are gone are left out. Raise
        HostbenchError; what was put until then stays, and the next call goes on."""
        due = [name for name in found if name in nodes]

        def put_one(client: Client, name: str) -> None:
            # The label comes last: it is what selects nodes that have to be measured again.
            status = {"status": {"conditions": [_condition(found[name], nodes[name])]}}
            client.patch(Node.Status, name, status, patch_type=PatchType.STRATEGIC)
            qualified = found[name].answer == "True"
            if qualified and nodes[name].tainted:
                remove_taint(client, name, UNQUALIFIED.key)
            elif not qualified and self._set_taint:
                add_taint(client, name, UNQUALIFIED)
            marks = {
                "labels": {QUALIFIED_LABEL: found[name].answer.lower()},
                "annotations": (
                    {SYSTEM_ANNOTATION: json.dumps(found[name].system)} if qualified else {}
                ),
            }
            client.patch(Node, name, {"metadata": marks}, patch_type=PatchType.STRATEGIC)

        self._api.each(due, put_one)


def exit_code(found: Sequence[Qualification]) -> ExitCode:
    """Return 0 where every node is qualified."""
    answers = {one.answer for one in found}
    if "False" in answers:
        return ExitCode.WORSE
    return ExitCode.UNDECIDED if "Unknown" in answers else ExitCode.OK


def _condition(found: Qualification, node: GateNode) -> dict[str, str]:
    """Return the condition. Its heartbeat is the time of the measurement: that is its age."""
    now = _moment(datetime.now(UTC).timestamp())
    same = node.qualified is not None and node.qualified.answer == found.answer
    return {
        "type": CONDITION,
        "status": found.answer,
        "reason": found.reason,
        "message": found.message[:MESSAGE_CHARACTERS_MOST],
        "lastHeartbeatTime": now if found.measured_s is None else _moment(found.measured_s),
        "lastTransitionTime": (same and node.since) or now,
    }


def _moment(unix_s: float) -> str:
    return datetime.fromtimestamp(unix_s, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _gate_node(node: Node) -> GateNode:
    metadata, spec, status = node.metadata, node.spec, node.status
    assert metadata is not None and metadata.name is not None
    before = (metadata.annotations or {}).get(SYSTEM_ANNOTATION)
    qualified, since = None, None
    for one in (status and status.conditions) or ():
        if one.type == CONDITION:
            measured_s = one.lastHeartbeatTime.timestamp() if one.lastHeartbeatTime else None
            answer: Answer = "True" if one.status == "True" else "Unknown"
            answer = "False" if one.status == "False" else answer
            qualified = Qualification(answer, one.reason or "", one.message or "", measured_s)
            since = _moment(one.lastTransitionTime.timestamp()) if one.lastTransitionTime else None
    return GateNode(
        name=metadata.name,
        system=dict(_system(node)),
        documented=_documented(node),
        tainted=any(one.key == UNQUALIFIED.key for one in (spec and spec.taints) or ()),
        qualified=qualified,
        since=since,
        qualified_system=None if before is None else _read_system(before),
    )


def _system(node: Node) -> Iterator[tuple[str, str]]:
    """Yield what a repair or a roll-out changes."""
    info = node.status and node.status.nodeInfo
    if info:
        yield "kernel", info.kernelVersion
        yield "system", info.osImage
        yield "machine", info.systemUUID or info.machineID
        if info.bootID:
            yield BOOT, info.bootID


def _documented(node: Node) -> MeasuredSystem | None:
    info = node.status and node.status.nodeInfo
    if not info:
        return None
    machine = node_facts(node).machine
    return MeasuredSystem(
        kernel=info.kernelVersion,
        machine=None if machine is None else machine_hash(machine),
        boot=boot_hash(info.bootID) if info.bootID else None,
    )


def _read_system(text: str) -> dict[str, str]:
    """Return what the annotation says; nothing if somebody else wrote it."""
    try:
        found = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(name): str(value) for name, value in found.items()}
