"""Campaigns on Slurm: one job a node.

What a campaign is lies in a directory that all nodes and clients share; how far it is, Slurm knows:

    SHARED/NAME/campaign.json           what was asked for
    SHARED/NAME/slurm.json              how its jobs are submitted
    SHARED/NAME/1.json, 2.json …        its jobs: the first ones and those of each retry
    SHARED/NAME/logs/                   the output of the jobs
    SHARED/NAME/nodes/NODE/message      the Digest of the node's document, or why there is none
    SHARED/NAME/nodes/NODE/end.json     how its job ended, if the node could not report it
    SHARED/NAME/nodes/NODE/JOB/         the document and its journal

Jobs, not tasks of one array: Slurm's schedulers pass over all tasks of an array once one of them
cannot begin, so a node that is down would keep all others waiting.
"""

import contextlib
import fcntl
import math
import os
import re
import secrets
import shlex
import shutil
import subprocess
import time
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hostbench.base.errors import (
    HostbenchError,
    ResourceError,
    UnreachableError,
    UsageError,
    did_you_mean,
    listing,
    shown,
)
from hostbench.base.units import plural
from hostbench.fleet.campaign import (
    NAME,
    Campaign,
    Digest,
    Exclusive,
    NodeState,
    NodeStatus,
    PostTo,
)
from hostbench.fleet.node import CAMPAIGN, read_campaign, read_message
from hostbench.model.result import ResultDocument
from hostbench.results.store import ResultsStore, write_whole

CAMPAIGN_FILE, OPTIONS_FILE, LOCK_FILE = "campaign.json", "slurm.json", "lock"
MESSAGE_FILE, END_FILE = "message", "end.json"
# The least time limit and the resolution of Slurm's.
MINUTE_S = 60
# Slurm's daemon has other users: one question for a whole campaign, more seldom while nothing
# happens.
LOOK_S_LEAST, LOOK_S_MOST = 1.0, 15.0
# How long `clean` waits for jobs to end: Slurm's KillWait is 30 s by default.
CLEAN_WAIT_S = 90.0
COMMAND_S_MOST = 60.0
FIELDS = "%i|%n|%T|%N|%r"
_SUBMISSION = re.compile(r"(\d{1,4})\.json", re.ASCII)

_ENDED = {
    "COMPLETED": "its job ended without a document",
    "FAILED": "its job failed",
    "TIMEOUT": "its job was ended at its time limit",
    "NODE_FAIL": "its node failed",
    "OUT_OF_MEMORY": "its job had too little memory",
    "PREEMPTED": "its job had to make way for one of higher priority",
    "CANCELLED": "its job was cancelled",
    "DEADLINE": "it was not free before the campaign's deadline",
    "BOOT_FAIL": "its node did not boot",
}
UNSUBMITTED = "a client was ended while it submitted; hostbench fleet status --follow goes on"
HELD = "JobHeldUser"
_WAITING = {
    HELD: "as many nodes as --at-most allows have their turn",
    "JobHeldAdmin": "an administrator holds it",
    "Reservation": "its reservation has not begun",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionTimeLimit": "its partition allows less time",
    "BadConstraints": "its node does not have what the job asks for",
}
_SCHEDULER = {
    "None": "Slurm has not considered it yet",
    "Resources": "its node is not free",
    "Priority": "jobs of higher priority are first",
    "ReqNodeNotAvail": "its node is reserved or not free",
}
# sinfo's states of nodes that are in use, and of those that start nothing.
_BUSY = ("alloc", "mix", "comp")
_UNAVAILABLE = ("down", "drain", "fail", "reboot", "unk", "no_respond")


@dataclass(frozen=True)
class SlurmOptions:
    """How the jobs of a campaign are submitted; None: as the cluster does without the option.

    `program` is the command `hostbench` as nodes find it, such as the one of `make install` in a
    directory that they share. `post`: where documents are posted.
    """

    program: str = "hostbench"
    partition: str | None = None
    reservation: str | None = None
    account: str | None = None
    qos: str | None = None
    post: PostTo | None = None

    @property
    def arguments(self) -> list[str]:
        """The options of sbatch."""
        names = ("partition", "reservation", "account", "qos")
        return [f"--{name}={value}" for name in names if (value := getattr(self, name)) is not None]


