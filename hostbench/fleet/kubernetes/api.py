"""Calls to the API of a cluster: where it is, what its errors mean, and when to try again.

Every call of a campaign may be made twice, so one that was lost is made again.
"""

import contextlib
import re
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from typing import TypeVar

import httpx2
from lightkube import ApiError, Client, KubeConfig
from lightkube.config.kubeconfig import SingleConfig
from lightkube.core.exceptions import ConfigError
from lightkube.resources.coordination_v1 import Lease

from hostbench.base.errors import HostbenchError, ResourceError, UnreachableError, UsageError
from hostbench.fleet.kubernetes.rights import For, needed_by

# How long a cluster that answered before may not answer: an API server that restarts takes seconds.
PATIENCE_S = 120.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.25, 5.0
# How long to wait for an answer: lightkube's own limit.
ANSWER_S = 10.0
# Objects of a list that come in one answer.
CHUNK = 250
CALLS_AT_ONCE = 8
_FORBIDDEN = re.compile(r'User "(.*?)" cannot (\S+) resource "(.*?)"')
_PASSING = frozenset(
    {
        HTTPStatus.TOO_MANY_REQUESTS,
        HTTPStatus.INTERNAL_SERVER_ERROR,
        HTTPStatus.BAD_GATEWAY,
        HTTPStatus.SERVICE_UNAVAILABLE,
        HTTPStatus.GATEWAY_TIMEOUT,
    }
)
# What to do where rights are missing, by who makes the call.
_RIGHTS: Mapping[For, str] = {
    "client": "hostbench fleet rights prints the roles that campaigns need",
    "pod": "hostbench fleet rights --pods prints the role that the account of --service-account "
    "needs",
}
Given = TypeVar("Given")
Result = TypeVar("Result")


def configuration() -> SingleConfig:
    """Return where the cluster is: that of the pod this runs in, else of KUBECONFIG, else of
    ~/.kube/config. Raise ResourceError."""
    try:
        config = KubeConfig.from_env().get()
    except (ConfigError, OSError, ValueError) as error:
        raise ResourceError(
            f"no cluster is configured: {error}; set KUBECONFIG to the file that kubectl uses"
        ) from None
    if config is None:
        raise ResourceError(
            "no cluster is configured: the file of kubectl has no current context; choose one with "
            "kubectl config use-context"
        )
    return config


class Api:
    """A cluster's API, and the namespace of campaigns in it."""

    def __init__(
        self, namespace: str | None, answer_s: float = ANSWER_S, *, is_known: bool = False
    ) -> None:
        """Find the cluster; nothing is called yet. `answer_s`: how long to wait for an answer;
        `is_known`: there is a cluster, so a first call without an answer is repeated, too. Raise
        ResourceError."""
        self.config = configuration()
        try:
            self.client = Client(self.config, namespace, timeout=httpx2.Timeout(answer_s))
        except (ConfigError, OSError, ValueError) as error:
            raise ResourceError(f"the cluster's configuration cannot be used: {error}") from None
        # An engine has no end of its own.
        weakref.finalize(self, self.client.close)
        self.namespace = str(self.client.namespace)
        self._patience = Patience(is_known)

    def call(
        self, what: Callable[[Client], Result], pause: Callable[[float], object] = time.sleep
    ) -> Result:
        """Return what a call returns; repeat it while the API server restarts. `pause` waits for
        the next try, so many seconds.

        Raise HostbenchError, or ApiError for an object that is there already or not there.
        """
        patience = Patience(self._patience.answered)
        while True:
            try:
                result = what(self.client)
            except httpx2.HTTPError as error:
                if status_of(error) in {HTTPStatus.NOT_FOUND, HTTPStatus.CONFLICT}:
                    if namespace_is_missing(error):
                        raise described(error, self.config) from None
                    raise
                pause(patience.pause_s(error, self.config))
            else:
                self._patience.answered = True
                return result

    def each(self, given: Iterable[Given], what: Callable[[Client, Given], object]) -> None:
        """Make a call for each of these, several at a time. Objects that are there already, or not
        there any more, are as they should be."""

        def one(item: Given) -> None:
            with contextlib.suppress(ApiError):
                self.call(lambda client: what(client, item))

        with ThreadPoolExecutor(CALLS_AT_ONCE) as pool:
            # What the first error leaves undone is done by the next call for the campaign.
            waiting = pool.map(one, given)
            try:
                for _ in waiting:
                    pass
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def all(self, what: Callable[[Client], Iterator[Given]]) -> list[Given]:
        """Return everything of a list."""
        return self.call(lambda client: list(what(client)))


