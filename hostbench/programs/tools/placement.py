"""Whether the threads of a tool stand where ours do."""

from collections.abc import Collection

from hostbench.model.trial import Beside


def crowded(tool: str, beside: Beside) -> str | None:
    """Why `tool` cannot be pinned as our threads were; None: it can."""
    cpus = len(set(beside.cpus))
    if cpus >= beside.threads:
        return None
    return f"{tool} runs one thread a CPU; this case has {beside.threads} threads on {cpus}"


def moving(cpus: Collection[int]) -> tuple[str, ...]:
    """How a tool with several threads on these CPUs differs that pins none of them to one of its
    own (Survey.differs)."""
    count = len(set(cpus))
    if count <= 1:
        return ()
    return (f"threads that move between {count} CPUs; each of ours stays on one",)