@dataclass(frozen=True)
class Submission:
    """The jobs of some nodes, all of one name. `token` makes the name new; `jobs`, in the order of
    `nodes`, is empty until all are submitted. A job that never was is an empty text."""

    number: int
    token: str
    nodes: tuple[str, ...]
    jobs: tuple[str, ...] = ()

    def job_name(self, campaign: str) -> str:
        """Return the name of the jobs."""
        return f"hostbench.{campaign}.{self.token}"


@dataclass(frozen=True)
class Task:
    """What Slurm says of a job. `by`: who cancelled it, where accounts say so."""

    job: str
    node: str
    state: str
    reason: str
    started: bool
    by: str | None = None

    @property
    def is_held(self) -> bool:
        """Whether it waits for its turn, see `at_most`."""
        return self.state == "PENDING" and self.reason == HELD


@dataclass(frozen=True)
class ClusterNode:
    """What Slurm says of a node; `partitions` without the mark of the default one."""

    state: str
    reason: str | None
    partitions: frozenset[str]

    @property
    def is_busy(self) -> bool:
        """Whether it runs jobs."""
        return self.state.startswith(_BUSY)

    @property
    def is_free(self) -> bool:
        """Whether it could begin a job now, or once it is powered up."""
        return self.state.startswith("idle") and self.unavailable is None

    @property
    def unavailable(self) -> str | None:
        """Why it starts no jobs, in words; None: it does."""
        if not self.state.startswith(_UNAVAILABLE) and "*" not in self.state:
            return None
        state = self.state.rstrip("*").upper() + (
            ", it does not answer" if "*" in self.state else ""
        )
        return f"its node is {state}" + (f": {self.reason}" if self.reason else "")


# A node that was removed from the cluster.
GONE = ClusterNode("unknown", None, frozenset())

