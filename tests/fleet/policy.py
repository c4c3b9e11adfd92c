"""Changes that the API server makes to each pod of a campaign, by a real policy of it."""

import json
from collections.abc import Callable

from lightkube.resources.core_v1 import Pod

from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL, CONTAINER, NODE_ANNOTATION
from tests.fleet.cluster import Cluster
from tests.fleet.decoded import decoded

API = "admissionregistration.k8s.io/v1"


def change_pods(
    cluster: Cluster,
    name: str,
    change: str,
    changed: Callable[[Pod], bool],
    namespace: str = "default",
    condition: str = "true",
) -> None:
    """Let pods of campaigns, and of these only those that `condition` holds for, have the fields of
    the object `change` from now on, both in CEL. Return when a pod in `namespace` would be
    `changed`."""
    of_campaign = f"has(object.metadata.labels) && '{CAMPAIGN_LABEL}' in object.metadata.labels"
    policy = {
        "apiVersion": API,
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
                {"name": "of-a-campaign", "expression": f"{of_campaign} && {condition}"}
            ],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "Never",
            "mutations": [
                {
                    "patchType": "ApplyConfiguration",
                    "applyConfiguration": {"expression": change},
                }
            ],
        },
    }
    binding = {
        "apiVersion": API,
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": {"policyName": name},
    }
    for one in (policy, binding):
        cluster.kubectl("apply", "-f", "-", given=json.dumps(one))
    while not changed(_tried(cluster, namespace)):
        pass  # The API server learns of its own policy a moment later.


def _tried(cluster: Cluster, namespace: str) -> Pod:
    """Return the pod that a pod of a campaign would become."""
    pod = decoded(
        Pod,
        {
            "metadata": {
                "name": "tried",
                "namespace": namespace,
                "labels": {CAMPAIGN_LABEL: "c"},
                "annotations": {NODE_ANNOTATION: "n"},
            },
            "spec": {"containers": [{"name": CONTAINER, "image": "none"}]},
        },
    )
    return cluster.client.create(pod, dry_run=True)
