"""The page of a job where it cannot be made."""

import asyncio
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hostbench.base.errors import HostbenchError
from hostbench.results.store import JobDirectory
from hostbench.web.problem import Problem
from orchestrator.results.reporting import Reporter
from tests.unit.report_documents import sampled_run, stored


def made(directory: JobDirectory) -> bytes:
    return asyncio.run(Reporter().page(directory, keep=False))


def test_a_document_that_was_edited_is_refused_in_a_line(tmp_path: Path) -> None:
    directory = stored(sampled_run(samples=4), tmp_path)
    assert made(directory).startswith(b"<!doctype html>")
    text = directory.document.read_text()
    directory.document.write_text(text.replace("wall_s", "wall_t", 1))
    with capture_logs() as logged, pytest.raises(HostbenchError, match="there is no page of"):
        made(directory)
    assert logged == []


def test_an_error_in_the_code_is_logged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in for Python ends as Python does after a traceback."""
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho 'ValueError: zip() argument 2 is longer' >&2\nexit 1\n")
    python.chmod(0o755)
    directory = stored(sampled_run(samples=4), tmp_path)
    monkeypatch.setattr(sys, "executable", str(python))
    with capture_logs() as logged, pytest.raises(Problem) as raised:
        made(directory)
    assert raised.value.details.status == 500 and directory.id in raised.value.details.detail
    (line,) = logged
    assert line["event"] == "page_failed" and "zip()" in line["errors"]
