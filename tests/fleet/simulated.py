"""What pods of campaigns do on simulated nodes, by the name of the node: a real policy of the API
server gives each pod the annotations that pod-complete.yaml acts on.

A node with `fails` in its name ends with a reason, one with `runs` never ends; all others are
measured at once.
"""

import contextlib
import json
from collections.abc import Mapping

from lightkube import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, Pod, ServiceAccount

from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL, NODE_ANNOTATION
from tests.fleet.cluster import DURATION, EXIT_CODE, MESSAGE, Cluster
from tests.fleet.decoded import decoded

REASON = "cannot write results: no space left"
_NODE = f"object.metadata.annotations['{NODE_ANNOTATION}']"
_CAMPAIGN = f"object.metadata.labels['{CAMPAIGN_LABEL}']"
_DIGEST = (
    """'{"job":"20261126T120000Z-small-0001","digest":"sha256:' + NODE + '","exit_code":0,'"""
    """ + '"verdicts":{"clean":1},"member":{"campaign":"' + CAMPAIGN + '","engine":"kubernetes",'"""
    """ + '"cluster":"uid","node":"' + NODE + '","lock":"lease"}}'"""
).replace("NODE", _NODE).replace("CAMPAIGN", _CAMPAIGN)  # fmt: skip


def _ends(code: int, message: str, duration: str) -> str:
    return f"{{'{EXIT_CODE}': '{code}', '{MESSAGE}': {message}, '{DURATION}': '{duration}'}}"


def simulate(cluster: Cluster, duration: str = "500ms") -> None:
    """Let pods of campaigns behave like this from now on."""
    annotations = (
        f"{_NODE}.contains('runs') ? {{'simulated.hostbench.dev/runs': 'true'}} : "
        f"{_NODE}.contains('fails') ? {_ends(7, repr(REASON), duration)} : "
        f"{_ends(0, _DIGEST, duration)}"
    )
    name = "simulated-campaigns"
    api = "admissionregistration.k8s.io/v1"
    policy = {
        "apiVersion": api,
        "kind": "MutatingAdmissionPolicy",
        "metadata": {"name": name},
        "spec": {
            "matchConstraints": {
                "resourceRules": [
                    {
                        "apiGroups": [""],
                        "apiVersions": ["v1"],
                        "operations": ["CREATE"],
                        "resources": ["pods"],
                    }
                ]
            },
            "matchConditions": [
                {
                    "name": "of-a-campaign",
                    "expression": "has(object.metadata.labels) && "
                    f"'{CAMPAIGN_LABEL}' in object.metadata.labels",
                }
            ],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {
                        "expression": "Object{metadata: Object.metadata{annotations: "
                        f"{annotations}}}}}"
                    },
                }
            ],
        },
    }
    binding = {
        "apiVersion": api,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    for one in (policy, binding):
        cluster.kubectl("apply", "-f", "-", given=json.dumps(one))
    while duration not in _tried(cluster).values():
        pass  # The API server learns of its own policy a moment later.


def _tried(cluster: Cluster) -> Mapping[str, str]:
    """Return the annotations that a pod of a campaign would get."""
    pod = decoded(
        Pod,
        {
            "metadata": {
                "name": "tried",
                "namespace": "default",
                "labels": {CAMPAIGN_LABEL: "c"},
                "annotations": {NODE_ANNOTATION: "n"},
            },
            "spec": {"containers": [{"name": "one", "image": "none"}]},
        },
    )
    made = cluster.client.create(pod, dry_run=True)
    assert made.metadata is not None
    return made.metadata.annotations or {}


def add_namespace(cluster: Cluster, name: str, labels: Mapping[str, str] | None = None) -> str:
    """Make a namespace, and wait until pods can be made in it."""
    with contextlib.suppress(ApiError):
        cluster.client.create(Namespace(metadata=ObjectMeta(name=name, labels=dict(labels or {}))))
    cluster.wait_for(ServiceAccount, lambda accounts: "default" in accounts, namespace=name)
    return name
