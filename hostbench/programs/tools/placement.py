"""Whether the threads of a tool run where ours do."""

from collections.abc import Collection

from hostbench.model.trial import Beside


def crowded(tool: str, beside: Beside) -> str | None:
    """Return why `tool` cannot be pinned as our threads were, or None."""
    cpus = len(set(beside.cpus))
    if cpus >= beside.threads:
        return None
    return f"{tool} runs one thread a CPU; this case has {beside.threads} threads on {cpus}"


def moving(cpus: Collection[int]) -> tuple[str, ...]:
    """Return how a tool differs that does not pin its several threads to CPUs of their own
    (Survey.differs)."""
    count = len(set(cpus))
    if count <= 1:
        return ()
    return (f"threads that move between {count} CPUs; each of ours stays on one",)
