"""The engine on Kubernetes: a Job a node, or two a pair; objects keep all state of a campaign."""

import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from lightkube import ApiError
from lightkube.resources.batch_v1 import Job
from lightkube.resources.coordination_v1 import Lease
from lightkube.resources.core_v1 import ConfigMap, Namespace, Secret
from lightkube.types import CascadeType, PatchType
from pydantic import ValidationError

from hostbench.base.errors import ResourceError, UsageError, did_you_mean, shown
from hostbench.fleet.campaign import Campaign, NodeState, NodeStatus
from hostbench.fleet.kubernetes.api import CHUNK, Api, delete_seen
from hostbench.fleet.kubernetes.facts import Facts
from hostbench.fleet.kubernetes.nodes import chosen_nodes, labelled_racks
from hostbench.fleet.kubernetes.objects import (
    CAMPAIGN_KEY,
    CAMPAIGN_LABEL,
    CANCELLED_ANNOTATION,
    CONTAINER,
    MANAGED_BY,
    OPTIONS,
    OPTIONS_KEY,
    PodOptions,
    config_map,
    secret_name,
    secret_object,
)
from hostbench.fleet.kubernetes.pair_progress import PairProgress
from hostbench.fleet.kubernetes.progress import Progress, untaint
from hostbench.fleet.kubernetes.states import pods_by_job, statuses
from hostbench.fleet.kubernetes.watches import Watches, facts_now
from hostbench.fleet.node import CAMPAIGN, END, read_document_of_log
from hostbench.fleet.pair.secret import new_secret
from hostbench.model.result import ResultDocument

# Pods of deleted Jobs end within their grace period; those of a dead node when it is given up.
CLEAN_S_MOST = 180.0
CLEAN_PAUSE_S = 5.0
LOG_S_MOST = 5.0
LOG_PAUSE_S = 0.5


