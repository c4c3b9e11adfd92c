"""`hostbench fleet measure`: what a node of a campaign leaves behind."""

import errno
import io
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from hostbench.base.errors import UsageError
from hostbench.base.exitcode import ExitCode
from hostbench.base.interrupt import Interrupt
from hostbench.cli.progress import PlainProgress
from hostbench.fleet.campaign import Campaign, Digest
from hostbench.fleet.node import (
    BEGIN,
    END,
    MESSAGE_BYTES_MOST,
    NodeRequest,
    measure_node,
    read_document_of_log,
    read_message,
)
from hostbench.model.suite import IdleRules, Repeats, SuiteCase
from hostbench.results.sealed import read_document
from hostbench.results.store import ResultsStore
from hostbench.run.job import JobRunner
from tests.faults.command import Command, Ended, end_of
from tests.fleet.campaigns import MOMENT, campaign, campaign_file, small_suite

LACKING = "neon" if os.uname().machine == "x86_64" else "avx2"
LONG = small_suite(cases=(SuiteCase(workload="cpu.clock", params=MOMENT | {"duration_s": 60}),))


def arguments(tmp_path: Path, made: Campaign, *more: str, node: str = "node1") -> list[str]:
    return [
        "fleet", "measure", f"--campaign-file={campaign_file(tmp_path, made)}", f"--node={node}",
        "--engine=slurm", f"--termination-message={tmp_path / 'message'}", *more,
    ]  # fmt: skip


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path)


def message(tmp_path: Path) -> Digest | str | None:
    return read_message((tmp_path / "message").read_text())


def measured(command: Command, ended: Ended) -> Digest:
    assert ended.code == 0, ended.errors
    digest = message(command.results.parent)
    assert isinstance(digest, Digest), digest
    return digest


def test_document_message_and_log_say_the_same(tmp_path: Path, command: Command) -> None:
    ended = command.run(*arguments(tmp_path, campaign(), "--document-to-log"))
    digest = measured(command, ended)
    (job,) = ResultsStore(command.results).ids()
    path = command.results / job / "result.json"
    document = read_document(path.read_bytes(), "result.json", "")
    assert document.member is not None and document.member == digest.member
    assert (document.member.campaign, document.member.node) == ("small-1", "node1")
    assert (document.member.engine, document.member.cluster) == ("slurm", "cluster-a")
    assert document.member.lock == "host"
    assert (digest.job, digest.digest) == (job, document.digest)
    assert digest.verdicts == document.job.verdicts and sum(digest.verdicts.values()) == 2
    assert (tmp_path / "message").stat().st_size <= MESSAGE_BYTES_MOST
    # In a log other lines stand around it.
    log = f"before\n{ended.output}after\n".splitlines(keepends=True)
    assert read_document_of_log(log, "the log") == document
    # An engine that starts the node again finds it measured.
    again = command.run(*arguments(tmp_path, campaign(), "--document-to-log"))
    assert measured(command, again) == digest
    assert read_document_of_log(again.output.splitlines(), "the log") == document
    assert ResultsStore(command.results).ids() == [job]
    # What an edited document or a log cut short would say is refused.
    changed = json.loads(path.read_text()) | {"member": None}
    with pytest.raises(UsageError, match="changed after it was written"):
        read_document(json.dumps(changed).encode(), "result.json", "")
    lines = ended.output.splitlines()
    for cut in (lines[:-1], lines[1:], lines[:2] + lines[3:], [BEGIN, "!", END], []):
        with pytest.raises(UsageError, match="no whole document"):
            read_document_of_log(cut, "the log of node1")


def test_a_node_of_another_campaign_is_measured_anew(tmp_path: Path, command: Command) -> None:
    first = measured(command, command.run(*arguments(tmp_path, campaign())))
    other = measured(command, command.run(*arguments(tmp_path, campaign(name="small-2"))))
    assert first.job != other.job and other.member.campaign == "small-2"


def test_a_failure_is_one_line_in_the_message(tmp_path: Path, command: Command) -> None:
    ended = command.run(*arguments(tmp_path, campaign(), node="node3"))
    assert ended.code == ExitCode.USAGE
    assert ended.last_line == f"hostbench: {message(tmp_path)}"
    assert "--node 'node3' is no node of campaign small-1" in ended.last_line
    (tmp_path / "nothing.json").write_text("{}")
    for name, words in (("nothing.json", "is no campaign"), ("missing.json", "No such file")):
        given = arguments(tmp_path, campaign())
        given[2] = f"--campaign-file={tmp_path / name}"
        ended = command.run(*given)
        assert ended.code == ExitCode.USAGE and words in ended.last_line
        assert ended.last_line == f"hostbench: {message(tmp_path)}"


def test_a_message_is_a_digest_a_reason_or_nothing() -> None:
    assert read_message("") is None
    assert read_message('{"job": "2026') is None
    assert read_message("the host is busy\n") == "the host is busy"


def test_an_ended_node_is_resumed_as_part_of_its_campaign(tmp_path: Path, command: Command) -> None:
    process = command.start(*arguments(tmp_path, campaign(suite=LONG)))
    command.wait_for_program()
    process.send_signal(signal.SIGTERM)
    assert end_of(process).code == ExitCode.TERMINATED
    reason = message(tmp_path)
    assert isinstance(reason, str) and reason.startswith("interrupted by SIGTERM")
    (job,) = ResultsStore(command.results).ids()
    interrupt = Interrupt()
    interrupt.trip()
    with (tmp_path / "progress").open("w") as stream, pytest.raises(Exception, match="interrupted"):
        JobRunner(ResultsStore(command.results), interrupt, PlainProgress(stream), wait_s=0).resume(
            job
        )
    document = ResultsStore(command.results).job(job).load()
    assert document.member is not None and document.member.campaign == "small-1"


def test_a_node_that_is_never_idle_says_so(tmp_path: Path, command: Command) -> None:
    suite = small_suite(idle=IdleRules(policy="fail", timeout_s=0))
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as load:
        ended = command.run(*arguments(tmp_path, campaign(suite=suite)))
        load.kill()
    assert ended.code == ExitCode.NOT_IDLE
    assert ended.last_line == f"hostbench: {message(tmp_path)}"
    assert "the host was not idle" in ended.last_line


def test_a_case_that_cannot_run_is_reported_all_the_same(tmp_path: Path, command: Command) -> None:
    skipped = SuiteCase(workload="cpu.fma", params=MOMENT | {"isa": LACKING})
    suite = small_suite(cases=(skipped,), repeats=Repeats(min_trials=1, max_trials=1))
    ended = command.run(*arguments(tmp_path, campaign(suite=suite)))
    digest = measured(command, ended)
    assert digest.exit_code == ExitCode.NOTHING_RAN


class Full(io.StringIO):
    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, "full")


def test_a_node_is_measured_when_its_document_was_sent(tmp_path: Path) -> None:
    request = NodeRequest(
        campaign=campaign(),
        node="node1",
        engine="kubernetes",
        results=tmp_path / "results",
        message=tmp_path / "message",
        log=Full(),
    )
    with (tmp_path / "progress").open("w") as stream, pytest.raises(OSError, match="full"):
        measure_node(request, Interrupt(), PlainProgress(stream))
    assert not (tmp_path / "message").exists()
