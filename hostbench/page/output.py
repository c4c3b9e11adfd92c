"""Where a report is written: beside the result, into a file, or to standard output."""

import contextlib
import gc
import os
import sys
from collections.abc import Callable, Iterator
from enum import StrEnum
from pathlib import Path

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.model.result import ResultDocument
from hostbench.report.check import load_checked
from hostbench.results.csv import case_table
from hostbench.results.output import STANDARD_OUTPUT, check_output, write_output
from hostbench.results.store import CSV, DOCUMENT, JOURNAL, REPORT, JobDirectory

OPTION = "--output"
WHAT = "the report"


class Format(StrEnum):
    """The forms of a report."""

    HTML = "html"
    MARKDOWN = "markdown"
    CSV = "csv"
    OPENMETRICS = "openmetrics"


def write_report(job: JobDirectory, form: Format, output: str | None) -> Path | None:
    """Write the report of a job, and return its file, or None for standard output.

    Raise UsageError for a document that cannot be trusted or an impossible output, ResourceError
    when it cannot be written.
    """
    target = _target(job, form, output)
    text = rendered(job, form)
    if target is None:
        sys.stdout.write(text)
    else:
        write_output(OPTION, WHAT, target, text.encode(), _MODES.get(form))
    return target


def rendered(job: JobDirectory, form: Format) -> str:
    """Return the report of a job as text."""
    source = DOCUMENT if job.document.exists() else JOURNAL
    with _no_garbage_collection():
        return _RENDERERS[form](load_checked(job), source)


@contextlib.contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Disable garbage collection: a document's objects live until its report is written. Searching
    them for garbage again and again, as they grow in number, took a quarter of the time of a large
    report."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _html(document: ResultDocument, source: str) -> str:
    from hostbench.decisions.baseline_files import checked_host
    from hostbench.page.job import report_of
    from hostbench.report.html import html

    return html(report_of(document, source, checked_host(document, os.environ)))


def _markdown(document: ResultDocument, source: str) -> str:
    from hostbench.decisions.baseline_files import checked_host
    from hostbench.page.job import report_of
    from hostbench.report.markdown import markdown

    return markdown(report_of(document, source, checked_host(document, os.environ)))


def _csv(document: ResultDocument, _source: str) -> str:
    return case_table(document)


def _openmetrics(document: ResultDocument, _source: str) -> str:
    from hostbench.page.series import job_series

    return job_series(document)


_RENDERERS: dict[Format, Callable[[ResultDocument, str], str]] = {
    Format.HTML: _html,
    Format.MARKDOWN: _markdown,
    Format.CSV: _csv,
    Format.OPENMETRICS: _openmetrics,
}
# node_exporter runs as another user.
_MODES = {Format.OPENMETRICS: 0o644}


def _target(job: JobDirectory, form: Format, output: str | None) -> Path | None:
    """Return the file to write, before any work is done, or None for standard output."""
    if output is None:
        return job.report if form is Format.HTML else None
    if output == STANDARD_OUTPUT:
        return None
    target = Path(output)
    check_output(OPTION, WHAT, target, REPORT)
    record = {(job.path / name).resolve() for name in (DOCUMENT, JOURNAL, CSV)}
    if target.resolve() in record:
        raise UsageError(
            f"{OPTION} {target} is the job's own record; give another file, such as "
            f"{target.with_name(REPORT)}"
        )
    return target


def report_after_run(job: JobDirectory) -> str:
    """Write the page of a job that was just measured; return a line for people in any case.

    The result is already stored, and an error here must not cast doubt on it.
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
