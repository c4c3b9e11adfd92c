"""Watches: what changes at a campaign's objects, as it changes.

A watch is a list, then changes from there on. When the connection is lost, or the cluster has
forgotten where it was, it begins again with a list.
"""

import asyncio
import contextlib
import queue
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import TracebackType
from typing import Any, Literal, Self

import httpx2
from lightkube import AsyncClient, Client
from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Event, Node, Pod

from hostbench.fleet.kubernetes.api import CHUNK, FIRST_PAUSE_S, Api, Patience, status_of
from hostbench.fleet.kubernetes.facts import (
    Facts,
    event_facts,
    job_facts,
    node_facts,
    pod_facts,
)
from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL

# The server ends a watch after so long.
WATCH_S = 300
# A watch without a change for longer may have lost its connection unnoticed: it begins again.
QUIET_S = WATCH_S + 30.0
# Changes come in bursts, and a status is made of all of them.
BURST_S = 0.2
Kind = Literal["nodes", "jobs", "pods", "warnings"]


@dataclass(frozen=True)
class Followed:
    """Objects of one kind. `facts` returns what is kept of one, by its key; None: nothing."""

    kind: Kind
    resource: Any
    facts: Callable[[Any], tuple[str, Any] | None]
    labels: Mapping[str, str] | None = None
    fields: Mapping[str, str] | None = None

    @property
    def selectors(self) -> dict[str, Any]:
        """The arguments of a list or a watch."""
        return {"labels": self.labels, "fields": self.fields}

    def listed(self, client: Client) -> Iterator[tuple[str, Any] | None]:
        """Yield what is kept of each object that there is."""
        for item in client.list(self.resource, chunk_size=CHUNK, **self.selectors):
            yield self.facts(item)


@dataclass(frozen=True)
class Change:
    """`known` None: the object `key` is gone. `everything`: all that there is of the kind."""

    kind: Kind
    key: str | None = None
    known: Any = None
    everything: Mapping[str, Any] | None = None

    def apply(self, facts: Facts) -> None:
        """Bring the facts up to date."""
        store: dict[str, Any] = getattr(facts, self.kind)
        if self.everything is not None:
            if self.kind != "warnings":  # They expire, and their texts remain true.
                store.clear()
            store.update(self.everything)
        elif self.known is not None:
            store[self.key or ""] = self.known
        elif self.kind != "warnings":
            store.pop(self.key or "", None)


def followed(campaign: str) -> tuple[Followed, ...]:
    """Return what a campaign follows."""

    def named(facts: Callable[[Any], Any]) -> Callable[[Any], tuple[str, Any]]:
        def keyed(item: Any) -> tuple[str, Any]:
            known = facts(item)
            return known.name, known

        return keyed

    def warning(item: Event) -> tuple[str, Any] | None:
        known = event_facts(item, campaign)
        return None if known is None else (known.job, known)

    own = {CAMPAIGN_LABEL: campaign}
    return (
        Followed("nodes", Node, named(node_facts)),
        Followed("jobs", Job, named(job_facts), labels=own),
        Followed("pods", Pod, named(pod_facts), labels=own),
        Followed("warnings", Event, warning, fields={"type": "Warning"}),
    )


def facts_now(api: Api, campaign: str) -> Facts:
    """Return the facts of a campaign now, by one list of each kind."""
    facts = Facts()
    for one in followed(campaign):
        known = api.all(one.listed)
        Change(one.kind, everything=dict(filter(None, known))).apply(facts)
    return facts


class Watches:
    """The watches of a campaign, in a thread of their own; a context that ends them."""

    def __init__(self, api: Api, campaign: str) -> None:
        self._api = api
        self._followed = followed(campaign)
        self._changes: queue.SimpleQueue[Change | Exception] = queue.SimpleQueue()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="watches", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        def cancel() -> None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()

        with contextlib.suppress(RuntimeError):  # It has ended by itself.
            self._loop.call_soon_threadsafe(cancel)
        self._thread.join()

    def facts(self, at_least_every_s: float | None = None) -> Iterator[Facts]:
        """Yield the same facts whenever they have changed, at first when all lists are there.
        Raise HostbenchError."""
        facts, missing = Facts(), {one.kind for one in self._followed}
        while True:
            for change in self._burst(at_least_every_s):
                if isinstance(change, Exception):
                    raise change
                change.apply(facts)
                missing.discard(change.kind)
            if not missing:
                yield facts

    def _burst(self, timeout_s: float | None) -> Iterator[Change | Exception]:
        with contextlib.suppress(queue.Empty):
            yield self._changes.get(timeout=timeout_s)
            time.sleep(BURST_S)
            while True:
                yield self._changes.get_nowait()

    def _run(self) -> None:
        with contextlib.closing(self._loop), contextlib.suppress(asyncio.CancelledError):
            self._loop.run_until_complete(self._follow_all())

    async def _follow_all(self) -> None:
        client = AsyncClient(self._api.config, namespace=self._api.namespace)
        try:
            async with asyncio.TaskGroup() as group:
                for one in self._followed:
                    group.create_task(self._follow(client, one))
        except ExceptionGroup as errors:
            self._changes.put(errors.exceptions[0])
        finally:
            await client.close()

    async def _follow(self, client: AsyncClient, one: Followed) -> None:
        patience = Patience(answered=True)
        while True:
            try:
                found = client.list(one.resource, chunk_size=CHUNK, **one.selectors)
                known = dict(filter(None, [one.facts(item) async for item in found]))
                self._changes.put(Change(one.kind, everything=known))
                patience.reset()
                await self._changes_after(client, one, found.resourceVersion)
            except TimeoutError:
                continue
            except httpx2.HTTPError as error:
                gone = status_of(error) == HTTPStatus.GONE
                await asyncio.sleep(
                    FIRST_PAUSE_S if gone else patience.pause_s(error, self._api.config)
                )

    async def _changes_after(self, client: AsyncClient, one: Followed, version: str) -> None:
        watch = client.watch(
            one.resource, resource_version=version, server_timeout=WATCH_S, **one.selectors
        )
        async with asyncio.timeout(QUIET_S) as limit:
            async for event, item in watch:
                limit.reschedule(self._loop.time() + QUIET_S)
                known = one.facts(item)
                if known is not None:
                    gone = event == "DELETED"
                    self._changes.put(Change(one.kind, known[0], None if gone else known[1]))
