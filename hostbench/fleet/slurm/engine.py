"""The engine on Slurm: one job a node, or one job of two nodes a pair. How far a campaign is, Slurm
and the campaign's directory know.

Jobs, not tasks of one array: Slurm's schedulers pass over all tasks of an array once one of them
cannot begin, so a node that is down would keep all others waiting.
"""

import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from hostbench.base.errors import HostbenchError, UsageError, did_you_mean, listing, shown
from hostbench.base.units import plural
from hostbench.fleet.campaign import NAME, Campaign, Digest, Exclusive, NodeState, NodeStatus
from hostbench.fleet.slurm.cluster import (
    ClusterNode,
    Task,
    accounted,
    chosen_nodes,
    leaf_switches,
    node_table,
    setting,
    tasks_named,
)
from hostbench.fleet.slurm.commands import run
from hostbench.fleet.slurm.directory import CampaignDirectory, Submission, new_submission
from hostbench.fleet.slurm.scripts import (
    CAMPAIGN_FILE,
    SlurmOptions,
    sbatch_arguments,
    script,
)
from hostbench.fleet.slurm.states import ENDED, UNSUBMITTED, why
from hostbench.fleet.slurm.turns import give_turns
from hostbench.model.result import ResultDocument

# Slurm's daemon has other users: one question for a whole campaign, more seldom while nothing
# happens.
LOOK_S_LEAST, LOOK_S_MOST = 1.0, 15.0
# How long `clean` waits for jobs to end: Slurm's KillWait is 30 s by default.
CLEAN_WAIT_S = 90.0