class KubernetesEngine:
    """Campaigns in one namespace of a cluster: see Engine.

    `options`: for campaigns that this client begins; others keep those that they were begun with.
    """

    def __init__(self, namespace: str | None, options: PodOptions | None) -> None:
        """Find the cluster. Raise ResourceError."""
        self._api = Api(namespace)
        self._options = options
        self._pods: dict[str, str] = {}

    @property
    def namespace(self) -> str:
        """Where its campaigns are."""
        return self._api.namespace

    def cluster(self) -> str:
        """Return the UID of kube-system, which a cluster has for good."""
        found = self._api.call(lambda client: client.get(Namespace, "kube-system"))
        assert found.metadata is not None
        return str(found.metadata.uid)

    def nodes(self, expression: str | None) -> tuple[str, ...]:
        """See Engine."""
        return chosen_nodes(self._api, expression, self._options or PodOptions(image=""))

    def racks(self, nodes: Collection[str], label: str | None) -> dict[str, str]:
        """See Engine."""
        return labelled_racks(self._api, nodes, label)

    def start(self, campaign: Campaign) -> None:
        """See Engine."""
        name = campaign.name
        if name not in self.campaigns():
            # Another client may be faster, with other options: its campaign is the one there is.
            made = config_map(campaign, self._begin_with())
            self._api.each([made], lambda client, one: client.create(one))
        stored = self._stored(name)
        stored.refuse_other(campaign)
        stored.refuse_cancelled()
        facts = facts_now(self._api, name)
        self._make_secret(stored, facts)
        self._progress(stored).advance(facts)

    def campaigns(self) -> tuple[str, ...]:
        """See Engine."""
        found = self._api.all(
            lambda client: (
                one.metadata.name or ""
                for one in client.list(
                    ConfigMap, chunk_size=CHUNK, labels={**MANAGED_BY, CAMPAIGN_LABEL: None}
                )
                if one.metadata is not None and CAMPAIGN_KEY in (one.data or {})
            )
        )
        return tuple(sorted(found))

    def campaign(self, name: str) -> Campaign:
        """See Engine."""
        return self._stored(name).campaign

    def begun_with(self, name: str) -> Mapping[str, object]:
        """See Engine."""
        return vars(self._stored(name).options)

    def status(self, name: str) -> tuple[NodeStatus, ...]:
        """See Engine."""
        stored = self._stored(name)
        return self._statuses(stored, facts_now(self._api, name))

    def watch(self, name: str) -> Iterator[NodeStatus]:
        """See Engine. Each client that watches also does what is due: begins further nodes, sets
        and removes taints, makes a Job that is missing."""
        stored = self._stored(name)
        shown: dict[str, NodeStatus] = {}
        progress = self._progress(stored)
        before = 0
        with Watches(self._api, name) as watches:
            for facts in watches.facts():
                if not shown and not stored.cancelled:
                    self._make_secret(stored, facts)
                if len(facts.jobs) < before:
                    # Somebody deleted a Job: another client that cancels or cleans, say.
                    stored = self._stored(name)
                before = len(facts.jobs)
                found = self._statuses(stored, facts)
                if not stored.cancelled:
                    progress.advance(facts, found)
                if progress.has_begun:
                    # Another client may have cancelled it meanwhile, without these Jobs.
                    progress.has_begun = False
                    stored = self._stored(name)
                    if stored.cancelled:
                        self._end(stored)
                for status in found:
                    if shown.get(status.node) != status:
                        shown[status.node] = status
                        yield status
                if all(status.state.ended for status in found):
                    return

    def documents(self, name: str, units: Sequence[str]) -> Iterator[ResultDocument]:
        """See Engine. Raise UsageError for a unit whose pod is gone."""
        if not all(unit in self._pods for unit in units):
            self._know_pods(facts_now(self._api, name))
        for unit in units:
            pod = self._pods.get(unit)
            if pod is None:
                raise UsageError(
                    f"the document of {unit} is gone with its pod; measure it again under another "
                    "--name"
                )
            yield read_document_of_log(self._log(pod), f"the log of pod {pod}")

    def retry(self, name: str) -> tuple[str, ...]:
        """See Engine. Nodes that the cluster lost are measured when they are back."""
        stored = self._stored(name)
        facts = facts_now(self._api, name)
        again = [
            status.node
            for status in self._statuses(stored, facts)
            if status.state in {NodeState.FAILED, NodeState.MISSING}
            and facts.nodes.keys() >= set(_nodes_of(stored.campaign, status.node))
        ]
        if stored.cancelled:
            self._mark_cancelled(name, None)
        self._make_secret(stored, facts)
        progress = self._progress(stored)
        progress.make(facts, again, again=True)
        progress.advance(facts_now(self._api, name))
        return tuple(again)

    def cancel(self, name: str) -> None:
        """See Engine."""
        stored = self._stored(name)
        self._mark_cancelled(name, "true")
        self._end(stored)

    def _end(self, stored: "_Stored") -> None:
        """Delete the Jobs of what had not ended when it was cancelled, and take the taints away."""
        name = stored.campaign.name
        facts = facts_now(self._api, name)
        found = statuses(stored.campaign, stored.options, facts, cancelled=False)
        ended = {one.node for one in found if one.state.ended}
        jobs = [job.name for job in facts.jobs.values() if not job.ended and job.unit not in ended]
        self._delete_jobs(jobs)
        untaint(self._api, name, facts)

    def clean(self, name: str) -> None:
        """See Engine. Raise UsageError if there is nothing of that name."""
        facts = facts_now(self._api, name)
        lock, has_secret = "lease", True
        try:
            stored = self._stored(name)
            lock, has_secret = stored.options.lock, bool(stored.campaign.pairs)
            self._mark_cancelled(name, "true")  # So that no other client goes on meanwhile.
        except UsageError:
            if not facts.jobs:
                raise
        facts = facts_now(self._api, name)
        self._delete_jobs(job.name for job in facts.jobs.values())
        untaint(self._api, name, facts)
        self._wait_for_pods(name)
        if lock == "lease":
            self._delete_leases(name)
        if has_secret:
            self._api.each([secret_name(name)], lambda client, one: client.delete(Secret, one))
        self._api.each([name], lambda client, one: client.delete(ConfigMap, one))

    def _progress(self, stored: "_Stored") -> Progress:
        kind = PairProgress if stored.campaign.pairs else Progress
        return kind(self._api, stored.campaign, stored.options)

    def _make_secret(self, stored: "_Stored", facts: Facts) -> None:
        """Make the Secret of a campaign of pairs, unless it has begun. One that is there stays."""
        if stored.campaign.pairs and not facts.jobs:
            made = secret_object(stored.campaign.name, new_secret())
            self._api.each([made], lambda client, one: client.create(one))

    def _delete_leases(self, name: str) -> None:
        """Delete what pods left that were killed."""
        leases = self._api.all(
            lambda client: iter(client.list(Lease, chunk_size=CHUNK, labels={CAMPAIGN_LABEL: name}))
        )
        # One that another campaign has taken since is that one's.
        self._api.each(leases, delete_seen)

    def _wait_for_pods(self, name: str) -> None:
        deadline_s = time.monotonic() + CLEAN_S_MOST
        with Watches(self._api, name) as watches:
            for facts in watches.facts(CLEAN_PAUSE_S):
                if not facts.pods and not facts.jobs:
                    return
                if time.monotonic() > deadline_s:
                    raise ResourceError(
                        f"campaign {name}: {len(facts.pods)} pods have not ended after "
                        f"{CLEAN_S_MOST:.0f} s, such as {next(iter(facts.pods), '')}; call "
                        "hostbench fleet clean again when their nodes answer"
                    )

    def _begin_with(self) -> PodOptions:
        if self._options is None:
            raise UsageError("--image is missing: the image that the nodes of a campaign run")
        return self._options

    def _stored(self, name: str) -> "_Stored":
        try:
            found = self._api.call(lambda client: client.get(ConfigMap, name))
        except ApiError:
            raise self._unknown(name) from None
        return _Stored(name, found)

    def _unknown(self, name: str) -> UsageError:
        return UsageError(
            f"there is no campaign {shown(name)} in namespace {self._api.namespace}; "
            f"{did_you_mean(name, self.campaigns())}hostbench fleet list shows all"
        )

    def _statuses(self, stored: "_Stored", facts: Facts) -> tuple[NodeStatus, ...]:
        self._know_pods(facts)
        return statuses(stored.campaign, stored.options, facts, cancelled=stored.cancelled)

    def _know_pods(self, facts: Facts) -> None:
        """Remember the pods that have a document."""
        pods = pods_by_job(facts.pods.values())
        for job in sorted(facts.jobs.values(), key=lambda job: job.attempt):
            if not job.is_far:
                for pod in pods.get(job.name, [])[:1]:
                    self._pods[job.unit] = pod.name

    def _log(self, pod: str) -> list[str]:
        """Return the lines of a pod's log. On a busy node a pod may have ended before its runtime
        has written the last lines: wait for them."""
        until_s = time.monotonic() + LOG_S_MOST
        while True:
            try:
                lines = self._api.all(lambda client: client.log(pod, container=CONTAINER))
            except ApiError as error:
                raise UsageError(f"the log of pod {pod} is gone: {error.status.message}") from None
            if any(line.rstrip() == END for line in lines) or time.monotonic() >= until_s:
                return lines
            time.sleep(LOG_PAUSE_S)

    def _mark_cancelled(self, name: str, value: str | None) -> None:
        patch = {"metadata": {"annotations": {CANCELLED_ANNOTATION: value}}}
        try:
            self._api.call(
                lambda client: client.patch(ConfigMap, name, patch, patch_type=PatchType.MERGE)
            )
        except ApiError:  # Another client removed it meanwhile.
            raise self._unknown(name) from None

    def _delete_jobs(self, names: Iterable[str]) -> None:
        self._api.each(
            names, lambda client, name: client.delete(Job, name, cascade=CascadeType.BACKGROUND)
        )


