"""The page of a job, made in a process of its own: drawing charts takes more memory than an
orchestrator has, and more CPU time than one beside a trial should use.

    python -m orchestrator.results.reporting RESULTS JOB      the page on standard output
"""

import asyncio
import contextlib
import os
import signal
import sys
from pathlib import Path

import structlog

from hostbench.base.errors import HostbenchError, ResourceError
from hostbench.page.output import Format, rendered
from hostbench.results.store import JobDirectory, write_whole
from hostbench.web.problem import Problem

TIMEOUT_S = 120.0
NICENESS = 10
# Where memory runs out, the kernel ends this process and not the server, whose container it shares.
OOM_SCORE_MOST = "1000"
# How the process ends after an expected error, whose line is the last of its standard error.
# Python itself ends with 1 after a traceback.
REFUSED = 2
_log = structlog.get_logger()


class Reporter:
    """Makes one page at a time."""

    def __init__(self) -> None:
        self._one = asyncio.Semaphore(1)

    async def page(self, directory: JobDirectory, *, keep: bool) -> bytes:
        """The page of a job; kept beside its result if that will not change any more.

        Raises HostbenchError: the document cannot be trusted, or the page takes too long; Problem:
        an error in the code of the page, which is logged.
        """
        async with self._one:
            content = _content(directory)
            if keep and (kept := kept_page(directory)) is not None:
                return kept
            page = await _rendered_apart(directory)
            # Resumed meanwhile, the job has another result soon.
            if keep and content == _content(directory):
                with contextlib.suppress(OSError):
                    write_whole(directory.report, page)
            return page


def _elsewhere(directory: JobDirectory) -> str:
    return (
        "make the page from a copy of the results with "
        f"hostbench report {directory.id} --results DIRECTORY"
    )


def _content(directory: JobDirectory) -> list[tuple[int, int]]:
    """What a page is made from, as far as the file system tells one content from another."""
    found = []
    for path in (directory.document, directory.journal):
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime_ns, status.st_size))
    return found


def kept_page(directory: JobDirectory) -> bytes | None:
    """The page that was kept, unless it is older than what it is made from."""
    with contextlib.suppress(OSError), directory.report.open("rb") as file:
        made_ns = os.fstat(file.fileno()).st_mtime_ns
        if all(changed_ns < made_ns for changed_ns, _ in _content(directory)):
            return file.read()
    return None


async def _rendered_apart(directory: JobDirectory) -> bytes:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "orchestrator.results.reporting",
        str(directory.path.parent),
        directory.id,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            output, errors = await process.communicate()
    except TimeoutError:
        raise ResourceError(
            f"the page of {directory.id} takes more than {TIMEOUT_S:.0f} s: {_elsewhere(directory)}"
        ) from None
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    message = errors.decode("utf-8", "replace").strip()
    if process.returncode == REFUSED:
        raise HostbenchError(f"there is no page of {directory.id}: {message.splitlines()[-1]}")
    if process.returncode == -signal.SIGKILL:
        raise ResourceError(
            f"the page of {directory.id} takes more memory than the orchestrator may use: raise "
            f"its mem_limit in compose.yaml, or {_elsewhere(directory)}"
        )
    if process.returncode != 0:
        _log.error("page_failed", job=directory.id, exit_code=process.returncode, errors=message)
        raise Problem(
            500,
            "page_failed",
            f"the page of {directory.id} could not be made, by an error of hostbench that its "
            "orchestrator has logged; the figures are in the result",
        )
    return output


def main(results: str, job_id: str) -> int:
    """Prints the page."""
    os.nice(NICENESS)
    Path("/proc/self/oom_score_adj").write_text(OOM_SCORE_MOST)
    try:
        page = rendered(JobDirectory(Path(results) / job_id), Format.HTML)
    except HostbenchError as error:
        sys.stderr.write(f"{error.message}\n")
        return REFUSED
    sys.stdout.buffer.write(page.encode())
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
