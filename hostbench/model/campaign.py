"""The engines, locks and ways to be alone that a campaign over many hosts can have:
hostbench.fleet. The command line has its choices from here, so this imports nothing."""

from enum import StrEnum
from typing import Literal

EngineName = Literal["kubernetes", "slurm"]
# What keeps other runs away from a node: the host's lock file, or a Lease object of the cluster.
LockName = Literal["host", "lease"]


class Exclusive(StrEnum):
    """How other work is kept away from a node while it is measured."""

    TAINT = "taint"
    REQUESTS = "requests"
    NONE = "none"
