"""The lock of a node in a namespace that forbids hostPath: a Lease object that a pod holds while it
measures. It keeps out the pods of other campaigns in the namespace, and nothing else.
"""

import contextlib
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import httpx2
from lightkube import ApiError
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease

from hostbench.base.errors import HostbenchError, ResourceError
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.fleet.kubernetes.api import Api
from hostbench.fleet.kubernetes.objects import NODE_ANNOTATION, labels, node_hash

# A lease that was not renewed for so long is another one's to take. Only its holder's renewals
# count, not the times in it: clocks of nodes differ.
LEASE_S = 30.0
RENEW_S = 10.0
LOOK_S = 5.0


@contextlib.contextmanager
def held_lease(
    campaign: str, node: str, interrupt: Interrupt, say: Callable[[str], None]
) -> Iterator[None]:
    """Hold the node's lease within the context; wait for it as long as the pod may live.

    Raise HostbenchError without the rights, or Interrupted. A holder that cannot renew its lease is
    interrupted, as another one may have it then, and gets a ResourceError.
    """
    lease = _NodeLease(campaign, node)
    lease.take(interrupt, say)
    ended = threading.Event()
    renewal = threading.Thread(target=lease.renew_until, args=(ended, interrupt), daemon=True)
    renewal.start()
    try:
        yield
    except Interrupted:
        if lease.lost:
            raise ResourceError(
                f"the Lease of node {node} could not be renewed, so another campaign may have the "
                "node; hostbench fleet retry measures it again"
            ) from None
        raise
    finally:
        ended.set()
        renewal.join()
        lease.release()


class _NodeLease:
    def __init__(self, campaign: str, node: str) -> None:
        self._api = Api(None)
        self._holder = f"{campaign}/{socket.gethostname()}/{secrets.token_hex(4)}"
        self._name = f"hostbench-{node_hash(node)}"
        self._campaign, self._node = campaign, node
        self.lost = False

    def take(self, interrupt: Interrupt, say: Callable[[str], None]) -> None:
        """Take the lease as soon as it is free."""
        seen, since_s = None, time.monotonic()
        while True:
            held = self._taken_or_held()
            if held is None:
                return
            assert held.metadata is not None
            if held.metadata.resourceVersion != seen:
                if seen is None:
                    say(f"waiting for {held.spec and held.spec.holderIdentity}, which has the node")
                seen, since_s = held.metadata.resourceVersion, time.monotonic()
            elif time.monotonic() - since_s > LEASE_S and self._replaced(held):
                return
            interrupt.wait(LOOK_S)

    def _taken_or_held(self) -> Lease | None:
        """Make the lease; return the one that is there."""
        try:
            self._api.call(lambda client: client.create(self._lease(None)))
        except ApiError:
            # Deleted in between: the next look makes it.
            with contextlib.suppress(ApiError):
                held = self._api.call(lambda client: client.get(Lease, self._name))
                return None if held.spec and held.spec.holderIdentity == self._holder else held
            return self._taken_or_held()
        return None

    def _replaced(self, held: Lease | None) -> bool:
        """Write the lease over one that was seen; return False if another pod was faster."""
        version = held.metadata.resourceVersion if held is not None and held.metadata else None
        try:
            self._api.call(lambda client: client.replace(self._lease(version)))
        except ApiError:
            return False
        return True

    def _lease(self, version: str | None) -> Lease:
        now = datetime.now(UTC)
        return Lease(
            metadata=ObjectMeta(
                name=self._name,
                labels=labels(self._campaign),
                annotations={NODE_ANNOTATION: self._node},
                resourceVersion=version,
            ),
            spec=LeaseSpec(
                holderIdentity=self._holder,
                leaseDurationSeconds=int(LEASE_S),
                acquireTime=now,
                renewTime=now,
            ),
        )

    def renew_until(self, ended: threading.Event, interrupt: Interrupt) -> None:
        """Renew the lease until the event; interrupt the run when that fails for too long."""
        renewed_s = time.monotonic()
        while not ended.wait(RENEW_S):
            began_s = time.monotonic()
            if self._renew():
                renewed_s = began_s
            elif self.lost or time.monotonic() - renewed_s > LEASE_S - RENEW_S:
                self.lost = True
                interrupt.trip()
                return

    def _renew(self) -> bool:
        try:
            held = self._api.client.get(Lease, self._name)
            if held.spec is None or held.spec.holderIdentity != self._holder:
                self.lost = True
                return False
            assert held.metadata is not None
            self._api.client.replace(self._lease(held.metadata.resourceVersion))
        except httpx2.HTTPError:
            return False
        return True

    def release(self) -> None:
        """Delete the lease, unless it was lost."""
        if not self.lost:
            with contextlib.suppress(ApiError, HostbenchError):
                self._api.call(lambda client: client.delete(Lease, self._name))
