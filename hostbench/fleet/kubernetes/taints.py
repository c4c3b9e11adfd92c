"""Taints of nodes.

A patch replaces all taints of a node. So they are read, changed and put back, on condition that
no other client changed the node meanwhile.
"""

from collections.abc import Callable, Sequence
from http import HTTPStatus

from lightkube import ApiError, Client
from lightkube.models.core_v1 import Taint as StoredTaint
from lightkube.resources.core_v1 import Node
from lightkube.types import PatchType

from hostbench.fleet.kubernetes.objects import Taint

# Others change a node every few seconds at most.
TRIES = 10


def add_taint(client: Client, node: str, taint: Taint) -> None:
    """Give a node a taint, unless it has one of this key. Raise ApiError."""
    added = StoredTaint(key=taint.key, value=taint.value or None, effect=taint.effect)

    def change(taints: Sequence[StoredTaint]) -> list[StoredTaint]:
        there = any(one.key == taint.key for one in taints)
        return [*taints] if there else [*taints, added]

    _change(client, node, change)


def remove_taint(client: Client, node: str, key: str, value: str | None = None) -> None:
    """Take the taints of a key, and of this value (None: any), from a node. Raise ApiError."""

    def change(taints: Sequence[StoredTaint]) -> list[StoredTaint]:
        return [one for one in taints if one.key != key or value not in {None, one.value or ""}]

    _change(client, node, change)


def _change(
    client: Client, name: str, change: Callable[[Sequence[StoredTaint]], list[StoredTaint]]
) -> None:
    for left in reversed(range(TRIES)):
        node = client.get(Node, name)
        assert node.metadata is not None
        before = (node.spec and node.spec.taints) or []
        after = change(before)
        if after == before:
            return
        patch = {
            "metadata": {"resourceVersion": node.metadata.resourceVersion},
            "spec": {"taints": [one.to_dict() for one in after]},
        }
        try:
            client.patch(Node, name, patch, patch_type=PatchType.MERGE)
        except ApiError as error:
            if error.status.code != HTTPStatus.CONFLICT or not left:
                raise
        else:
            return
