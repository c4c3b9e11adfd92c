"""The jobs of a campaign: how they are submitted and what they run."""

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from hostbench.fleet.campaign import Campaign, Exclusive, Pair, PostTo
from hostbench.fleet.slurm.cluster import COMMENT_END

# In the directory of a campaign (directory.py), and in that of a node or a pair.
CAMPAIGN_FILE, SECRET_DIRECTORY = "campaign.json", "secret"
# The near end has so long to end by itself when the far end failed, and says why.
KNOWN_S = 10
MESSAGE_FILE, FAR_MESSAGE_FILE, MEETING_FILE = "message", "far-message", "meeting"
# The least time limit and the resolution of Slurm's.
MINUTE_S = 60


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


OPTIONS: TypeAdapter[SlurmOptions] = TypeAdapter(SlurmOptions)


def sbatch_arguments(
    campaign: Campaign, options: SlurmOptions, directory: Path, job_name: str, unit: str
) -> list[str]:
    """Return the arguments of sbatch for the job of a unit, held if units take turns."""
    pair = campaign.pair(unit)
    nodes = [unit] if pair is None else [pair.near, pair.far]
    minutes = max(1, math.ceil(campaign.time_limit_s / MINUTE_S))
    exclusive = campaign.exclusive is not Exclusive.NONE
    return [
        "--parsable",
        *(() if campaign.at_most is None else ("--hold",)),
        "--no-requeue",
        f"--job-name={job_name}",
        # What a Prolog can tell jobs that measure by (docs/slurm/prolog.sh), and clients the unit.
        f"--comment=hostbench campaign {campaign.name}{COMMENT_END}{unit}",
        f"--nodes={len(nodes)}",
        f"--nodelist={','.join(nodes)}",
        f"--time={minutes}",
        f"--deadline=now+{(_turns(campaign) + 1) * minutes * MINUTE_S}",
        *(("--exclusive", "--mem=0") if exclusive else ("--oversubscribe",)),
        *options.arguments,
        f"--chdir={directory}",
        f"--output={directory}/logs/%j.log",
        "--open-mode=append",
    ]


def _turns(campaign: Campaign) -> int:
    """Return how many units may run one after another before the last one begins."""
    # Pairs share nodes, and Slurm need not find the order in which the fewest wait.
    at_once = max(1, len(campaign.nodes) // 4) if campaign.pairs else len(campaign.nodes)
    return math.ceil(len(campaign.units) / min(at_once, campaign.at_most or at_once))


def script(campaign: Campaign, directory: Path, options: SlurmOptions, unit: str) -> str:
    """Return the batch script of a unit."""
    pair = campaign.pair(unit)
    if pair is None:
        return _node_script(directory, options)
    return _pair_script(directory, options, pair)


def _posting(post: PostTo | None) -> str:
    """Return the arguments of what posts its document, each behind a blank."""
    given = () if post is None else ("--post", post.url, "--post-keys", post.keys)
    return "".join(f" {shlex.quote(one)}" for one in given)


def _node_script(directory: Path, options: SlurmOptions) -> str:
    """Return the script of a node. `exec`: hostbench itself gets Slurm's signals."""
    return f"""#!/bin/sh
# A node of the hostbench campaign {directory.name}.
node=${{SLURMD_NODENAME:?}}
cd {shlex.quote(str(directory))} && mkdir -p "nodes/$node" || exit
exec {shlex.quote(options.program)} fleet measure --engine slurm --node "$node" --lock host \\
    --campaign-file {CAMPAIGN_FILE} --results "nodes/$node" \\
    --termination-message "nodes/$node/{MESSAGE_FILE}"{_posting(options.post)}
"""


def _pair_script(directory: Path, options: SlurmOptions, pair: Pair) -> str:
    """Return the script of a pair: a step for each end. Where the near end cannot know that the far
    end failed, it is ended. The job ends with the near end, and the far end with the job."""
    near, far = shlex.quote(pair.near), shlex.quote(pair.far)
    program = shlex.quote(options.program)
    return f"""#!/bin/sh
# A pair of nodes of the hostbench campaign {directory.name}.
own={shlex.quote(f"nodes/{pair.name}")}
cd {shlex.quote(str(directory))} && mkdir -p "$own" || exit
rm -f "$own/{FAR_MESSAGE_FILE}" "$own/{MEETING_FILE}"
end() {{
    address=$(scontrol show node "$2" | sed -n 's/.*NodeAddr=\\([^ ]*\\).*/\\1/p')
    node=$2 command=$1
    shift 2
    exec srun --nodes=1 --ntasks=1 --nodelist="$node" --cpu-bind=none --mpi=none \\
        {program} fleet "$command" --campaign-file {CAMPAIGN_FILE} --lock host \\
        --node "$node" --pair {shlex.quote(pair.name)} --secret {SECRET_DIRECTORY} \\
        --meet "$own/{MEETING_FILE}" --meet-address "$address" "$@" </dev/null
}}
end measure {near} --engine slurm --results "$own" \\
    --termination-message "$own/{MESSAGE_FILE}"{_posting(options.post)} &
near=$!
{{
    (end far-end {far} --termination-message "$own/{FAR_MESSAGE_FILE}") && exit
    sleep {KNOWN_S} && kill "$near"
}} &
wait "$near"
"""