class Patience:
    """How long to go on with a cluster that does not answer: not at all before its first answer."""

    def __init__(self, answered: bool = False) -> None:
        self.answered = answered
        self._since_s: float | None = None
        self._pause_s = FIRST_PAUSE_S

    def reset(self) -> None:
        """Note an answer."""
        self.answered, self._since_s, self._pause_s = True, None, FIRST_PAUSE_S

    def pause_s(self, error: httpx2.HTTPError, config: SingleConfig) -> float:
        """Return how long to wait before the next try. Raise HostbenchError when there is none."""
        now_s = time.monotonic()
        self._since_s = now_s if self._since_s is None else self._since_s
        if not self.answered or not passes(error) or now_s - self._since_s > PATIENCE_S:
            raise described(error, config) from None
        pause_s, self._pause_s = self._pause_s, min(2 * self._pause_s, LONGEST_PAUSE_S)
        return pause_s


def delete_seen(client: Client, seen: Lease) -> None:
    """Delete a lease, on condition that it is as it was seen: neither changed since nor another
    one of its name. Raise ApiError if it is not."""
    metadata = seen.metadata
    assert metadata is not None and metadata.name is not None
    # lightkube's own delete() takes no conditions.
    calls = client._client
    request = calls.prepare_request("delete", type(seen), name=metadata.name)
    request.data = {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": metadata.uid, "resourceVersion": metadata.resourceVersion},
    }
    calls.handle_response("delete", calls.send(calls.build_adapter_request(request)), request)


def status_of(error: httpx2.HTTPError) -> int | None:
    """Return the HTTP status of an answer; None: there was none."""
    if isinstance(error, ApiError):
        return error.status.code
    return error.response.status_code if isinstance(error, httpx2.HTTPStatusError) else None


def passes(error: httpx2.HTTPError) -> bool:
    """Whether the same call may succeed a little later."""
    status = status_of(error)
    return status is None or status in _PASSING


def namespace_is_missing(error: httpx2.HTTPError) -> bool:
    """Whether a call failed for the lack of its namespace."""
    return isinstance(error, ApiError) and (error.status.message or "").startswith("namespaces ")


def described(error: httpx2.HTTPError, config: SingleConfig) -> HostbenchError:
    """Return the error of a call as one line for people."""
    server, status = config.cluster.server, status_of(error)
    text = (isinstance(error, ApiError) and error.status.message) or str(error)
    if status is None:
        return UnreachableError(
            f"the cluster at {server} does not answer: {text or type(error).__name__}; is it the "
            "one that kubectl cluster-info shows?"
        )
    if status == HTTPStatus.UNAUTHORIZED:
        return UnreachableError(
            f"the cluster at {server} does not accept the credentials of context "
            f"{config.context_name}; kubectl auth whoami must work first"
        )
    if (lack := _FORBIDDEN.search(text)) is not None:
        user, verb, resource = lack.groups()
        return ResourceError(
            f"{user} may not {verb} {resource}: {text.partition(' is forbidden')[0]} is forbidden; "
            f"{_RIGHTS[needed_by(verb, resource)]}"
        )
    if namespace_is_missing(error):
        return UsageError(
            f"{text}; make it with kubectl create namespace, or name another with --namespace"
        )
    return ResourceError(f"the cluster at {server} refuses: {text}")
