"""The rights that a client of campaigns needs in a cluster, and those that its pods need.

The chart and the page docs/fleet.md take them from here.
"""

from dataclasses import dataclass
from typing import Literal

For = Literal["client", "pod"]


@dataclass(frozen=True)
class Rule:
    """A rule of RBAC. `scope`: of the whole cluster or of the campaign's namespace. `when`: the
    choice that needs it; None: every campaign."""

    scope: Literal["cluster", "namespace"]
    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    names: tuple[str, ...] = ()
    when: str | None = None
    to: For = "client"

    @property
    def policy(self) -> dict[str, list[str]]:
        """The rule as an entry of a Role's or ClusterRole's `rules`."""
        names = {"resourceNames": list(self.names)} if self.names else {}
        return {
            "apiGroups": [self.group],
            "resources": [self.resource],
            "verbs": list(self.verbs),
            **names,
        }


ROLE = (
    Rule(
        "cluster", "", "nodes", ("get", "list", "watch"),
        "which nodes there are, what they have, why one takes no pod",
    ),
    Rule(
        "cluster", "", "namespaces", ("get",),
        "documents of two clusters differ in the UID of kube-system",
        names=("kube-system",),
    ),
    Rule(
        "cluster", "", "pods", ("list",),
        "what DaemonSets leave of a node",
        when="--exclusive taint or requests",
    ),
    Rule(
        "cluster", "", "nodes", ("patch",),
        "sets and removes the campaign's taint, and the label and taint of the gate",
        when="--exclusive taint, fleet qualify",
    ),
    Rule(
        "cluster", "", "nodes/status", ("patch",),
        "sets the condition HostbenchQualified",
        when="fleet qualify",
    ),
    Rule(
        "namespace", "", "configmaps", ("create", "get", "list", "patch", "delete"),
        "what a campaign measures, and where",
    ),
    Rule(
        "namespace", "", "secrets", ("create", "delete"),
        "by what the ends of pairs know one another",
        when="--pairs",
    ),
    Rule(
        "namespace", "batch", "jobs",
        ("create", "list", "watch", "patch", "delete"),
        "one Job a node, two a pair",
    ),
    Rule("namespace", "", "pods", ("list", "watch"), "how far a node is, and its digest"),
    Rule("namespace", "", "pods/log", ("get",), "the documents"),
    Rule("namespace", "", "events", ("list", "watch"), "why a pod is not made or not started"),
    Rule(
        "namespace", "coordination.k8s.io", "leases", ("list", "delete"),
        "removes what a killed pod left",
        when="--lock lease",
    ),
    Rule(
        "namespace", "coordination.k8s.io", "leases", ("create", "get", "update", "delete"),
        "keeps other campaigns off the node meanwhile",
        when="--lock lease",
        to="pod",
    ),
)  # fmt: skip


def needed_by(verb: str, resource: str) -> For:
    """Return who makes such calls: the pods of a campaign if no other does, else the client."""
    callers = {rule.to for rule in ROLE if rule.resource == resource and verb in rule.verbs}
    return "pod" if callers == {"pod"} else "client"


def roles(name: str, to: For = "client") -> list[dict[str, object]]:
    """Return the ClusterRole and the Role of this name with all rules, as objects for kubectl."""
    found: list[dict[str, object]] = []
    for scope, kind in (("cluster", "ClusterRole"), ("namespace", "Role")):
        rules = [rule.policy for rule in ROLE if rule.scope == scope and rule.to == to]
        if rules:
            found.append(
                {
                    "apiVersion": "rbac.authorization.k8s.io/v1",
                    "kind": kind,
                    "metadata": {"name": name},
                    "rules": rules,
                }
            )
    return found
