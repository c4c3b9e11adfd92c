"""What is due for a campaign of pairs on Kubernetes: each pair has a Job for each of its ends.

The Job of the end that takes its node first (see hostbench.fleet.pair.end) is made when both nodes
are in no other pair. The other one is made when the pod of the first has an address, at which it
calls. So two campaigns never keep half a pair each, and pods need no rights to find one another.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from lightkube import Client
from lightkube.resources.batch_v1 import Job
from lightkube.types import CascadeType

from hostbench.fleet.campaign import NodeState, NodeStatus, Pair
from hostbench.fleet.kubernetes.facts import Facts
from hostbench.fleet.kubernetes.nodes import free_resources
from hostbench.fleet.kubernetes.objects import PairEnd, job_name, node_job, reason_patch
from hostbench.fleet.kubernetes.progress import Progress, begin_job, patch_job
from hostbench.fleet.kubernetes.states import (
    EndJobs,
    ends_by_pair,
    jobs_by_unit,
    node_hindrances,
    pods_by_job,
    statuses,
)


@dataclass(frozen=True)
class _Due:
    """A Job that is to be made."""

    end: PairEnd
    attempt: int
    suspended: bool


class PairProgress(Progress):
    """See Progress."""

    def advance(self, facts: Facts, found: Sequence[NodeStatus] | None = None) -> None:
        """Begin pairs whose turn it is, make the second ends of those whose first one runs, end
        what is left of pairs that have ended, keep results, set and remove taints."""
        if found is None:
            found = statuses(self._campaign, self._options, facts, cancelled=False)
        states = {status.node: status for status in found}
        self._made.difference_update(facts.jobs)
        ends = ends_by_pair(facts.jobs.values())
        self._begin_pairs(facts, ends, states)
        self._make_second_ends(facts, ends, states)
        self._end_rest(ends, states)
        attempts = jobs_by_unit(facts.jobs.values())
        self._keep({unit: jobs[0] for unit, jobs in attempts.items()}, states)
        self._taint(facts, self._wanted(ends, states))

    def make(self, facts: Facts, nodes: Sequence[str], *, again: bool = False) -> None:
        """Make the first Jobs of pairs that are measured again; they wait for their turn."""
        assert again, "others are made at their turn"
        ends = ends_by_pair(facts.jobs.values())
        due = []
        for unit in nodes:
            pair = self._campaign.pair(unit)
            assert pair is not None, unit
            attempt = ends[unit].attempt + 1 if unit in ends else 1
            due.append(_Due(PairEnd(pair, pair.nodes[0]), attempt, suspended=True))
        self._make_jobs(facts, due)

    def _begin_pairs(
        self, facts: Facts, ends: dict[str, EndJobs], states: dict[str, NodeStatus]
    ) -> None:
        """Begin pairs in their order, as long as their nodes are in no other one. Those with a node
        that takes no pods now come when no other is left: each would keep its other node for its
        whole time limit."""
        left = [pair for pair in self._campaign.pairs if not states[pair.name].state.ended]
        begun = [pair for pair in left if self._has_begun(pair, ends)]
        busy = {node for pair in begun for node in pair.nodes}
        waiting = [pair for pair in left if not self._has_begun(pair, ends)]
        takes = self._takes_pods(facts)
        ready = [pair for pair in waiting if all(map(takes, pair.nodes))]
        others = [] if ready or any(all(map(takes, pair.nodes)) for pair in begun) else waiting
        room = len(left) if self._campaign.at_most is None else self._campaign.at_most
        room -= len(begun)
        again: list[str] = []
        due: list[_Due] = []
        for pair in ready or others:
            if room <= 0:
                break
            if busy.isdisjoint(pair.nodes):
                busy.update(pair.nodes)
                room -= 1
                if pair.name in ends:
                    again += [job.name for job in ends[pair.name].jobs.values()]
                else:
                    suspended = self._options.queue is not None
                    due.append(_Due(PairEnd(pair, pair.nodes[0]), 1, suspended=suspended))
        self._make_jobs(facts, due)
        self._api.each(again, begin_job)
        self.has_begun |= bool(again)
        self._begun.update(again)

    def _has_begun(self, pair: Pair, ends: dict[str, EndJobs]) -> bool:
        name = job_name(self._campaign.name, PairEnd(pair, pair.nodes[0]).key, 1)
        if pair.name not in ends:
            return name in self._made
        if self._options.queue is not None:
            return True  # Kueue says when.
        jobs = ends[pair.name].jobs.values()
        return any(not job.suspended or job.name in self._begun for job in jobs)

    def _takes_pods(self, facts: Facts) -> Callable[[str], bool]:
        takes = {
            name: not any(node_hindrances(node, self._options))
            for name, node in facts.nodes.items()
        }
        return lambda name: takes.get(name, False)

    def _make_second_ends(
        self, facts: Facts, ends: dict[str, EndJobs], states: dict[str, NodeStatus]
    ) -> None:
        pods = pods_by_job(facts.pods.values())
        due = []
        for pair in self._campaign.pairs:
            last = ends.get(pair.name)
            if last is None or states[pair.name].state.ended or len(last.jobs) > 1:
                continue
            first = last.jobs.get(pair.nodes[0])
            pod = next(iter(pods.get(first.name, ())), None) if first is not None else None
            if pod is not None and pod.phase == "Running" and pod.address:
                end = PairEnd(pair, pair.nodes[1], pod.address)
                due.append(_Due(end, last.attempt, suspended=self._options.queue is not None))
        self._make_jobs(facts, due)

    def _make_jobs(self, facts: Facts, due: Sequence[_Due]) -> None:
        by_name = {job_name(self._campaign.name, one.end.key, one.attempt): one for one in due}
        new = {name: one for name, one in by_name.items() if name not in self._made}
        unknown = {one.end.node for one in new.values()} - self._free.keys()
        if unknown:
            nodes = [facts.nodes[node] for node in unknown if node in facts.nodes]
            # What DaemonSets leave changes rarely, and a node is in many pairs.
            self._free |= free_resources(self._api, self._campaign, nodes)

        machines = {node: known.machine for node, known in facts.nodes.items()}

        def make(client: Client, name: str) -> None:
            one = new[name]
            node = one.end.node
            job = node_job(
                self._campaign, self._options, node, one.attempt, self._free.get(node, {}),
                suspended=one.suspended, end=one.end, machine=machines.get(node),
            )  # fmt: skip
            client.create(job)

        self._api.each(new, make)
        self.has_begun |= bool(new)
        self._made.update(new)
        self._begun.difference_update(new)
        self._kept.difference_update(new)
        self._deleted.difference_update(new)

    def _end_rest(self, ends: dict[str, EndJobs], states: dict[str, NodeStatus]) -> None:
        """Delete the Job of an end that is left alone: it would keep its node. The other one keeps
        the reason."""
        due: list[str] = []
        reasons: dict[str, str] = {}
        for unit, last in ends.items():
            status = states.get(unit)
            if status is None or not status.state.ended:
                continue
            measured = status.state is NodeState.MEASURED
            rest = [
                job.name
                for job in last.jobs.values()
                if not job.ended and (job.is_far or not measured) and job.name not in self._deleted
            ]
            due += rest
            if rest and not measured:
                ended = [job.name for job in last.jobs.values() if job.ended]
                reasons |= dict.fromkeys(ended, status.reason or "")
        self._api.each(
            reasons, lambda client, name: patch_job(client, name, reason_patch(reasons[name]))
        )
        self._api.each(
            due, lambda client, name: client.delete(Job, name, cascade=CascadeType.BACKGROUND)
        )
        self._deleted.update(due)

    def _wanted(self, ends: dict[str, EndJobs], states: dict[str, NodeStatus]) -> dict[str, bool]:
        """Return which nodes are in a pair that has begun and not ended."""
        wanted = dict.fromkeys(self._campaign.nodes, False)
        for pair in self._campaign.pairs:
            if not states[pair.name].state.ended and self._has_begun(pair, ends):
                wanted.update(dict.fromkeys(pair.nodes, True))
        return wanted
