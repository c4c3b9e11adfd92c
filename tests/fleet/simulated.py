"""What pods of campaigns do on simulated nodes, by the name of the node: a real policy of the API
server gives each pod the annotations that pod-complete.yaml acts on.

A node with `fails` in its name ends with a reason, one with `runs` never ends; all others are
measured at once. The far end of a pair never ends by itself, and the near end takes longer than one
that fails.
"""

import contextlib
import json
from collections.abc import Mapping

from lightkube import ApiError
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Namespace, ServiceAccount

from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL, NODE_ANNOTATION, PAIR_ANNOTATION
from hostbench.host.inventory import boot_hash
from tests.fleet.cluster import DURATION, EXIT_CODE, MESSAGE, SYSTEM, Cluster
from tests.fleet.policy import change_pods

PAIR_DURATION = "3s"
REASON = "cannot write results: no space left"
_NODE = f"object.metadata.annotations['{NODE_ANNOTATION}']"
_CAMPAIGN = f"object.metadata.labels['{CAMPAIGN_LABEL}']"
_PAIR = f"object.metadata.annotations['{PAIR_ANNOTATION}']"
_IS_PAIR = f"'{PAIR_ANNOTATION}' in object.metadata.annotations"
# What tells the digest of a pair from that of a node.
_OF_PAIR = (
    f"""({_IS_PAIR} ? ',"far_node":"' + {_PAIR}.split('+')[1] + '","round":' + """
    f"""{_PAIR}.split('-')[0] : '')"""
)
_SYSTEM = json.dumps({"kernel": SYSTEM.kernelVersion, "boot": boot_hash(SYSTEM.bootID)})
_DIGEST = (
    """'{"job":"20261126T120000Z-small-0001","digest":"sha256:' + NODE + '","exit_code":0,'"""
    """ + '"verdicts":{"clean":1},"member":{"campaign":"' + CAMPAIGN + '","engine":"kubernetes",'"""
    """ + '"cluster":"uid","node":"' + NODE + '","lock":"lease"' + OF_PAIR + '},"system":'"""
    f" + '{_SYSTEM}}}'"
).replace("NODE", _NODE).replace("CAMPAIGN", _CAMPAIGN).replace("OF_PAIR", _OF_PAIR)  # fmt: skip


def _ends(code: int, message: str, duration: str) -> str:
    return f"{{'{EXIT_CODE}': '{code}', '{MESSAGE}': {message}, '{DURATION}': '{duration}'}}"


def simulate(cluster: Cluster, duration: str = "500ms") -> None:
    """Let pods of campaigns behave like this from now on."""
    never = f"{_NODE}.contains('runs') || ({_IS_PAIR} && {_PAIR}.endsWith('+' + {_NODE}))"
    annotations = (
        f"{_NODE}.contains('fails') ? {_ends(7, repr(REASON), duration)} : "
        f"{never} ? {{'simulated.hostbench.dev/runs': 'true'}} : "
        f"{_IS_PAIR} ? {_ends(0, _DIGEST, PAIR_DURATION)} : {_ends(0, _DIGEST, duration)}"
    )
    change_pods(
        cluster,
        "simulated-campaigns",
        f"Object{{metadata: Object.metadata{{annotations: {annotations}}}}}",
        lambda pod: duration in ((pod.metadata and pod.metadata.annotations) or {}).values(),
    )


def add_namespace(cluster: Cluster, name: str, labels: Mapping[str, str] | None = None) -> str:
    """Make a namespace, and wait until pods can be made in it."""
    with contextlib.suppress(ApiError):
        cluster.client.create(Namespace(metadata=ObjectMeta(name=name, labels=dict(labels or {}))))
    cluster.wait_for(ServiceAccount, lambda accounts: "default" in accounts, namespace=name)
    return name
