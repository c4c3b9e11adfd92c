"""The page of a job, made in a process of its own and then kept; and its document, while none is
stored."""

import asyncio
import contextlib
import os

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.results.store import JobDirectory, write_whole
from orchestrator.results.apart import OneAtATime, Work, made_apart


class Reporter:
    """Makes one page or document at a time."""

    def __init__(self, one_at_a_time: OneAtATime) -> None:
        self._one_at_a_time = one_at_a_time

    async def page(self, directory: JobDirectory, *, keep: bool) -> bytes:
        """Return the page of a job. `keep`: it will not change any more, so store it beside the
        result.

        Raise HostbenchError if the document cannot be trusted, or the page takes too long. Raise
        Problem for an error in the code of the page, which is logged.
        """
        async with self._one_at_a_time.lock:
            content = _content(directory)
            if keep and (kept := await asyncio.to_thread(kept_page, directory)) is not None:
                return kept
            page = await _rendered_apart(directory)
            # If the job was resumed meanwhile, its result will change soon.
            if keep and content == _content(directory):
                with contextlib.suppress(OSError):
                    # Writing waits for the disk.
                    await asyncio.to_thread(write_whole, directory.report, page)
            return page

    async def document(self, directory: JobDirectory, form: str) -> bytes:
        """Return the document of a job that has none yet, as `json` or `csv`. Raise as `page`
        does."""
        work = _work(directory, form, "result", "ask again when the job has ended")
        return await self._one_at_a_time.made(work, UsageError)


def _work(directory: JobDirectory, form: str, name: str, elsewhere: str) -> Work:
    """Return the work that prints a job in a form of forms.py, called `name` in messages."""
    return Work(
        module="orchestrator.results.forms",
        arguments=(str(directory.path.parent), directory.id, form),
        name=f"the {name} of {directory.id}",
        elsewhere=elsewhere,
    )


def _content(directory: JobDirectory) -> list[tuple[int, int]]:
    """Return a state of the page's sources, as far as the file system distinguishes one content
    from another."""
    found = []
    for path in (directory.document, directory.journal):
        with contextlib.suppress(OSError):
            status = path.stat()
            found.append((status.st_mtime_ns, status.st_size))
    return found


def kept_page(directory: JobDirectory) -> bytes | None:
    """Return the stored page, unless it is older than its sources."""
    with contextlib.suppress(OSError), directory.report.open("rb") as file:
        made_ns = os.fstat(file.fileno()).st_mtime_ns
        if all(changed_ns < made_ns for changed_ns, _ in _content(directory)):
            return file.read()
    return None


async def _rendered_apart(directory: JobDirectory) -> bytes:
    elsewhere = (
        "make the page from a copy of the results with "
        f"hostbench report {directory.id} --results DIRECTORY"
    )
    return await made_apart(
        _work(directory, "html", "page", elsewhere),
        lambda why: HostbenchError(f"there is no page of {directory.id}: {why}"),
    )
