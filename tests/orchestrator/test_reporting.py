"""The page of a job where it cannot be made."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from hostbench.base.errors import HostbenchError, ResourceError
from hostbench.results.store import JobDirectory
from hostbench.web.problem import Problem
from orchestrator.results.apart import OneAtATime
from orchestrator.results.reporting import Reporter
from tests.unit.report_documents import sampled_run, stored


def made(directory: JobDirectory) -> bytes:
    return asyncio.run(Reporter(OneAtATime()).page(directory, keep=False))


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
    assert line["event"] == "making_failed" and "zip()" in line["errors"]


def test_a_page_that_is_too_large_ends_and_not_the_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = stored(sampled_run(samples=4), tmp_path)
    text = directory.document.read_bytes()
    directory.document.unlink()
    os.mkfifo(directory.document)
    module = ("-m", "orchestrator.results.forms", str(directory.path.parent), directory.id, "html")
    with subprocess.Popen([sys.executable, *module], stdout=subprocess.PIPE) as page:
        # Opened as soon as the other process reads it.
        with directory.document.open("wb") as document:
            assert Path(f"/proc/{page.pid}/oom_score_adj").read_text().strip() == "1000"
            document.write(text)
        assert page.communicate()[0].startswith(b"<!doctype html>")

    # The stand-in for Python ends as one that the kernel has chosen.
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\nkill -KILL $$\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    with pytest.raises(ResourceError, match=r"more memory than .* mem_limit"):
        made(directory)