class SlurmEngine:
    """Runs campaigns with sbatch, squeue, scontrol, scancel and sinfo; asks sacct about jobs that
    Slurm's daemon has forgotten, where the cluster keeps accounts."""

    def __init__(self, shared: Path, options: SlurmOptions | None = None) -> None:
        """`shared`: the directory of all campaigns. Raise UsageError if there is none."""
        if not (shared.is_dir() and os.access(shared, os.W_OK)):
            what = "cannot be written" if shared.is_dir() else "is no directory"
            raise UsageError(
                f"{shared} {what}; name a directory that this machine and all nodes share"
            )
        self._shared = shared.absolute()
        self._options = options or SlurmOptions()
        self._cluster: str | None = None

    # ---- the cluster ----

    def cluster(self) -> str:
        """Return Slurm's ClusterName."""
        if self._cluster is None:
            self._cluster = setting("ClusterName")
        return self._cluster

    def nodes(self, expression: str | None) -> tuple[str, ...]:
        """Return the nodes of a list such as `node[1-4],gpu7`; None: all of the partition. Raise
        UsageError for a node or partition that does not exist."""
        return chosen_nodes(expression, self._options.partition)

    def racks(self, nodes: Collection[str], label: str | None) -> dict[str, str]:
        """Return the leaf switch of each node, by Slurm's topology. Raise UsageError for a label:
        nodes of Slurm have none."""
        if label is not None:
            raise UsageError(
                f"--rack-label {shown(label)} is for Kubernetes; Slurm's racks are the leaf "
                "switches that scontrol show topology lists: leave it out, or name racks with "
                "--rack"
            )
        switches = leaf_switches()
        return {node: switches[node] for node in nodes if node in switches}

    # ---- campaigns ----

    def campaigns(self) -> tuple[str, ...]:
        """Return the names of the campaigns in the shared directory."""
        found = self._shared.glob(f"*/{CAMPAIGN_FILE}")
        return tuple(sorted(path.parent.name for path in found))

    def campaign(self, name: str) -> Campaign:
        """Return what a campaign measures. Raise UsageError if there is none of that name, or
        if it is of another cluster."""
        return self._opened(name)[1]

    def begun_with(self, name: str) -> Mapping[str, object]:
        """Return how the jobs of a campaign are submitted, by the names in EngineOptions."""
        options = self._opened(name)[0].options()
        return {
            "queue": options.partition,
            "priority": options.qos,
            "reservation": options.reservation,
            "account": options.account,
            "program": options.program,
            "post": options.post,
        }

    def _opened(self, name: str) -> tuple[CampaignDirectory, Campaign]:
        directory = CampaignDirectory(self._shared / name)
        if not NAME.fullmatch(name) or not directory.exists:
            known = self.campaigns()
            raise UsageError(
                f"there is no campaign {shown(name)} in {self._shared}; "
                f"{did_you_mean(name, known)}it has {listing(known)}"
            )
        found = directory.campaign()
        if found.cluster != self.cluster():
            raise UsageError(
                f"campaign {name} is of the Slurm cluster {shown(found.cluster)}, and this one is "
                f"{shown(self.cluster())}; call hostbench where that cluster's sbatch is"
            )
        return directory, found

    def start(self, campaign: Campaign) -> None:
        """Submit a campaign, or go on with what a killed client left. Raise UsageError for another
        campaign of the same name."""
        if campaign.exclusive is Exclusive.TAINT:
            raise UsageError(
                "--exclusive taint: Slurm has no taints; give requests (sbatch --exclusive) or none"
            )
        if campaign.cluster != self.cluster():
            raise UsageError(
                f"campaign {campaign.name} is of the cluster {shown(campaign.cluster)}, and this "
                f"one is {shown(self.cluster())}"
            )
        directory = CampaignDirectory(self._shared / campaign.name)
        directory.make()
        with directory.alone():
            if directory.exists:
                if self.campaign(campaign.name) != campaign:
                    raise UsageError(
                        f"--name {campaign.name}: there is another campaign of this name; "
                        f"give another one, or remove it with hostbench fleet clean {campaign.name}"
                    )
            else:
                directory.store(campaign, self._options)
            try:
                self._go_on(directory, campaign)
            except UsageError:
                # Slurm refused the first: the same name may be used with other options.
                if not _active(directory):
                    directory.remove()
                raise

    def _go_on(self, directory: CampaignDirectory, campaign: Campaign) -> tuple[str, ...]:
        """Submit what is planned and not submitted yet, and give turns; return its units."""
        if not directory.submissions():
            directory.plan(new_submission(1, campaign.units))
        units: list[str] = []
        for submission in directory.submissions():
            if not submission.jobs:
                self._submit(directory, campaign, submission)
                units += submission.units
        self._look(directory, campaign)
        return tuple(units)

    def _submit(
        self, directory: CampaignDirectory, campaign: Campaign, submission: Submission
    ) -> None:
        name = submission.job_name(campaign.name)
        # Of a client that was killed in here.
        jobs = {task.unit: task.job for task in tasks_named([name])}
        for unit in submission.units:
            # One whose job has ended, and which Slurm forgot since, left a message.
            if unit in jobs or directory.message(unit) is not None:
                continue
            try:
                jobs[unit] = self._sbatch(directory, campaign, name, unit)
            except UsageError as error:
                # The first one's error is that of all; a later one is that of a node that was
                # removed from the cluster meanwhile.
                if not jobs:
                    raise
                directory.remember(NodeStatus(unit, NodeState.MISSING, error.message))
        ids = tuple(jobs.get(unit, "") for unit in submission.units)
        directory.plan(replace(submission, jobs=ids))

    def _sbatch(
        self, directory: CampaignDirectory, campaign: Campaign, job_name: str, unit: str
    ) -> str:
        """Submit the job of a unit; return its id."""
        options = directory.options()
        output = run(
            "sbatch",
            *sbatch_arguments(campaign, options, directory.path, job_name, unit),
            stdin=script(campaign, directory.path, options, unit),
            inherited=directory.held,
        )
        return output.strip().partition(";")[0]

    # ---- how far it is ----

    def status(self, name: str) -> tuple[NodeStatus, ...]:
        """Return how far each unit is. An end that it could not report itself is written down,
        since Slurm forgets ended jobs."""
        return self._status(*self._opened(name))[0]

    def _look(self, directory: CampaignDirectory, campaign: Campaign) -> tuple[NodeStatus, ...]:
        """Return the status, after giving turns where units take turns; under the lock."""
        found, tasks = self._status(directory, campaign)
        if campaign.at_most is not None and any(task.is_held for task in tasks):
            give_turns(campaign.at_most, tasks, _nodes_by_unit(campaign))
        return found

    def _status(
        self, directory: CampaignDirectory, campaign: Campaign
    ) -> tuple[tuple[NodeStatus, ...], list[Task]]:
        units = campaign.units
        ended = directory.ends(units)
        open_units = [unit for unit in units if unit not in ended]
        if not open_units:
            return tuple(ended[unit] for unit in units), []
        submissions = directory.submissions()
        tasks = tasks_named(one.job_name(campaign.name) for one in submissions)
        # One may have reported, and Slurm forgotten its job, since its end was looked for.
        ended |= directory.ends(open_units)
        waits = any(task.state == "PENDING" for task in tasks)
        table = node_table() if waits else {}
        nodes = _nodes_by_unit(campaign)
        by_job = {task.job: task for task in tasks}
        jobs: dict[str, str | None] = {}
        for one in submissions:
            jobs |= zip(one.units, one.jobs or [None] * len(one.units), strict=True)
        for unit in open_units:
            if unit in ended:
                continue
            job = jobs.get(unit)
            if job is None:
                ended[unit] = NodeStatus(unit, NodeState.WAITING, UNSUBMITTED)
            elif (task := by_job.get(job)) is not None:
                its = {name: table[name] for name in nodes[unit] if name in table}
                ended[unit] = _described(directory, task, its)
            else:
                ended[unit] = _forgotten(directory, unit, job)
        return tuple(ended[unit] for unit in units), tasks

    def watch(self, name: str) -> Iterator[NodeStatus]:
        """Yield the status of each unit, then each change, until all have ended. Go on with what a
        killed client left."""
        directory, campaign = self._opened(name)
        with directory.alone():
            self._go_on(directory, campaign)
        known: dict[str, NodeStatus] = {}
        pause_s = LOOK_S_LEAST
        while True:
            with directory.alone():
                found = self._look(directory, campaign)
            changes = [one for one in found if known.get(one.node) != one]
            yield from changes
            known |= {one.node: one for one in changes}
            if all(one.state.ended for one in known.values()):
                return
            pause_s = LOOK_S_LEAST if changes else min(pause_s * 1.5, LOOK_S_MOST)
            time.sleep(pause_s)

    def documents(self, name: str, units: Sequence[str]) -> Iterator[ResultDocument]:
        """Yield the documents of units that were measured. Raise UsageError for one that is of
        another campaign, cluster or unit."""
        directory, campaign = self._opened(name)
        word = campaign.unit_word
        for unit in units:
            digest = directory.message(unit)
            if not isinstance(digest, Digest):
                raise UsageError(f"{word} {unit} of campaign {name} is not measured")
            document = directory.results(unit).job(digest.job).load()
            expected = (name, campaign.cluster, unit)
            member = document.member
            found = None if member is None else (member.campaign, member.cluster, member.unit)
            if found != expected:
                raise UsageError(
                    f"the document of {_place(word, expected)} is of {_place(word, found)}; remove "
                    f"{directory.unit(unit)} and measure again with hostbench fleet retry {name}"
                )
            yield document

    # ---- what changes it ----

    def retry(self, name: str) -> tuple[str, ...]:
        """Measure again the units that failed or are missing; return their names."""
        directory, campaign = self._opened(name)
        with directory.alone():
            gone_on = self._go_on(directory, campaign)
            again = tuple(
                one.node
                for one in self._status(directory, campaign)[0]
                if one.state in {NodeState.FAILED, NodeState.MISSING}
            )
            if again:
                for unit in again:
                    directory.forget_end(unit)
                number = directory.submissions()[-1].number + 1
                directory.plan(new_submission(number, again))
                self._go_on(directory, campaign)
            return tuple(dict.fromkeys((*gone_on, *again)))

    def cancel(self, name: str) -> None:
        """End what runs and let nothing more begin. What was measured stays."""
        directory, _ = self._opened(name)
        with directory.alone():
            for submission in directory.submissions():
                job_name = submission.job_name(name)
                tasks = tasks_named([job_name])
                if any(task.state not in ENDED for task in tasks):
                    run("scancel", f"--name={job_name}")
                if not submission.jobs:
                    jobs = {task.unit: task.job for task in tasks}
                    ids = tuple(jobs.get(unit, "") for unit in submission.units)
                    directory.plan(replace(submission, jobs=ids))

    def clean(self, name: str) -> None:
        """Cancel the campaign and remove its directory, documents included."""
        self.cancel(name)
        directory, _ = self._opened(name)
        until_s = time.monotonic() + CLEAN_WAIT_S
        # A job that still ends would write into the directory.
        while active := _active(directory):
            if time.monotonic() > until_s:
                raise HostbenchError(
                    f"{plural(len(active), 'job')} of campaign {name} did not end within "
                    f"{CLEAN_WAIT_S:g} s of scancel, such as {active[0].job}; clean it again later"
                )
            time.sleep(LOOK_S_LEAST)
        directory.remove()


