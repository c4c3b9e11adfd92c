"""Who took the CPU from a disturbed trial."""

from hostbench.base.units import percent
from hostbench.model.events import OtherProcesses, OthersEvent
from hostbench.model.result import Reason

TAKEN_BY = "taken_by"
# What a process must have of all that others took to be named alone.
SHARE_LEAST = 0.5
# Less than this of one CPU explains no disturbance.
RATIO_LEAST = 0.02


def taken_by(others: OthersEvent | None) -> Reason | None:
    """Return a reason that names the processes which used the CPUs during a trial, or None if no
    other process is known to have used them."""
    if others is None:
        return None
    seen_s = sum(one.cpu_s for one in others.busiest)
    all_s = max(seen_s, others.cpu_s or 0.0)
    if all_s < RATIO_LEAST * others.elapsed_s:
        return None
    if others.unseen and seen_s < SHARE_LEAST * all_s:
        text = f"processes outside this container used {_of_a_cpu(all_s, others)} meanwhile"
    elif others.busiest and others.busiest[0].cpu_s >= SHARE_LEAST * all_s:
        text = f"{_named(others.busiest[0], others)} meanwhile"
    else:
        named = "; ".join(_named(one, others) for one in others.busiest)
        text = f"other processes used {_of_a_cpu(all_s, others)} meanwhile" + (
            f", most of all {named}" if named else ", each for a short time"
        )
    return Reason(code=TAKEN_BY, text=text)


def _named(one: OtherProcesses, others: OthersEvent) -> str:
    kind = "kernel thread, " if one.kernel else ""
    which = "pid" if one.processes == 1 else f"{one.processes} processes, such as pid"
    return f"{one.command} ({kind}{which} {one.pid}) used {_of_a_cpu(one.cpu_s, others)}"


def _of_a_cpu(cpu_s: float, others: OthersEvent) -> str:
    return f"{percent(cpu_s / others.elapsed_s)} of a CPU"
