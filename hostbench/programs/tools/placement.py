"""Whether a tool that pins one thread to a CPU can stand beside a trial."""

from hostbench.model.trial import Beside


def crowded(tool: str, beside: Beside) -> str | None:
    """Why `tool` cannot be pinned as our threads were; None: it can."""
    cpus = len(set(beside.cpus))
    if cpus >= beside.threads:
        return None
    return f"{tool} runs one thread a CPU; this case has {beside.threads} threads on {cpus}"
