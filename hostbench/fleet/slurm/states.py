"""The words for users in place of Slurm's about jobs and nodes."""

from collections.abc import Mapping

from hostbench.fleet.slurm.cluster import HELD, ClusterNode

ENDED = {
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
WAITING = {
    HELD: "as many nodes as --at-most allows have their turn",
    "JobHeldAdmin": "an administrator holds it",
    "Reservation": "its reservation has not begun",
    "PartitionDown": "its partition is down",
    "PartitionInactive": "its partition is inactive",
    "PartitionTimeLimit": "its partition allows less time",
    "BadConstraints": "its node does not have what the job asks for",
}
SCHEDULER = {
    "None": "Slurm has not considered it yet",
    "Resources": "its node is not free",
    "Priority": "jobs of higher priority are first",
    "ReqNodeNotAvail": "its node is reserved or not free",
}


def why(reason: str, nodes: Mapping[str, ClusterNode]) -> str:
    """Return in words why a job waits for its nodes. What they do says more than the scheduler's
    general reasons, such as a priority."""
    code = reason.partition(",")[0].strip()
    alone = len(nodes) == 1
    for name, node in nodes.items():
        if node.unavailable is not None:
            return f"{'its node' if alone else name} is {node.unavailable}"
    if code in WAITING:
        return WAITING[code]
    for name, node in nodes.items():
        if node.is_busy:
            return f"other jobs use {'its node' if alone else name}"
    return SCHEDULER.get(code) or f"Slurm says {reason}"
