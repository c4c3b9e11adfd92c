"""Nodes of a cluster: which ones a user means, and what is free on them."""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from lightkube.models.core_v1 import Container
from lightkube.operators import Operator, equal, exists, in_, not_equal, not_exists, not_in
from lightkube.resources.core_v1 import Node, Pod
from lightkube.utils.quantity import parse_quantity

from hostbench.base.errors import ResourceError, UsageError, did_you_mean, shown
from hostbench.fleet.campaign import Campaign, Exclusive
from hostbench.fleet.kubernetes.api import CHUNK, Api
from hostbench.fleet.kubernetes.facts import NodeFacts, node_facts
from hostbench.fleet.kubernetes.objects import PodOptions
from hostbench.fleet.kubernetes.states import node_hindrances

RACK_LABEL = "topology.kubernetes.io/rack"
Selector = dict[str, str | Operator[Any] | Iterable[Any] | None]
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")
_KEY = r"[A-Za-z0-9]([A-Za-z0-9._/-]*[A-Za-z0-9])?"
_EQUALITY = re.compile(rf"(?P<key>{_KEY})\s*(?P<operator>!=|==?)\s*(?P<value>[A-Za-z0-9._-]*)")
_SET = re.compile(rf"(?P<key>{_KEY})\s+(?P<operator>in|notin)\s+\((?P<values>[^()]*)\)")
_EXISTENCE = re.compile(rf"(?P<not>!?)(?P<key>{_KEY})")
# Who makes GPUs that pods ask for by a resource of their own; parts of cards have names of their
# own, such as nvidia.com/mig-1g.10gb.
GPU_MAKERS = ("nvidia.com/", "amd.com/", "gpu.intel.com/")
# What is on every node, and stays there while a campaign measures.
_STAYING = frozenset({"DaemonSet", "Node"})


def all_nodes(api: Api, selector: Selector | None = None) -> dict[str, NodeFacts]:
    """Return the nodes by name: all, or those with the labels of a selector."""
    found = api.all(
        lambda client: map(node_facts, client.list(Node, chunk_size=CHUNK, labels=selector))
    )
    return {node.name: node for node in found}


def chosen_nodes(api: Api, expression: str | None, options: PodOptions) -> tuple[str, ...]:
    """Return the nodes that an expression names: names with commas, or a selector of labels. None:
    all that take the campaign's pods now. Raise UsageError."""
    selector = None if expression is None else label_selector(expression)
    found = all_nodes(api, selector)
    if expression is not None and selector is None:
        return _named(expression, found)
    free = {name: node for name, node in found.items() if not any(node_hindrances(node, options))}
    if not free:
        what = f"--nodes {shown(expression)} matches" if expression else "the cluster has"
        if not found:
            raise UsageError(f"{what} no node; kubectl get nodes --show-labels lists all")
        node = next(iter(found.values()))
        why = next(node_hindrances(node, options))
        raise ResourceError(f"{what} no node that takes pods: {node.name}: {why}")
    return tuple(sorted(free))


def _named(expression: str, found: Mapping[str, NodeFacts]) -> tuple[str, ...]:
    names = list(dict.fromkeys(name.strip() for name in expression.split(",")))
    for name in names:
        if name not in found:
            raise UsageError(
                f"--nodes {shown(name)} is no node of the cluster; {did_you_mean(name, found)}"
                "kubectl get nodes lists all"
            )
    return tuple(names)


def labelled_racks(api: Api, nodes: Collection[str], label: str | None) -> dict[str, str]:
    """Return the value of a label of each of these nodes that has it; None: RACK_LABEL, which no
    node need have. Raise UsageError for a label that no node has."""
    key = RACK_LABEL if label is None else label
    if not re.fullmatch(_KEY, key):
        raise UsageError(
            f"--rack-label {shown(key)} cannot be a label; give one of those that kubectl get "
            f"nodes --show-labels lists, such as {RACK_LABEL}"
        )
    wanted = frozenset(nodes)
    found = api.all(
        lambda client: (
            (one.metadata.name or "", (one.metadata.labels or {})[key])
            for one in client.list(Node, chunk_size=CHUNK, labels={key: None})
            if one.metadata is not None
        )
    )
    racks = {name: rack for name, rack in found if name in wanted and rack}
    if label is not None and not racks:
        raise UsageError(
            f"--rack-label {label}: no node of {len(wanted)} has this label; kubectl get nodes "
            "--show-labels lists those that there are"
        )
    return racks


