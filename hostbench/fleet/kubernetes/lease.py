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
from http import HTTPStatus

import httpx2
from lightkube import ApiError, Client
from lightkube.models.coordination_v1 import LeaseSpec
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.coordination_v1 import Lease

from hostbench.base.errors import ResourceError
from hostbench.base.interrupt import Interrupt, Interrupted
from hostbench.fleet.kubernetes.api import FIRST_PAUSE_S, Api, delete_seen, status_of
from hostbench.fleet.kubernetes.objects import NODE_ANNOTATION, labels, node_hash

# A lease that was not renewed for so long is another one's to take. Only its holder's renewals
# count, not the times in it: clocks of nodes differ.
LEASE_S = 30.0
RENEW_S = 10.0
LOOK_S = 5.0
# A pod has 30 s to end: an answer, and what releasing the lease may take, are well below that.
ANSWER_S = 5.0
RELEASE_S = 10.0


@contextlib.contextmanager
def held_lease(
    campaign: str, node: str, interrupt: Interrupt, say: Callable[[str], None]
) -> Iterator[None]:
    """Hold the node's lease within the context; wait for it as long as the pod may live.

    Raise HostbenchError without the rights, or Interrupted. A holder that cannot renew its lease is
    interrupted, as another one may have it then, and gets a ResourceError. However it ends, the
    lease is deleted; if the API server does not answer for RELEASE_S, it runs out by itself.
    """
    lease = _NodeLease(campaign, node)
    ended = threading.Event()
    renewal = threading.Thread(target=lease.renew_until, args=(ended, interrupt), daemon=True)
    try:
        lease.take(interrupt, say)
        renewal.start()
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
        if renewal.is_alive():
            renewal.join()
        lease.release()


class _NodeLease:
    def __init__(self, campaign: str, node: str) -> None:
        self._api = Api(None, ANSWER_S, is_known=True)  # It has just started this pod.
        self._holder = f"{campaign}/{socket.gethostname()}/{secrets.token_hex(4)}"
        self._name = f"hostbench-{node_hash(node)}"
        self._campaign, self._node = campaign, node
        self.lost = False
        # Whether this pod has the lease, and whether it may have it: a call that makes it the
        # holder has not been answered, or another try of that call was refused.
        self._is_ours, self._is_open = False, False

    def take(self, interrupt: Interrupt, say: Callable[[str], None]) -> None:
        """Take the lease as soon as it is free. Raise Interrupted; `release` is due then, too."""
        seen, since_s = None, time.monotonic()
        while True:
            held = self._taken_or_held(interrupt)
            if held is None:
                return
            assert held.metadata is not None
            if held.metadata.resourceVersion != seen:
                if seen is None:
                    say(f"waiting for {held.spec and held.spec.holderIdentity}, which has the node")
                seen, since_s = held.metadata.resourceVersion, time.monotonic()
            elif time.monotonic() - since_s > LEASE_S and self._replaced(held, interrupt):
                return
            interrupt.wait(LOOK_S)

    def _taken_or_held(self, interrupt: Interrupt) -> Lease | None:
        """Make the lease; return the one that is there, if it is another's."""
        while not self._written(lambda client: client.create(self._lease(None)), interrupt):
            # Deleted in between: the next look makes it.
            with contextlib.suppress(ApiError):
                held = self._api.call(lambda client: client.get(Lease, self._name), interrupt.wait)
                self._is_ours, self._is_open = self._has(held), False
                return None if self._is_ours else held
        return None

    def _replaced(self, held: Lease, interrupt: Interrupt) -> bool:
        """Write the lease over one that was seen; return False if another pod was faster."""
        return self._written(lambda client: client.replace(self._lease(held.metadata)), interrupt)

    def _written(self, write: Callable[[Client], object], interrupt: Interrupt) -> bool:
        """Whether a call made the lease ours. Raise HostbenchError, or Interrupted while the API
        server is waited for."""
        self._is_open = True
        try:
            self._api.call(write, interrupt.wait)
        except ApiError:
            return False
        except ResourceError:  # The rights are missing, say.
            self._is_open = False
            raise
        self._is_ours, self._is_open = True, False
        return True

    def _has(self, held: Lease) -> bool:
        return held.spec is not None and held.spec.holderIdentity == self._holder

    def _lease(self, seen: ObjectMeta | None) -> Lease:
        """Return the lease as this pod holds it. `seen`: of the one to replace, and of no other
        that has come in its place."""
        now = datetime.now(UTC)
        return Lease(
            metadata=ObjectMeta(
                name=self._name,
                labels=labels(self._campaign),
                annotations={NODE_ANNOTATION: self._node},
                uid=None if seen is None else seen.uid,
                resourceVersion=None if seen is None else seen.resourceVersion,
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
            if self._renew(ended):
                renewed_s = began_s
            elif self.lost or time.monotonic() - renewed_s > LEASE_S - RENEW_S:
                self.lost = True
                interrupt.trip()
                return

    def _renew(self, ended: threading.Event) -> bool:
        try:
            held = self._api.client.get(Lease, self._name)
            if not self._has(held):
                self.lost = True
                return False
            if not ended.is_set():
                self._api.client.replace(self._lease(held.metadata))
        except httpx2.HTTPError:
            return False
        return True

    def release(self) -> None:
        """Delete the lease if it is this pod's. An API server that is slow is waited for, but not
        longer than RELEASE_S."""
        until_s = time.monotonic() + RELEASE_S
        while (self._is_ours or self._is_open) and time.monotonic() < until_s:
            try:
                held = self._api.client.get(Lease, self._name)
                if self._has(held):
                    delete_seen(self._api.client, held)
                return
            except httpx2.HTTPError as error:
                if status_of(error) == HTTPStatus.NOT_FOUND and not self._is_open:
                    return
                # Gone meanwhile, changed by our last renewal, still to be made, or no answer.
            time.sleep(FIRST_PAUSE_S)
