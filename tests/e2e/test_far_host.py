"""hostbench run with a far host: a real service, and a program whose both ends can go wrong."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.command import Command, Ended, end_of, scripted_net_programs
from tests.patience import SOON_S, comes_true
from tests.service.streams import lock_is_free
from tests.stack.ports import free_port
from tests.stack.service_process import ServiceProcess

pytestmark = pytest.mark.exhaustive  # tests/service/test_far_host.py has the faults of a far host

SUITE = """
name: between
idle: {policy: force}
repeats: {min_trials: 2, max_trials: 2}
cases:
  - workload: net.tcp_stream
    params: {duration_s: DURATION, warmup_s: 0}
    grid: {target: [auto, loopback]}
"""


class Run:
    """A far host, and the command of the near one."""

    def __init__(self, root: Path, script: str = "") -> None:
        programs = scripted_net_programs(root)
        self.suite = root / "between.yaml"
        self.key_file = root / "key"
        self.service = ServiceProcess(
            root / "far", host="far-1", subsystem="net", programs=programs, SCRIPT=script
        )
        self.key_file.write_text(f"{self.service.key}\n")
        self.command = Command(
            root,
            programs,
            HOSTBENCH_FAR_HOST=self.service.url,
            HOSTBENCH_FAR_KEY_FILE=str(self.key_file),
        )
        self.write(0.1)

    def write(self, duration_s: float) -> None:
        self.suite.write_text(SUITE.replace("DURATION", f"{duration_s:g}"))

    def run(self, *arguments: str, **options: Any) -> Ended:
        return self.command.run("run", str(self.suite), "--json", *arguments, **options)

    def nothing_is_left(self) -> bool:
        gone = self.command.is_gone_soon() and self.service.programs_gone_within()
        return gone and lock_is_free(self.service.lock)


@pytest.fixture
def far(tmp_path: Path) -> Iterator[Run]:
    one = Run(tmp_path)
    with one.service:
        yield one


def test_a_run_between_two_hosts(far: Run) -> None:
    ended = far.run()
    assert ended.code == 0, ended.errors
    document = ended.document
    assert document["far_host"]["inventory"]["hostname"] == "far-1"
    assert document["far_host"]["program"]["sha256"]
    targets = [
        [trial["events"][0]["params"]["target"] for trial in case["trials"]]
        for case in document["cases"]
    ]
    assert targets == [["far_host"] * 2, ["loopback"] * 2]
    assert far.nothing_is_left()


def test_a_far_host_that_is_gone_ends_the_run_and_it_is_taken_up(far: Run) -> None:
    far.write(600)
    process = far.command.start("run", str(far.suite))
    far.service.wait_for_program()
    far.service.kill()
    ended = end_of(process, SOON_S)
    assert ended.code == 3, ended.errors
    assert (
        far.service.url in ended.last_line
        and "continue with: hostbench run --resume" in ended.last_line
    )
    assert comes_true(far.command.is_gone_soon)


def interrupted(run: Run, environment: dict[str, str] | None = None) -> str:
    """A job that was ended in its first trial; its id."""
    if environment is not None:
        run.command.environment = environment
    process = run.command.start("run", str(run.suite))
    assert comes_true(lambda: any(run.command.results.glob("*/journal.ndjson")))
    process.send_signal(signal.SIGINT)
    assert end_of(process, SOON_S).code == 130
    (journal,) = run.command.results.glob("*/journal.ndjson")
    return journal.parent.name


def without_far_host(run: Run) -> dict[str, str]:
    """The environment of a command on one host."""
    environment = run.command.environment.items()
    return {name: value for name, value in environment if "HOSTBENCH_FAR" not in name}


def test_a_job_between_two_hosts_is_not_taken_up_on_one(far: Run) -> None:
    """Its cases would be others, and what it has measured would be lost."""
    far.write(600)
    job = interrupted(far)
    journal = far.command.results / job / "journal.ndjson"
    before = journal.read_text()
    far.command.environment = without_far_host(far)
    ended = far.command.run("run", "--resume", job)
    assert ended.code == 2 and "has its far ends on far-1 at 127.0.0.1" in ended.last_line
    assert "--far-host" in ended.last_line and journal.read_text() == before


def test_a_job_on_one_host_is_not_taken_up_between_two(far: Run) -> None:
    far.write(600)
    environment = far.command.environment
    job = interrupted(far, without_far_host(far))
    far.command.environment = environment
    ended = far.command.run("run", "--resume", job)
    assert ended.code == 2 and "is measured on one host; leave out --far-host" in ended.last_line


def test_an_interrupted_run_frees_the_far_host(far: Run) -> None:
    far.write(600)
    process = far.command.start("run", str(far.suite))
    far.service.wait_for_program()
    process.send_signal(signal.SIGINT)
    assert end_of(process, SOON_S).code == 130
    assert far.nothing_is_left()


def test_a_killed_run_frees_the_far_host(far: Run) -> None:
    far.write(600)
    process = far.command.start("run", str(far.suite))
    far.service.wait_for_program()
    process.kill()
    process.communicate()
    assert far.nothing_is_left()


def test_a_far_host_that_no_case_needs(far: Run) -> None:
    """Named for this run it is a mistake, in the environment it waits for other suites."""
    workload = ("--workload", "net.tcp_stream", "--param", "duration_s=0.1", "--trials", "1")
    alone = (*workload, "--param", "target=loopback", "--idle-policy", "force")
    ended = far.command.run("run", *alone, "--far-host", far.service.url)
    assert ended.code == 2
    assert "--far-host is for network cases with a far end" in ended.last_line
    assert far.command.run("run", *alone).code == 0


def test_a_far_host_that_is_not_there(far: Run) -> None:
    ended = far.run("--far-host", f"http://127.0.0.1:{free_port()}")
    assert ended.code == 3 and "cannot be reached" in ended.last_line


def test_a_key_that_is_not_the_one(far: Run) -> None:
    far.key_file.write_text("another key of somebody else\n")
    ended = far.run()
    assert ended.code == 3 and "the key is not the one of this server" in ended.last_line


def test_a_far_end_without_a_far_host(tmp_path: Path) -> None:
    command = Command(tmp_path, scripted_net_programs(tmp_path))
    workload = ("--workload", "net.tcp_stream", "--param", "target=far_host")
    ended = command.run("run", *workload)
    assert ended.code == 2
    assert "name its net service with --far-host https://" in ended.last_line
