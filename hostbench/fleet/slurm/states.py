"""How Slurm's words about jobs and nodes are said to users."""

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


def why(reason: str, node: ClusterNode | None) -> str:
    """Return in words why a task waits. What its only node does says more than the scheduler's
    general reasons, such as a priority."""
    code = reason.partition(",")[0].strip()
    if node is not None and node.unavailable is not None:
        return node.unavailable
    if code in WAITING:
        return WAITING[code]
    if node is not None and node.is_busy:
        return "other jobs use its node"
    return SCHEDULER.get(code) or f"Slurm says {reason}"
