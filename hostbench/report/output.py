"""Where a report goes: beside the result, into a file, or to standard output."""

import contextlib
import os
import sys
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path

from hostbench.csvtable import case_table
from hostbench.errors import HostbenchError, ResourceError, UsageError
from hostbench.models.result import ResultDocument
from hostbench.report.check import load_checked
from hostbench.results import CSV, DOCUMENT, JOURNAL, REPORT, JobDirectory, write_whole

STANDARD_OUTPUT = "-"


class Format(StrEnum):
    """What a report can be written as."""

    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"


def write_report(job: JobDirectory, form: Format, output: str | None) -> Path | None:
    """Writes the report of a job, and returns the file it is in; None: it went to standard output.

    Raises UsageError for a document that cannot be trusted or an output that cannot be,
    ResourceError when it cannot be written.
    """
    target = _target(job, form, output)
    text = rendered(job, form)
    if target is None:
        sys.stdout.write(text)
    else:
        _write(target, text)
    return target


def rendered(job: JobDirectory, form: Format) -> str:
    """The report of a job as text."""
    source = DOCUMENT if job.document.exists() else JOURNAL
    return _RENDERERS[form](load_checked(job), source)


def _html(document: ResultDocument, source: str) -> str:
    from hostbench.report.html import html
    from hostbench.report.page import report_of

    return html(report_of(document, source))


def _markdown(document: ResultDocument, source: str) -> str:
    from hostbench.report.markdown import markdown
    from hostbench.report.page import report_of

    return markdown(report_of(document, source))


def _csv(document: ResultDocument, _source: str) -> str:
    return case_table(document)


_RENDERERS: dict[Format, Callable[[ResultDocument, str], str]] = {
    Format.HTML: _html,
    Format.MARKDOWN: _markdown,
    Format.CSV: _csv,
}


def _target(job: JobDirectory, form: Format, output: str | None) -> Path | None:
    """The file to write, before any work is done for it; None: standard output."""
    if output is None:
        return job.report if form is Format.HTML else None
    if output == STANDARD_OUTPUT:
        return None
    try:
        _check_target(Path(output), job)
    except OSError as error:
        raise _cannot_write(Path(output), error.strerror) from None
    return Path(output)


def _check_target(target: Path, job: JobDirectory) -> None:
    """Refuses what would take a directory or the job's own record for a file to write."""
    if not target.name or target.is_dir():
        raise UsageError(
            f"--output {target} is a directory; give the name of a file, such as {target / REPORT}"
        )
    record = {(job.path / name).resolve() for name in (DOCUMENT, JOURNAL, CSV)}
    if target.resolve() in record:
        raise UsageError(
            f"--output {target} is the job's own record; give another file, such as "
            f"{target.with_name(REPORT)}"
        )


def _write(target: Path, text: str) -> None:
    """A file appears whole or not at all; a device or a pipe is simply written to."""
    try:
        if target.exists() and not target.is_file():
            target.write_text(text, encoding="utf-8")
        else:
            write_whole(Path(os.path.realpath(target)), text.encode())
    except OSError as error:
        raise _cannot_write(target, error.strerror) from None


def _cannot_write(target: Path, why: str | None) -> ResourceError:
    return ResourceError(
        f"cannot write the report {target}: {why}; name another file with --output, "
        "or - for standard output"
    )


def report_after_run(job: JobDirectory) -> str:
    """Writes the page of a job that was just measured; a line for people either way.

    The result is stored by then, and nothing that happens here may cast doubt on it.
    """
    try:
        write_report(job, Format.HTML, None)
    except HostbenchError as error:
        why = error.message
    except Exception as error:  # noqa: BLE001
        why = f"{type(error).__name__}: {error}"
    else:
        return f"report: {job.report}"
    with contextlib.suppress(OSError):
        job.report.unlink(missing_ok=True)
    return f"no report was written: {' '.join(why.split())}; try: hostbench report {job.id}"
