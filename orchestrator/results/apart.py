"""Work in a process of its own: it takes more memory than an orchestrator has, and more CPU time
than a process beside a trial should use."""

import asyncio
import contextlib
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from hostbench.base.errors import HostbenchError, ResourceError
from hostbench.web.problem import Problem
from orchestrator.results.making import REFUSED

TIMEOUT_S = 120.0
_log = structlog.get_logger()


@dataclass(frozen=True)
class Work:
    """What a process makes: `python -m module arguments…` prints it. `name` is its name in
    messages, such as `the page of JOB`; `elsewhere` says how to make it where there is more
    room."""

    module: str
    arguments: tuple[str, ...]
    name: str
    elsewhere: str


class OneAtATime:
    """Makes one thing at a time."""

    def __init__(self) -> None:
        self.lock = asyncio.Lock()

    async def made(self, work: Work, refused: Callable[[str], HostbenchError]) -> bytes:
        """Return what a process prints. `refused` makes the error from the line that it ends with.

        Raise HostbenchError if it was refused, or takes too much time or memory. Raise Problem for
        an error in its code, which is logged.
        """
        async with self.lock:
            return await made_apart(work, refused)


async def made_apart(work: Work, refused: Callable[[str], HostbenchError]) -> bytes:
    """Do the same without waiting for other work."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", work.module, *work.arguments),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output, errors = await process.communicate()
    except TimeoutError:
        raise ResourceError(
            f"{work.name} takes more than {TIMEOUT_S:.0f} s: {work.elsewhere}"
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    message = errors.decode("utf-8", "replace").strip()
    if process.returncode == REFUSED:
        raise refused(message.splitlines()[-1])
    if process.returncode == -signal.SIGKILL:
        raise ResourceError(
            f"{work.name} takes more memory than the orchestrator may use: raise its mem_limit in "
            f"compose.yaml, or {work.elsewhere}"
        )
    if process.returncode != 0:
        _log.error("making_failed", what=work.name, exit_code=process.returncode, errors=message)
        raise Problem(
            500,
            "making_failed",
            f"{work.name} could not be made, by an error of hostbench that its orchestrator has "
            "logged; the figures are in the result",
        )
    return output