SUBMISSION: TypeAdapter[Submission] = TypeAdapter(Submission)
OPTIONS: TypeAdapter[SlurmOptions] = TypeAdapter(SlurmOptions)
STATUS: TypeAdapter[NodeStatus] = TypeAdapter(NodeStatus)


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
        self._held: tuple[int, ...] = ()

    # ---- the cluster ----

    def cluster(self) -> str:
        """Return Slurm's ClusterName."""
        if self._cluster is None:
            self._cluster = self._setting("ClusterName")
        return self._cluster

    def _setting(self, name: str) -> str:
        text = _run("scontrol", "show", "config")
        found = re.search(rf"^{name}\s*=\s*(\S+)", text, re.MULTILINE)
        return found[1] if found else ""

    def nodes(self, expression: str | None) -> tuple[str, ...]:
        """Return the nodes of a list such as `node[1-4],gpu7`; None: all of the partition. Raise
        UsageError for a node or partition that does not exist."""
        table = _node_table()
        partition = self._options.partition
        default, known = _partitions()
        if partition is not None and partition not in known:
            raise UsageError(
                f"--queue {shown(partition)}: there is no such partition; "
                f"{did_you_mean(partition, known)}give {listing(known)}"
            )
        partition = partition or default
        inside = [name for name, node in table.items() if partition in (None, *node.partitions)]
        if expression is None:
            return tuple(inside)
        names = tuple(dict.fromkeys(_run("scontrol", "show", "hostnames", expression).split()))
        for name in names:
            if name not in table:
                raise UsageError(
                    f"--nodes {shown(expression)}: there is no node {shown(name)}; "
                    f"{did_you_mean(name, table)}sinfo --Node lists {plural(len(table), 'node')}"
                )
            if name not in inside:
                raise UsageError(
                    f"--nodes {shown(expression)}: node {name} is not in partition {partition}; "
                    f"name one of its partitions with --queue: "
                    f"{listing(sorted(table[name].partitions))}"
                )
        return names

    # ---- campaigns ----

    def campaigns(self) -> tuple[str, ...]:
        """Return the names of the campaigns in the shared directory."""
        found = self._shared.glob(f"*/{CAMPAIGN_FILE}")
        return tuple(sorted(path.parent.name for path in found))

    def campaign(self, name: str) -> Campaign:
        """Return what a campaign was asked for. Raise UsageError if there is none of that name, or
        if it is of another cluster."""
        path = self._path(name) / CAMPAIGN_FILE
        if not NAME.fullmatch(name) or not path.exists():
            known = self.campaigns()
            raise UsageError(
                f"there is no campaign {shown(name)} in {self._shared}; "
                f"{did_you_mean(name, known)}it has {listing(known)}"
            )
        found = read_campaign(path)
        if found.cluster != self.cluster():
            raise UsageError(
                f"campaign {name} is of the Slurm cluster {shown(found.cluster)}, and this one is "
                f"{shown(self.cluster())}; call hostbench where that cluster's sbatch is"
            )
        return found

    def _path(self, name: str) -> Path:
        return self._shared / name

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
        path = self._path(campaign.name)
        _make(path / "logs")
        with self._alone(campaign.name):
            if (path / CAMPAIGN_FILE).exists():
                if self.campaign(campaign.name) != campaign:
                    raise UsageError(
                        f"--name {campaign.name}: there is another campaign of this name; "
                        f"give another one, or remove it with hostbench fleet clean {campaign.name}"
                    )
            else:
                _store(path / OPTIONS_FILE, OPTIONS.dump_json(self._options))
                _store(path / CAMPAIGN_FILE, CAMPAIGN.dump_json(campaign))
            try:
                self._go_on(campaign)
            except UsageError:
                # Slurm refused the first: the same name may be used with other options.
                if not self._active(campaign.name):
                    _remove(path)
                raise

    @contextlib.contextmanager
    def _alone(self, name: str) -> Iterator[None]:
        """Keep other clients out while jobs are submitted and released. The lock goes with its
        process, and with an sbatch that outlives it: else the next client would not see that job
        and submit one more."""
        descriptor = os.open(self._path(name) / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._held = (descriptor,)
            yield
        finally:
            self._held = ()
            os.close(descriptor)

    def _submissions(self, name: str) -> list[Submission]:
        """Return the submissions of a campaign, oldest first."""
        found = [
            SUBMISSION.validate_json(path.read_bytes())
            for path in self._path(name).glob("*.json")
            if _SUBMISSION.fullmatch(path.name)
        ]
        return sorted(found, key=lambda one: one.number)

    def _plan(self, name: str, submission: Submission) -> None:
        content = SUBMISSION.dump_json(submission)
        _store(self._path(name) / f"{submission.number}.json", content)

    def _go_on(self, campaign: Campaign) -> tuple[str, ...]:
        """Submit what is planned and not submitted yet, and give turns; return its nodes."""
        if not self._submissions(campaign.name):
            self._plan(campaign.name, _submission(1, campaign.nodes))
        nodes: list[str] = []
        for submission in self._submissions(campaign.name):
            if not submission.jobs:
                self._submit(campaign, submission)
                nodes += submission.nodes
        self._look(campaign)
        return tuple(nodes)

    def _submit(self, campaign: Campaign, submission: Submission) -> None:
        name = submission.job_name(campaign.name)
        # Of a client that was killed in here.
        jobs = {task.node: task.job for task in _tasks([name])}
        for node in submission.nodes:
            # A node whose job has ended, and which Slurm forgot since, left a message.
            if node in jobs or self._message(campaign.name, node) is not None:
                continue
            try:
                jobs[node] = self._sbatch(campaign, name, node)
            except UsageError as error:
                # The first one's error is all nodes'; a later one is that of a node that was
                # removed from the cluster meanwhile.
                if not jobs:
                    raise
                self._remember(campaign.name, NodeStatus(node, NodeState.MISSING, error.message))
        ids = tuple(jobs.get(node, "") for node in submission.nodes)
        self._plan(campaign.name, replace(submission, jobs=ids))

    def _sbatch(self, campaign: Campaign, name: str, node: str) -> str:
        """Submit the job of a node, held if nodes take turns; return its id."""
        path = self._path(campaign.name)
        options = OPTIONS.validate_json((path / OPTIONS_FILE).read_bytes())
        minutes = max(1, math.ceil(campaign.time_limit_s / MINUTE_S))
        # A node may wait for as long as all before it may take.
        rounds = math.ceil(len(campaign.nodes) / (campaign.at_most or len(campaign.nodes)))
        exclusive = campaign.exclusive is not Exclusive.NONE
        output = _run(
            "sbatch",
            "--parsable",
            *(() if campaign.at_most is None else ("--hold",)),
            "--no-requeue",
            f"--job-name={name}",
            # What a Prolog can tell jobs that measure by (docs/slurm/prolog.sh).
            f"--comment=hostbench campaign {campaign.name}",
            "--nodes=1",
            f"--nodelist={node}",
            f"--time={minutes}",
            f"--deadline=now+{(rounds + 1) * minutes * MINUTE_S}",
            *(("--exclusive", "--mem=0") if exclusive else ("--oversubscribe",)),
            *options.arguments,
            f"--chdir={path}",
            f"--output={path}/logs/%j.log",
            "--open-mode=append",
            stdin=_script(path, options.program, options.post),
            inherited=self._held,
        )
        return output.strip().partition(";")[0]

    def _give_turns(self, at_most: int, tasks: Sequence[Task]) -> None:
        """Release held jobs until `at_most` run or may begin. A node that cannot begin gives its
        turn to one that can."""
        table = defaultdict(lambda: GONE, _node_table())
        waiting = [task for task in tasks if task.state == "PENDING"]
        held = [task for task in waiting if task.is_held]
        ready = [task for task in held if table[task.node].is_free]
        released = [task for task in waiting if not task.is_held]
        running = [task for task in tasks if task.state not in (*_ENDED, "PENDING")]
        turns = at_most - len(running) - len(released)
        for task in released:
            if turns < len(ready) and not table[task.node].is_free:
                # It may just have begun, and then it has its turn.
                with contextlib.suppress(HostbenchError):
                    _run("scontrol", "hold", task.job)
                    turns += 1
        # Nodes with other jobs or in a reservation wait in Slurm's queue. Those that start nothing
        # stay held.
        others = [one for one in held if one not in ready and not table[one.node].unavailable]
        chosen = [*ready, *others][: max(turns, 0)]
        if chosen:
            _run("scontrol", "release", ",".join(task.job for task in chosen))

    # ---- how far it is ----

    def status(self, name: str) -> tuple[NodeStatus, ...]:
        """Return how far each node is. An end that the node could not report itself is written
        down, since Slurm forgets ended jobs."""
        return self._status(self.campaign(name))[0]

    def _look(self, campaign: Campaign) -> tuple[NodeStatus, ...]:
        """Return the status, after giving turns where nodes take turns; under the lock."""
        found, tasks = self._status(campaign)
        if campaign.at_most is not None and any(task.is_held for task in tasks):
            self._give_turns(campaign.at_most, tasks)
        return found

    def _status(self, campaign: Campaign) -> tuple[tuple[NodeStatus, ...], list[Task]]:
        name = campaign.name
        ended = self._ends(name, campaign.nodes)
        open_nodes = [node for node in campaign.nodes if node not in ended]
        if not open_nodes:
            return tuple(ended[node] for node in campaign.nodes), []
        submissions = self._submissions(name)
        tasks = _tasks(one.job_name(name) for one in submissions)
        # A node may have reported, and Slurm forgotten its job, since its end was looked for.
        ended |= self._ends(name, open_nodes)
        waits = any(task.state == "PENDING" for task in tasks)
        table = _node_table() if waits else {}
        by_job = {task.job: task for task in tasks}
        jobs: dict[str, str | None] = {}
        for one in submissions:
            jobs |= zip(one.nodes, one.jobs or [None] * len(one.nodes), strict=True)
        for node in open_nodes:
            if node in ended:
                continue
            job = jobs.get(node)
            if job is None:
                ended[node] = NodeStatus(node, NodeState.WAITING, UNSUBMITTED)
            elif (task := by_job.get(job)) is not None:
                ended[node] = self._described(name, task, table.get(node))
            else:
                ended[node] = self._forgotten(name, node, job)
        return tuple(ended[node] for node in campaign.nodes), tasks

    def _ends(self, name: str, nodes: Iterable[str]) -> dict[str, NodeStatus]:
        """Return the nodes that were measured or whose end was written down."""
        found = {}
        for node in nodes:
            message = self._message(name, node)
            if isinstance(message, Digest):
                found[node] = NodeStatus(node, NodeState.MEASURED, None, message)
                continue
            with contextlib.suppress(FileNotFoundError, ValidationError):
                end = (self._node(name, node) / END_FILE).read_bytes()
                found[node] = STATUS.validate_json(end)
        return found

    def _message(self, name: str, node: str) -> Digest | str | None:
        with contextlib.suppress(FileNotFoundError):
            text = (self._node(name, node) / MESSAGE_FILE).read_text(errors="replace")
            return read_message(text)
        return None

    def _node(self, name: str, node: str) -> Path:
        return self._path(name) / "nodes" / node

    def _described(self, name: str, task: Task, cluster_node: ClusterNode | None) -> NodeStatus:
        """Return the status of a node without a document, by its job."""
        node = task.node
        if task.state == "PENDING":
            return NodeStatus(node, NodeState.WAITING, _why(task.reason, cluster_node))
        if task.state not in _ENDED:
            return NodeStatus(node, NodeState.RUNNING)
        said = self._message(name, node)
        reason = _ENDED[task.state] + (f" by user {task.by}" if task.by else "")
        if task.state in ("FAILED", "COMPLETED"):
            # What hostbench said explains it all.
            log = self._path(name) / "logs" / f"{task.job}.log"
            reason = str(said or f"{reason}{self._last_line(log)}")
        elif said:
            reason = f"{reason} ({said})"
        state = NodeState.FAILED if task.started else NodeState.MISSING
        return self._remember(name, NodeStatus(node, state, reason))

    def _last_line(self, log: Path) -> str:
        with contextlib.suppress(OSError, IndexError):
            return f": {log.read_text(errors='replace').strip().splitlines()[-1]}"
        return f", and there is no {log}: do all nodes share that directory?"

    def _forgotten(self, name: str, node: str, job: str) -> NodeStatus:
        """Return the status of a node whose job Slurm's daemon does not know any more."""
        if job and (task := _accounted(job, node)) is not None:
            return self._described(name, task, None)
        said = self._message(name, node)
        reason = (
            f"Slurm has forgotten its job {job} and keeps no accounts"
            if job
            else "the campaign was cancelled before its job was submitted"
        )
        state = NodeState.MISSING if said is None else NodeState.FAILED
        return self._remember(name, NodeStatus(node, state, str(said or reason)))

    def _remember(self, name: str, status: NodeStatus) -> NodeStatus:
        directory = self._node(name, status.node)
        _make(directory)
        _store(directory / END_FILE, STATUS.dump_json(status))
        return status

    def _forget_end(self, name: str, node: str) -> None:
        for file in (MESSAGE_FILE, END_FILE):
            (self._node(name, node) / file).unlink(missing_ok=True)

    def watch(self, name: str) -> Iterator[NodeStatus]:
        """Yield the status of each node, then each change, until all nodes have ended. Go on with
        what a killed client left."""
        campaign = self.campaign(name)
        with self._alone(name):
            self._go_on(campaign)
        known: dict[str, NodeStatus] = {}
        pause_s = LOOK_S_LEAST
        while True:
            with self._alone(name):
                found = self._look(campaign)
            changes = [one for one in found if known.get(one.node) != one]
            yield from changes
            known |= {one.node: one for one in changes}
            if all(one.state.ended for one in known.values()):
                return
            pause_s = LOOK_S_LEAST if changes else min(pause_s * 1.5, LOOK_S_MOST)
            time.sleep(pause_s)

    def documents(self, name: str, nodes: Sequence[str]) -> Iterator[ResultDocument]:
        """Yield the documents of nodes that were measured. Raise UsageError for one that is of
        another campaign, cluster or node."""
        campaign = self.campaign(name)
        for node in nodes:
            digest = self._message(name, node)
            if not isinstance(digest, Digest):
                raise UsageError(f"node {node} of campaign {name} is not measured")
            document = ResultsStore(self._node(name, node)).job(digest.job).load()
            expected = (name, campaign.cluster, node)
            member = document.member
            found = None if member is None else (member.campaign, member.cluster, member.node)
            if found != expected:
                raise UsageError(
                    f"the document of {_place(expected)} is of {_place(found)}; remove "
                    f"{self._node(name, node)} and measure again with hostbench fleet retry {name}"
                )
            yield document

    # ---- what changes it ----

    def retry(self, name: str) -> tuple[str, ...]:
        """Measure again the nodes that failed or are missing; return their names."""
        campaign = self.campaign(name)
        with self._alone(name):
            gone_on = self._go_on(campaign)
            again = tuple(
                one.node
                for one in self._status(campaign)[0]
                if one.state in {NodeState.FAILED, NodeState.MISSING}
            )
            if again:
                for node in again:
                    self._forget_end(name, node)
                number = self._submissions(name)[-1].number + 1
                self._plan(name, _submission(number, again))
                self._go_on(campaign)
            return tuple(dict.fromkeys((*gone_on, *again)))

    def cancel(self, name: str) -> None:
        """End what runs and let nothing more begin. What was measured stays."""
        self.campaign(name)
        with self._alone(name):
            for submission in self._submissions(name):
                job_name = submission.job_name(name)
                tasks = _tasks([job_name])
                if any(task.state not in _ENDED for task in tasks):
                    _run("scancel", f"--name={job_name}")
                if not submission.jobs:
                    jobs = {task.node: task.job for task in tasks}
                    ids = tuple(jobs.get(node, "") for node in submission.nodes)
                    self._plan(name, replace(submission, jobs=ids))

    def _active(self, name: str) -> list[Task]:
        """Return the jobs that have not ended."""
        tasks = _tasks(one.job_name(name) for one in self._submissions(name))
        return [task for task in tasks if task.state not in _ENDED]

    def clean(self, name: str) -> None:
        """Cancel the campaign and remove its directory, documents included."""
        self.cancel(name)
        until_s = time.monotonic() + CLEAN_WAIT_S
        # A job that still ends would write into the directory.
        while active := self._active(name):
            if time.monotonic() > until_s:
                raise HostbenchError(
                    f"{plural(len(active), 'job')} of campaign {name} did not end within "
                    f"{CLEAN_WAIT_S:g} s of scancel, such as {active[0].job}; clean it again later"
                )
            time.sleep(LOOK_S_LEAST)
        _remove(self._path(name))


def _place(member: tuple[str, str, str] | None) -> str:
    if member is None:
        return "no campaign"
    campaign, cluster, node = member
    return f"campaign {campaign}, cluster {cluster}, node {node}"


def _submission(number: int, nodes: tuple[str, ...]) -> Submission:
    return Submission(number, secrets.token_hex(4), nodes)


def _script(directory: Path, program: str, post: PostTo | None) -> str:
    """Return the batch script. `exec`: hostbench itself gets Slurm's signals."""
    given = () if post is None else ("--post", post.url, "--post-keys", post.keys)
    posting = f" \\\n    {shlex.join(given)}" if given else ""
    return f"""#!/bin/sh
# A node of the hostbench campaign {directory.name}.
node=${{SLURMD_NODENAME:?}}
cd {shlex.quote(str(directory))} && mkdir -p "nodes/$node" || exit
exec {shlex.quote(program)} fleet measure --engine slurm --node "$node" --lock host \\
    --campaign-file {CAMPAIGN_FILE} --results "nodes/$node" \\
    --termination-message "nodes/$node/{MESSAGE_FILE}"{posting}
"""


def _tasks(names: Iterable[str]) -> list[Task]:
    """Return the jobs of these names that Slurm's daemon knows, ended ones too."""
    listed = ",".join(names)
    if not listed:
        return []
    output = _run("squeue", f"--name={listed}", "--states=all", "--noheader", f"--format={FIELDS}")
    found = []
    for line in output.splitlines():
        job, node, state, ran_on, reason = line.split("|", 4)
        found.append(Task(job, node, state, reason, started=bool(ran_on)))
    return found


def _accounted(job: str, node: str) -> Task | None:
    """Return a job from Slurm's accounts; None: there are none."""
    if shutil.which("sacct") is None:
        return None
    with contextlib.suppress(HostbenchError):
        output = _run(
            "sacct", f"--jobs={job}", "--allocations", "--noheader", "--parsable2",
            "--format=State,Start",
        )  # fmt: skip
        for line in output.splitlines():
            # Such as "CANCELLED by 1000".
            state, _, start = line.partition("|")
            word, _, by = state.partition(" by ")
            started = start not in ("None", "Unknown", "")
            return Task(job, node, word, "", started, by or None)
    return None


def _why(reason: str, node: ClusterNode | None) -> str:
    """Return in words why a task waits. What its only node does says more than the scheduler's
    general reasons, such as a priority."""
    code = reason.partition(",")[0].strip()
    if node is not None and node.unavailable is not None:
        return node.unavailable
    if code in _WAITING:
        return _WAITING[code]
    if node is not None and node.is_busy:
        return "other jobs use its node"
    return _SCHEDULER.get(code) or f"Slurm says {reason}"


def _node_table() -> dict[str, ClusterNode]:
    """Return the nodes of the cluster, in Slurm's order."""
    found: dict[str, ClusterNode] = {}
    for line in _run("sinfo", "--Node", "--noheader", "--format=%N|%P|%T|%E").splitlines():
        name, partition, state, reason = line.split("|", 3)
        before = found[name].partitions if name in found else frozenset()
        given = None if reason == "none" else reason
        found[name] = ClusterNode(state, given, before | {partition.rstrip("*")})
    return found


def _partitions() -> tuple[str | None, list[str]]:
    """Return the default partition, and all."""
    names = list(dict.fromkeys(_run("sinfo", "--noheader", "--format=%P").split()))
    default = next((name.rstrip("*") for name in names if name.endswith("*")), None)
    return default, [name.rstrip("*") for name in names]


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(directory, error) from None


def _remove(directory: Path) -> None:
    try:
        shutil.rmtree(directory)
    except OSError as error:
        raise ResourceError(f"cannot remove {error.filename}: {error.strerror}") from None


def _store(path: Path, content: bytes) -> None:
    try:
        write_whole(path, content)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"cannot write {path}: {error.strerror}; free space or rights in the shared directory"
    )