def _nodes_of(campaign: Campaign, unit: str) -> tuple[str, ...]:
    pair = campaign.pair(unit)
    return (unit,) if pair is None else pair.nodes


class _Stored:
    """What the ConfigMap of a campaign keeps."""

    def __init__(self, name: str, found: ConfigMap) -> None:
        data = found.data or {}
        try:
            self.campaign = CAMPAIGN.validate_json(data.get(CAMPAIGN_KEY, ""))
            self.options = OPTIONS.validate_json(data.get(OPTIONS_KEY, ""))
        except ValidationError:
            raise UsageError(
                f"ConfigMap {name} is no campaign of this hostbench version; use the version that "
                "made it, or choose another --name"
            ) from None
        notes = (found.metadata and found.metadata.annotations) or {}
        self.cancelled = CANCELLED_ANNOTATION in notes

    def refuse_other(self, campaign: Campaign) -> None:
        """Raise UsageError if the campaign has other options."""
        if self.campaign != campaign:
            raise UsageError(
                f"campaign {campaign.name} was begun with other options; continue it with "
                f"hostbench fleet run --name {campaign.name} alone, or choose another --name"
            )

    def refuse_cancelled(self) -> None:
        """Raise UsageError if the campaign was cancelled."""
        if self.cancelled:
            raise UsageError(
                f"campaign {self.campaign.name} was cancelled; hostbench fleet retry "
                f"{self.campaign.name} measures the rest"
            )
