"""Turns: which held jobs of a campaign may begin, where at most so many run at once."""

import contextlib
from collections import defaultdict
from collections.abc import Mapping, Sequence

from hostbench.base.errors import HostbenchError
from hostbench.fleet.slurm.cluster import GONE, Task, node_table
from hostbench.fleet.slurm.commands import run
from hostbench.fleet.slurm.states import ENDED


def give_turns(at_most: int, tasks: Sequence[Task], nodes: Mapping[str, Sequence[str]]) -> None:
    """Release held jobs until `at_most` run or may begin. One that cannot begin gives its turn to
    one that can. `nodes`: those of each unit."""
    table = defaultdict(lambda: GONE, node_table())

    def is_free(task: Task) -> bool:
        return all(table[node].is_free for node in nodes[task.unit])

    def starts_nothing(task: Task) -> bool:
        return any(table[node].unavailable for node in nodes[task.unit])

    waiting = [task for task in tasks if task.state == "PENDING"]
    held = [task for task in waiting if task.is_held]
    ready = [task for task in held if is_free(task)]
    released = [task for task in waiting if not task.is_held]
    running = [task for task in tasks if task.state not in (*ENDED, "PENDING")]
    turns = at_most - len(running) - len(released)
    for task in released:
        if turns < len(ready) and not is_free(task):
            # It may just have begun, and then it has its turn.
            with contextlib.suppress(HostbenchError):
                run("scontrol", "hold", task.job)
                turns += 1
    # Nodes with other jobs or in a reservation wait in Slurm's queue. Those that start nothing stay
    # held.
    others = [one for one in held if one not in ready and not starts_nothing(one)]
    chosen = [*ready, *others][: max(turns, 0)]
    if chosen:
        run("scontrol", "release", ",".join(task.job for task in chosen))