# The messages of Slurm's commands, by what to do about them.
_REMEDIES = (
    ("invalid partition", UsageError, "name one that sinfo lists with --queue"),
    ("reservation", UsageError, "scontrol show reservation lists them"),
    ("invalid account", UsageError, "sacctmgr show associations lists what you may use"),
    ("invalid qos", UsageError, "sacctmgr show qos lists them"),
    ("node name", UsageError, "sinfo --Node lists them"),
    ("unable to contact", UnreachableError, "is slurmctld up?"),
    ("configuration source", UnreachableError, "set SLURM_CONF, or call this on a login node"),
    ("access/permission", UsageError, "only the owner of a campaign's jobs, or root, may do that"),
)


def _run(program: str, *arguments: str, stdin: str = "", inherited: Collection[int] = ()) -> str:
    """Run one of Slurm's commands; return its output. Raise HostbenchError in one line."""
    try:
        ended = subprocess.run(
            [program, *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_S_MOST,
            pass_fds=inherited,
        )
    except FileNotFoundError:
        raise ResourceError(
            f"{program} is missing; call hostbench where Slurm's commands are, such as a login "
            "node, or install them (Debian: slurm-client)"
        ) from None
    except subprocess.TimeoutExpired:
        raise UnreachableError(
            f"{program} did not answer within {COMMAND_S_MOST:g} s; is slurmctld up?"
        ) from None
    if ended.returncode == 0:
        return ended.stdout
    text = ended.stderr or ended.stdout
    message = f"{program}: {_first_line(program, text)}"
    for words, kind, remedy in _REMEDIES:
        if words in text.lower():
            raise kind(f"{message}; {remedy}")
    raise HostbenchError(message)


def _first_line(program: str, text: str) -> str:
    """Return the line of a command's errors that says most: the fatal one, else the first."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        return "it failed without a word"
    line = next((line for line in lines if "fatal:" in line), lines[0])
    return re.sub(rf"^{program}: (error|fatal): ", "", line).rstrip(".")