def _active(directory: CampaignDirectory) -> list[Task]:
    """Return the jobs of a campaign that have not ended."""
    tasks = tasks_named(one.job_name(directory.path.name) for one in directory.submissions())
    return [task for task in tasks if task.state not in ENDED]


def _nodes_by_unit(campaign: Campaign) -> dict[str, tuple[str, ...]]:
    if campaign.pairs:
        return {pair.name: pair.nodes for pair in campaign.pairs}
    return {node: (node,) for node in campaign.nodes}


def _described(
    directory: CampaignDirectory, task: Task, nodes: Mapping[str, ClusterNode]
) -> NodeStatus:
    """Return the status of a unit without a document, by its job and its nodes."""
    unit = task.unit
    if task.state == "PENDING":
        return NodeStatus(unit, NodeState.WAITING, why(task.reason, nodes))
    if task.state not in ENDED:
        return NodeStatus(unit, NodeState.RUNNING)
    message = directory.failure(unit)
    reason = ENDED[task.state] + (f" by user {task.by}" if task.by else "")
    if task.state in ("FAILED", "COMPLETED"):
        # hostbench's own message is the whole reason.
        reason = message or f"{reason}{directory.last_line(task.job)}"
    elif message:
        reason = f"{reason} ({message})"
    state = NodeState.FAILED if task.started else NodeState.MISSING
    return directory.remember(NodeStatus(unit, state, reason))


def _forgotten(directory: CampaignDirectory, unit: str, job: str) -> NodeStatus:
    """Return the status of a unit whose job Slurm's daemon does not know any more."""
    if job and (task := accounted(job, unit)) is not None:
        return _described(directory, task, {})
    message = directory.failure(unit)
    reason = (
        f"Slurm has forgotten its job {job} and keeps no accounts"
        if job
        else "the campaign was cancelled before its job was submitted"
    )
    state = NodeState.MISSING if message is None else NodeState.FAILED
    return directory.remember(NodeStatus(unit, state, message or reason))


def _place(word: str, member: tuple[str, str, str] | None) -> str:
    if member is None:
        return "no campaign"
    campaign, cluster, unit = member
    return f"campaign {campaign}, cluster {cluster}, {word} {unit}"
