"""What is due for a campaign on Kubernetes, done by every client that follows it: Jobs that are
missing, Jobs whose turn it is, results that would go with their pods, taints."""

from collections.abc import Mapping, Sequence

from lightkube import Client
from lightkube.resources.batch_v1 import Job
from lightkube.types import PatchType

from hostbench.fleet.campaign import Campaign, Exclusive, NodeState, NodeStatus
from hostbench.fleet.kubernetes.api import Api
from hostbench.fleet.kubernetes.facts import Facts, JobFacts
from hostbench.fleet.kubernetes.nodes import free_resources
from hostbench.fleet.kubernetes.objects import (
    PodOptions,
    campaign_taint,
    job_name,
    node_job,
    result_patch,
)
from hostbench.fleet.kubernetes.states import jobs_by_unit, node_hindrances, statuses
from hostbench.fleet.kubernetes.taints import add_taint, remove_taint
from hostbench.fleet.node import DIGEST

_BEGIN: dict[str, object] = {"spec": {"suspend": False}}


class Progress:
    """Does what is due for a campaign. What was done once is not done again before the watches say
    so: they come later than the calls.

    `has_begun`: Jobs were made or begun since the last time it was set to False.
    """

    def __init__(self, api: Api, campaign: Campaign, options: PodOptions) -> None:
        self._api, self._campaign, self._options = api, campaign, options
        self._made: set[str] = set()
        self._begun: set[str] = set()
        self._kept: set[str] = set()
        self._deleted: set[str] = set()
        self._tainted: dict[str, bool] = {}
        self._free: dict[str, dict[str, str]] = {}
        self.has_begun = False

    def advance(self, facts: Facts, found: Sequence[NodeStatus] | None = None) -> None:
        """Make missing Jobs, begin those whose turn it is, keep results, set and remove taints."""
        if found is None:
            found = statuses(self._campaign, self._options, facts, cancelled=False)
        states = {status.node: status for status in found}
        # Those that the watches have shown may be deleted by somebody, and are then made again.
        self._made.difference_update(job.node for job in facts.jobs.values())
        self.make(facts, [node for node, one in states.items() if one.state is NodeState.WAITING])
        attempts = jobs_by_unit(facts.jobs.values())
        jobs = {node: attempts[node][0] for node in states if node in attempts}
        self._begin(facts, jobs, states)
        self._keep(jobs, states)
        wanted = {
            node: (not job.suspended or job.name in self._begun) and not states[node].state.ended
            for node, job in jobs.items()
        }
        self._taint(facts, wanted)

    def make(self, facts: Facts, nodes: Sequence[str], *, again: bool = False) -> None:
        """Make the Jobs of nodes that have none; `again`: the next one of nodes that have some."""
        attempts = jobs_by_unit(facts.jobs.values())
        due = {
            node: attempts[node][0].attempt + 1 if node in attempts else 1
            for node in nodes
            if node in facts.nodes and node not in self._made and (again or node not in attempts)
        }
        if not due:
            return
        free = free_resources(self._api, self._campaign, [facts.nodes[node] for node in due])
        machines = {node: facts.nodes[node].machine for node in due}
        suspended = self._options.queue is not None or self._campaign.at_most is not None

        def make_one(client: Client, node: str) -> None:
            job = node_job(
                self._campaign,
                self._options,
                node,
                due[node],
                free[node],
                suspended=suspended,
                machine=machines[node],
            )
            client.create(job)

        self._api.each(due, make_one)
        self.has_begun = True
        self._made.update(due)
        # A Job that somebody deleted has its name again, and nothing was done for the new one.
        names = {job_name(self._campaign.name, node, attempt) for node, attempt in due.items()}
        self._begun -= names
        self._kept -= names

    def _begin(
        self, facts: Facts, jobs: Mapping[str, JobFacts], states: Mapping[str, NodeStatus]
    ) -> None:
        """Begin the next Jobs while fewer than `at_most` run. With a queue, Kueue does it. Nodes
        that take no pods now come last: each would hold a turn for its whole time limit."""
        if self._campaign.at_most is None or self._options.queue is not None:
            return
        open_jobs = [
            jobs[node]
            for node in self._campaign.nodes
            if node in jobs and not states[node].state.ended and not jobs[node].ended
        ]
        waiting = [job for job in open_jobs if job.suspended and job.name not in self._begun]
        waiting.sort(key=lambda job: any(node_hindrances(facts.nodes[job.node], self._options)))
        room = self._campaign.at_most - (len(open_jobs) - len(waiting))
        due = [job.name for job in waiting[: max(0, room)]]
        self._api.each(due, begin_job)
        self.has_begun |= bool(due)
        self._begun.update(due)

    def _keep(self, jobs: Mapping[str, JobFacts], states: Mapping[str, NodeStatus]) -> None:
        """Keep digests at the Jobs: pods go with their nodes."""
        due = {
            job.name: result_patch(DIGEST.dump_json(result).decode())
            for node, job in jobs.items()
            if (result := states[node].result) is not None
            and job.result is None
            and job.name not in self._kept
        }
        self._api.each(due, lambda client, name: patch_job(client, name, due[name]))
        self._kept.update(due)

    def _taint(self, facts: Facts, wanted: Mapping[str, bool]) -> None:
        """Taint nodes that are measured now and that no other campaign has; free the others."""
        if self._campaign.exclusive is not Exclusive.TAINT:
            return
        own = campaign_taint(self._campaign.name)
        due: dict[str, bool] = {}
        for name, is_wanted in wanted.items():
            node = facts.nodes.get(name)
            if node is None:
                continue
            free = not any(taint.key == own.key for taint in node.taints)
            if (is_wanted and free) or (not is_wanted and own in node.taints):
                due[name] = is_wanted
        due = {name: wanted for name, wanted in due.items() if self._tainted.get(name) != wanted}

        def put(client: Client, name: str) -> None:
            if due[name]:
                add_taint(client, name, own)
            else:
                remove_taint(client, name, own.key, own.value)

        self._api.each(due, put)
        self._tainted.update(due)


def begin_job(client: Client, name: str) -> None:
    """Begin a Job that waits for its turn."""
    patch_job(client, name, _BEGIN)


def untaint(api: Api, campaign: str, facts: Facts) -> None:
    """Remove a campaign's taint from all nodes."""
    own = campaign_taint(campaign)
    due = [node.name for node in facts.nodes.values() if own in node.taints]
    api.each(due, lambda client, name: remove_taint(client, name, own.key, own.value))


def patch_job(client: Client, name: str, patch: dict[str, object]) -> None:
    """Change a Job."""
    client.patch(Job, name, patch, patch_type=PatchType.STRATEGIC)
