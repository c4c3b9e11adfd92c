"""The supervisor of peers by itself: what it lays out for a peer, and hands on to it."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import IO, Any

import pytest

from hostbench.peertrial import SUPERVISOR


@pytest.fixture
def lifeline() -> Iterator[int]:
    read_end, write_end = os.pipe()
    yield read_end
    os.close(read_end)
    os.close(write_end)


@pytest.fixture
def unnamed(tmp_path: Path) -> Iterator[IO[bytes]]:
    with closing(tempfile.TemporaryFile(dir=tmp_path)) as file:
        file.write(b"one file for all")
        file.flush()
        yield file


def supervised(lifeline: int, *command: str, inherited: tuple[int, ...] = (), **more: Any) -> Any:
    request = {
        "command": command,
        "files": {},
        "links": {},
        "report": None,
        "timeout_s": 10.0,
        "inherited": inherited,
        **more,
    }
    run = subprocess.run(
        [sys.executable, "-I", "-S", str(SUPERVISOR), json.dumps(request), "--lifeline-fd",
         str(lifeline)],
        capture_output=True,
        check=True,
        pass_fds=[lifeline, *inherited],
    )  # fmt: skip
    return json.loads(run.stdout)


def test_a_link_leads_to_an_inherited_file(lifeline: int, unnamed: IO[bytes]) -> None:
    number = unnamed.fileno()
    links = {"test_file.0": f"/proc/self/fd/{number}"}
    ended = supervised(lifeline, "cat", "test_file.0", inherited=(number,), links=links)
    assert ended["exit_code"] == 0 and ended["output"] == "one file for all"


def test_removing_the_scratch_directory_leaves_what_links_lead_to(
    lifeline: int, tmp_path: Path
) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").write_text("still here")
    links = {"directory": str(kept), "file": str(kept / "file")}
    ended = supervised(lifeline, "sh", "-c", "pwd; ls", links=links)
    scratch, *names = ended["output"].split()
    assert names == ["directory", "file"]
    assert not Path(scratch).exists()
    assert (kept / "file").read_text() == "still here"


def test_without_the_descriptor_the_link_is_dangling(lifeline: int, unnamed: IO[bytes]) -> None:
    links = {"test_file.0": f"/proc/self/fd/{unnamed.fileno()}"}
    ended = supervised(lifeline, "cat", "test_file.0", links=links)
    assert ended["exit_code"] == 1 and "No such file" in ended["output"]