def label_selector(expression: str) -> Selector | None:
    """Return the selector in an expression as lightkube takes it; None: it is a list of names.

    Raise UsageError for a term that is none, or two terms about one label.
    """
    terms = [term.strip() for term in re.split(r",(?![^()]*\))", expression)]
    if all(_NODE_NAME.fullmatch(term) for term in terms):
        return None
    selector: Selector = {}
    for term in terms:
        key, value = _term(term)
        if key in selector:
            raise UsageError(f"--nodes names the label {key} twice; use: {key} in (a,b)")
        selector[key] = value
    return selector


def _term(term: str) -> tuple[str, Operator[Any]]:
    if (match := _EQUALITY.fullmatch(term)) is not None:
        compare = not_equal if match["operator"] == "!=" else equal
        return match["key"], compare(match["value"])
    if (match := _SET.fullmatch(term)) is not None:
        compare_set = in_ if match["operator"] == "in" else not_in
        return match["key"], compare_set([one.strip() for one in match["values"].split(",")])
    if (match := _EXISTENCE.fullmatch(term)) is not None:
        return match["key"], not_exists() if match["not"] else exists()
    raise UsageError(
        f"--nodes {shown(term)} is neither the name of a node nor a term of a selector, such as "
        "rack=r1, rack!=r1, rack in (r1,r2), gpu or !gpu"
    )


def free_resources(
    api: Api, campaign: Campaign, nodes: Sequence[NodeFacts]
) -> dict[str, dict[str, str]]:
    """Return what a pod of the campaign requests on each node.

    Alone on a node, all that is allocatable and not taken by DaemonSets and static pods; other pods
    have to go before. Beside other work, only devices. GPUs are requested where the suite measures
    them.
    """
    alone = campaign.exclusive is not Exclusive.NONE
    taken = _taken(api) if alone else {}
    gpu = any(case.workload.startswith("gpu.") for case in campaign.suite.cases)
    found: dict[str, dict[str, str]] = {}
    for node in nodes:
        names = [name for name in ("cpu", "memory") if alone and name in node.allocatable]
        names += [name for name in node.allocatable if gpu and name.startswith(GPU_MAKERS)]
        free = {
            name: _number(node.allocatable[name]) - taken.get(node.name, {}).get(name, Decimal(0))
            for name in names
        }
        found[node.name] = {
            name: _quantity(name, amount) for name, amount in free.items() if amount > 0
        }
    return found


def _taken(api: Api) -> dict[str, dict[str, Decimal]]:
    """Return what DaemonSets and static pods request, by node and resource."""
    taken: dict[str, dict[str, Decimal]] = {}
    pods = api.all(
        lambda client: (
            (pod.spec.nodeName, pod_requests(pod))
            for pod in client.list(Pod, namespace="*", chunk_size=CHUNK)
            if pod.spec is not None and pod.spec.nodeName and _stays(pod)
        )
    )
    for node, requests in pods:
        sums = taken.setdefault(node, {})
        for name, amount in requests.items():
            sums[name] = sums.get(name, Decimal(0)) + amount
    return taken


def _stays(pod: Pod) -> bool:
    owners = (pod.metadata and pod.metadata.ownerReferences) or ()
    ended = pod.status is not None and pod.status.phase in {"Succeeded", "Failed"}
    return not ended and any(owner.kind in _STAYING for owner in owners)


def pod_requests(pod: Pod) -> dict[str, Decimal]:
    """Return what the scheduler counts for a pod: its containers together or its largest initial
    one, whichever is more, and its overhead."""
    assert pod.spec is not None
    together: dict[str, Decimal] = {}
    largest: dict[str, Decimal] = {}
    for container in pod.spec.initContainers or ():
        # One that is restarted always stays beside the others.
        stays = container.restartPolicy == "Always"
        for name, amount in _requests(container):
            if stays:
                together[name] = together.get(name, Decimal(0)) + amount
            else:
                largest[name] = max(largest.get(name, Decimal(0)), amount)
    for container in pod.spec.containers:
        for name, amount in _requests(container):
            together[name] = together.get(name, Decimal(0)) + amount
    overhead = pod.spec.overhead or {}
    return {
        name: max(together.get(name, Decimal(0)), largest.get(name, Decimal(0)))
        + _number(overhead.get(name, "0"))
        for name in {*together, *largest, *overhead}
    }


def _requests(container: Container) -> Iterator[tuple[str, Decimal]]:
    resources = container.resources
    for name, amount in ((resources and resources.requests) or {}).items():
        yield name, _number(amount)


def _number(quantity: str) -> Decimal:
    number = parse_quantity(quantity)
    assert number is not None
    return number


def _quantity(name: str, amount: Decimal) -> str:
    return f"{int(amount * 1000)}m" if name == "cpu" else str(int(amount))
