"""The jobs of a campaign: how they are submitted and what they run."""

import math
import shlex
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from hostbench.fleet.campaign import Campaign, Exclusive, PostTo

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
    campaign: Campaign, options: SlurmOptions, directory: Path, job_name: str, node: str
) -> list[str]:
    """Return the arguments of sbatch for the job of a node, held if nodes take turns."""
    minutes = max(1, math.ceil(campaign.time_limit_s / MINUTE_S))
    # A node may wait for as long as all before it may take.
    rounds = math.ceil(len(campaign.nodes) / (campaign.at_most or len(campaign.nodes)))
    exclusive = campaign.exclusive is not Exclusive.NONE
    return [
        "--parsable",
        *(() if campaign.at_most is None else ("--hold",)),
        "--no-requeue",
        f"--job-name={job_name}",
        # What a Prolog can tell jobs that measure by (docs/slurm/prolog.sh).
        f"--comment=hostbench campaign {campaign.name}",
        "--nodes=1",
        f"--nodelist={node}",
        f"--time={minutes}",
        f"--deadline=now+{(rounds + 1) * minutes * MINUTE_S}",
        *(("--exclusive", "--mem=0") if exclusive else ("--oversubscribe",)),
        *options.arguments,
        f"--chdir={directory}",
        f"--output={directory}/logs/%j.log",
        "--open-mode=append",
    ]


def node_script(directory: Path, options: SlurmOptions) -> str:
    """Return the batch script. `exec`: hostbench itself gets Slurm's signals."""
    post = options.post
    given = () if post is None else ("--post", post.url, "--post-keys", post.keys)
    posting = f" \\\n    {shlex.join(given)}" if given else ""
    return f"""#!/bin/sh
# A node of the hostbench campaign {directory.name}.
node=${{SLURMD_NODENAME:?}}
cd {shlex.quote(str(directory))} && mkdir -p "nodes/$node" || exit
exec {shlex.quote(options.program)} fleet measure --engine slurm --node "$node" --lock host \\
    --campaign-file campaign.json --results "nodes/$node" \\
    --termination-message "nodes/$node/message"{posting}
"""
