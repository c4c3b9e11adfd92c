"""The commands of the stack against a real orchestrator with a real service."""

import csv
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import httpx
import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.cli.command_line import run_command_line
from hostbench.results.ids import is_job_id
from tests.client.breaking_proxy import BreakingProxy
from tests.client.real_stack import HOST, LACKING, Stack
from tests.faults.command import CHECKOUT, Command, Ended, end_of, read_terminal
from tests.patience import wait_until
from tests.stack.orchestrator_process import API_KEY

ONE_CASE = (
    "--workload", "cpu.clock", "--param", "threads=1", "--param", "duration-s=0.05",
    "--idle-policy", "force",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _no_job_is_left(stack: Stack) -> Iterator[None]:
    yield
    stack.end_all()


@pytest.fixture(scope="module")
def measured(stack: Stack) -> Ended:
    """A suite of this side, followed to its end."""
    return stack.command.run("submit", str(stack.suite), "--wait")


@pytest.fixture(scope="module")
def job(measured: Ended) -> str:
    return measured.output.strip()


def rest_of(process: subprocess.Popen[str]) -> Ended:
    """The end of a command, after some of its lines were read."""
    assert process.stdout is not None and process.stderr is not None
    errors = process.stderr.read()
    output = process.stdout.read()
    process.stdout.close()
    process.stderr.close()
    return Ended(process.wait(60), output, errors)


@pytest.mark.exhaustive
def test_a_suite_at_one_of_its_scales(stack: Stack) -> None:
    """Of a file here, and as the orchestrator says it."""
    once = "{repeats: {min_trials: 1, max_trials: 1}}"
    scaled = stack.root / "scaled.yaml"
    scaled.write_text(stack.suite.read_text() + f"scales: {{quick: {once}, full: {{}}}}\n")
    for scale, trials in (("quick", 1), ("full", 2)):
        ended = stack.command.run("submit", str(scaled), "--scale", scale, "--wait")
        assert f"plan at scale {scale}: 3 cases" in ended.errors
        document = stack.orchestrator.result(ended.output.strip())
        assert document["suite"]["scale"] == scale
        assert len(document["cases"][0]["trials"]) == trials
    for name in (str(scaled), "quick"):
        refused = stack.command.run("submit", name, "--scale", "ful")
        assert refused.code == ExitCode.USAGE
        assert "'ful'" in refused.last_line and "scale" in refused.last_line


class Here:
    """The command in this process: fast, for what it refuses."""

    def __init__(self, stack: Stack, capsys: pytest.CaptureFixture[str]) -> None:
        self._stack = stack
        self._capsys = capsys

    def run(self, *arguments: str, key_file: Path | None = None) -> Ended:
        key = str(key_file or self._stack.key_file)
        url = self._stack.orchestrator.url
        code = run_command_line([*arguments, "--url", url, "--key-file", key])
        output, errors = self._capsys.readouterr()
        return Ended(code, output, errors)


@pytest.fixture
def here(stack: Stack, capsys: pytest.CaptureFixture[str]) -> Here:
    return Here(stack, capsys)


# ---- submit ----


def test_the_id_stands_alone_on_standard_output(stack: Stack) -> None:
    ended = stack.command.run("submit", *ONE_CASE, "--trials", "2", "--host", HOST)
    assert ended.code == ExitCode.OK and ended.errors == ""
    assert is_job_id(ended.output.removesuffix("\n"))
    spec = stack.orchestrator.job(ended.output.strip())["spec"]
    assert spec["params"] == {"threads": "1", "duration_s": "0.05"}
    assert (spec["trials"], spec["idle_policy"], spec["hosts"]) == (2, "force", [HOST])


def test_waiting_shows_what_a_run_shows(measured: Ended, job: str) -> None:
    assert measured.code == ExitCode.OK and is_job_id(job)
    lines = measured.errors.splitlines()
    assert any(line.startswith("plan: 3 cases, ") for line in lines)
    assert any(re.match(r"\[1/6\] cpu\.clock 1 thread #1: .*Hz", line) for line in lines)
    assert any(re.match(r"\[3/3 cases\] .*: skipped$", line) for line in lines)
    assert any(re.match(r"cpu\.clock 1 thread +[\d.]+ [GM]Hz ", line) for line in lines)
    assert lines[-2:] == [
        f"job {job} succeeded",
        f"next: hostbench result {job} --report report.html",
    ]


def test_the_time_of_a_fixed_work_is_reported_before_it_is_measured(stack: Stack) -> None:
    ended = stack.command.run(
        "submit", "--workload", "cpu.clock", "--param", "threads=1", "--param", "work=200000000",
        "--trials", "2", "--idle-policy", "force", "--wait",
    )  # fmt: skip
    lines = ended.errors.splitlines()
    (estimate,) = (line for line in lines if line.startswith("estimate: "))
    first = next(n for n, line in enumerate(lines) if line.startswith("[1/2]"))
    assert re.fullmatch(r"estimate: 2 trials, .* s", estimate)
    assert lines.index(estimate) < first
    progress = stack.orchestrator.job(ended.output.strip())["progress"]
    assert 0 < progress["estimate_low_s"] <= progress["estimate_high_s"] < 600


def test_a_file_is_sent_in_full(stack: Stack, job: str) -> None:
    spec = stack.orchestrator.job(job)["spec"]
    assert spec["suite"]["name"] == "small" and len(spec["suite"]["cases"]) == 2


def test_a_name_is_the_orchestrators(here: Here) -> None:
    ended = here.run("submit", "cpu-600-samples", "--priority", "-3", "--json")
    assert ended.document["suite"] == "cpu-600-samples" and ended.document["priority"] == -3
    assert here.run("cancel", ended.document["id"]).code == ExitCode.OK


def test_waiting_for_json_is_the_job_at_its_end(here: Here) -> None:
    ended = here.run("submit", *ONE_CASE, "--trials", "1", "--wait", "--json")
    assert (ended.code, ended.document["state"]) == (ExitCode.OK, "succeeded")
    assert ended.document["exit_code"] == 0


def test_the_exit_code_is_the_jobs(here: Here) -> None:
    ended = here.run(
        "submit", "--workload", "cpu.fma", "--param", f"isa={LACKING}", "--idle-policy", "force",
        "--wait",
    )  # fmt: skip
    assert ended.code == ExitCode.NOTHING_RAN
    assert here.run("watch", ended.output.strip()).code == ExitCode.NOTHING_RAN


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "nothing to measure is named; give a suite"),
        (("quick", "--workload", "cpu.fma"), "are both given; leave out one"),
        (("quick", "--param", "threads=1"), "--param 'threads=1' needs --workload"),
        (("--workload", "cpu.fma", "--param", "threads"), "is not name=value"),
        (("--workload", "cpu.fma", "--param", "1x=2"), "--param '1x' is not the name of a param"),
        (
            ("quick", "--priority", "11"),
            "--priority '11' is not allowed: give a whole number from -10 to 10",
        ),
        (
            ("quick", "--trials", "0"),
            "--trials '0' is not allowed: give a whole number from 1 to 1000",
        ),
        (("quick", "--host", "a b"), "--host 'a b' is not the name of a host"),
        (("quick", "--host", "a", "--host", "a"), "--host names one host twice"),
        (("quick", *["--host", "a", "--host", "b", "--host", "c"]), "a job has one or two"),
        (("",), "suite '' is not a name"),
        (("./absent.yaml",), "cannot read the suite absent.yaml"),
        (("quik",), "there is no suite 'quik'; did you mean 'quick'?"),
        (("quick", "--host", "node-b"), "host 'node-b' is not registered; did you mean 'node-a'?"),
        (("--workload", "fma"), "workload 'fma' has no subsystem"),
        (("--workload", "cpu.fmaa"), "did you mean 'cpu.fma'?"),
        (("--workload", "cpu.fma", "--param", "thread=1"), "did you mean 'threads'?"),
        (("--workload", "cpu.fma", "--param", "threads=0"), "threads '0' is out of range"),
        (("--workload", "cpu.fma", "--peers", "sysbenc"), "sysbenc"),
    ],
)
def test_what_cannot_be_queued(here: Here, arguments: tuple[str, ...], says: str) -> None:
    ended = here.run("submit", *arguments)
    assert (ended.code, ended.output) == (ExitCode.USAGE, "")
    assert len(ended.errors.splitlines()) == 1 and says in ended.errors
    assert ended.errors.startswith("hostbench: ")


def test_what_is_wrong_in_a_file_is_reported_with_its_line(stack: Stack, here: Here) -> None:
    broken = stack.root / "broken.yaml"
    broken.write_text("name: broken\ncases:\n  - workloadd: cpu.fma\n")
    ended = here.run("submit", str(broken), "--json")
    assert ended.code == ExitCode.USAGE
    assert f"{broken}:3: cases[0].workloadd: unknown key" in ended.errors
    assert ended.document["error"]["exit_code"] == ExitCode.USAGE


# ---- looking ----


def test_jobs_are_listed_newest_first(stack: Stack, here: Here, job: str) -> None:
    newer = stack.done()
    ended = here.run("jobs", "--limit", "0")
    lines = ended.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert lines[1].split()[:3] == [newer, "succeeded", HOST]
    row = row_of(job, lines)
    assert " 3/3 " in row and "1 skipped" in row


def row_of(job: str, lines: list[str]) -> str:
    """What a table says of a job. How many verdicts there are depends on the host's load, and they
    go on in further lines when they do not fit into one."""
    first = next(number for number, line in enumerate(lines) if line.startswith(job))
    further = takewhile(lambda line: line.startswith(" "), lines[first + 1 :])
    return " ".join(word for line in (lines[first], *further) for word in line.split())


def test_jobs_are_chosen(stack: Stack, here: Here, job: str) -> None:
    newest = stack.done()
    listed = here.run("jobs", "--state", "succeeded", "--limit", "1", "--json").document
    assert [one["id"] for one in listed["jobs"]] == [newest] and listed["older"] is True
    shown = here.run("jobs", "--limit", "1").output
    assert shown.endswith("Older jobs are not shown; --limit 0 shows all.\n")
    assert here.run("jobs", "--state", "lost", "--json").document["jobs"] == []
    assert "No job matches" in here.run("jobs", "--host", "node-z").output
    ended = here.run("jobs", "--state", "runing")
    assert ended.code == ExitCode.USAGE
    assert "--state 'runing' is not a state; did you mean 'running'?" in ended.errors


def test_a_job_is_shown(stack: Stack, here: Here, job: str) -> None:
    lines = here.run("job", job).output.splitlines()
    assert lines[0] == f"{job}: succeeded"
    shown = dict(line.strip().split(maxsplit=1) for line in lines[1:])
    assert shown["measures"] == "suite small" and shown["hosts"] == HOST
    assert shown["progress"] == "3 of 3 cases" and "1 skipped" in shown["verdicts"]
    assert shown["next"] == f"hostbench result {job} --report report.html"
    assert here.run("job", job, "--json").document == stack.orchestrator.job(job)


def test_the_latest_is_the_one_submitted_last(stack: Stack, here: Here) -> None:
    newest = stack.done()
    assert here.run("job", "latest", "--json").document["id"] == newest


@pytest.mark.parametrize("command", ["job", "watch", "cancel", "resume", "result"])
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("../../etc", "'../../etc' is not the id of a job"),
        ("20200101T000000Z-quick-0000", "20200101T000000Z-quick-0000"),
    ],
)
def test_what_is_no_job(here: Here, command: str, text: str, says: str) -> None:
    ended = here.run(command, text)
    assert ended.code == ExitCode.USAGE and ended.output == ""
    assert len(ended.errors.splitlines()) == 1 and says in ended.errors


def test_hosts_are_shown(stack: Stack, here: Here) -> None:
    busy = stack.submit(duration_s=60)
    stack.wait_until_measuring(busy)
    lines = here.run("hosts").output.splitlines()
    assert lines[1].startswith(f"{HOST} busy  cpu ") and busy in lines[1]
    (host,) = here.run("hosts", "--json").document["hosts"]
    assert (host["name"], host["state"], host["job"]) == (HOST, "busy", busy)
    stack.cancel(busy)


# ---- results ----


def test_the_result_is_the_stored_document(
    stack: Stack, here: Here, job: str, tmp_path: Path
) -> None:
    stored = (stack.orchestrator.results / job / "result.json").read_text()
    assert here.run("result", job, "--json").output == stored
    target = tmp_path / "result.json"
    ended = here.run("result", job, "--output", str(target))
    assert (ended.output, target.read_text()) == (f"{target}\n", stored)
    assert here.run("result", job, "--output", "-").output == stored


def test_the_result_is_shown_as_a_run_shows_it(stack: Stack, job: str, measured: Ended) -> None:
    shown = stack.command.run("result", job).output
    assert shown in measured.errors
    there = Command(stack.root).run("show", job, "--results", str(stack.orchestrator.results))
    assert shown == there.output


def test_the_result_as_csv(stack: Stack, here: Here, job: str, tmp_path: Path) -> None:
    text = here.run("result", job, "--csv").output
    assert text == (stack.orchestrator.results / job / "result.csv").read_text()
    assert {row["workload"] for row in csv.DictReader(io.StringIO(text))} == {
        "cpu.clock", "cpu.fma",
    }  # fmt: skip
    target = tmp_path / "figures.csv"
    here.run("result", job, "--csv", "--output", str(target))
    assert target.read_text() == text


def test_the_report(here: Here, job: str, tmp_path: Path) -> None:
    page, document = tmp_path / "report.html", tmp_path / "result.json"
    ended = here.run("result", job, "--report", str(page), "--output", str(document))
    assert ended.output == f"{document}\n{page}\n"
    assert page.read_text().startswith("<!doctype html>") and job in page.read_text()
    assert json.loads(document.read_text())["job"]["id"] == job
    assert here.run("result", job, "--report", "-").output == page.read_text()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--json", "--csv"), "are both given"),
        (("--report", "-", "--csv"), "--report - and --csv both want standard output"),
        (("--report", "-", "--output", "-"), "--report - and --output both want standard output"),
        (("--report", "a", "--output", "a"), "--output and --report both name a"),
        (("--output", "."), "--output . is a directory; give the name of a file, such as result"),
        (("--report", "/"), "--report / is a directory; give the name of a file, such as /report"),
    ],
)
def test_what_cannot_be_fetched(
    here: Here, job: str, arguments: tuple[str, ...], says: str
) -> None:
    ended = here.run("result", job, *arguments)
    assert ended.code == ExitCode.USAGE and says in ended.errors


def test_a_file_that_cannot_be_written(here: Here, job: str) -> None:
    ended = here.run("result", job, "--output", "/proc/result.json")
    assert ended.code == ExitCode.RESOURCE
    assert "cannot write the file /proc/result.json: " in ended.errors


def test_a_result_that_is_not_there_yet(stack: Stack, here: Here) -> None:
    first, second = stack.submit(duration_s=60), stack.submit()
    ended = here.run("result", second)
    assert ended.code == ExitCode.USAGE
    assert f"job {second} is queued and has measured nothing yet" in ended.errors
    stack.cancel(first)
    stack.orchestrator.wait_for(second)


# ---- ending and going on ----


def test_a_queued_job_is_cancelled_and_resumed(stack: Stack, here: Here) -> None:
    first, other, second = stack.submit(duration_s=60), stack.submit(), stack.submit()
    assert "first in the queue" in here.run("job", other).output
    assert "after 1 other job" in here.run("job", second).output
    assert here.run("cancel", second).output == f"job {second} is cancelled\n"
    watched = here.run("watch", second)
    assert watched.code == ExitCode.ENDED_EARLY and watched.output == ""
    assert watched.errors.splitlines()[-2] == f"job {second} was cancelled by request"
    assert watched.errors.splitlines()[-1] == f"next: hostbench resume {second}"

    again = here.run("resume", second)
    assert (again.code, again.output) == (ExitCode.OK, f"{second}\n")
    stack.wait_until_measuring(first)
    assert here.run("cancel", first).output == f"job {first} ends within seconds\n"
    assert stack.orchestrator.wait_for(second)["state"] == "succeeded"


def test_a_running_job_is_cancelled_and_resumed(stack: Stack, here: Here) -> None:
    job = stack.submit(duration_s=1.5, trials=2)
    stack.wait_until_measuring(job)
    watching = stack.command.start("watch", job)
    ended = here.run("cancel", job, "--json")
    assert ended.document["id"] == job
    assert end_of(watching).code == ExitCode.ENDED_EARLY
    again = here.run("resume", job, "--wait")
    assert (again.code, again.output) == (ExitCode.OK, f"{job}\n")
    assert f"job {job} succeeded" in again.errors


def test_what_has_ended_is_not_cancelled(stack: Stack, here: Here) -> None:
    job = stack.done()
    ended = here.run("cancel", job)
    assert ended.code == ExitCode.USAGE
    assert f"job {job} is succeeded already: nothing is left to cancel" in ended.errors
    ended = here.run("resume", job)
    assert ended.code == ExitCode.USAGE
    assert f"job {job} is succeeded; only a lost, failed or cancelled" in ended.errors


# ---- watching ----


def test_watching_from_the_middle(stack: Stack) -> None:
    job = stack.submit(duration_s=1, trials=3)
    wait_until(lambda: any(event["event"] == "trial" for _, event in _recorded(stack, job)))
    program = stack.service.wait_for_program()
    os.kill(program, signal.SIGSTOP)  # until somebody watches
    process = stack.command.start("watch", job)
    assert process.stderr is not None
    errors = process.stderr.readline()
    os.kill(program, signal.SIGCONT)
    ended = rest_of(process)
    assert ended.code == ExitCode.OK
    errors += ended.errors
    for number in (1, 2, 3):
        assert errors.count(f"cpu.clock 1 thread #{number}: ") == 1
    assert "[1/1 cases] cpu.clock 1 thread: " in errors
    assert "Hz" in ended.output and ended.output.startswith(f"{job}: succeeded on {HOST}")


def _recorded(stack: Stack, job: str) -> list[tuple[str | None, dict[str, object]]]:
    """The first events of a running job, up to its first trial."""
    found = []
    for event_id, event in stack.orchestrator.events(job):
        found.append((event_id, event))
        if event["event"] in ("trial", "case"):
            break
    return found


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.sampled(3)
def test_who_stops_watching_does_not_stop_the_job(stack: Stack, signum: signal.Signals) -> None:
    job = stack.submit(duration_s=1, trials=5)
    process = stack.command.start("watch", job)
    assert process.stderr is not None
    while "#1: " not in (line := process.stderr.readline()):
        assert line, "it ended before a second trial"
    process.send_signal(signum)
    ended = rest_of(process)
    assert ended.code == 128 + signum
    assert ended.last_line == (
        f"hostbench: stopped watching ({signum.name}); the job continues: hostbench watch {job} "
        f"shows it again, hostbench cancel {job} cancels it"
    )
    assert stack.orchestrator.wait_for(job)["state"] == "succeeded"


def test_a_broken_connection_is_taken_up_again(stack: Stack) -> None:
    job = stack.submit(duration_s=1, trials=4)
    with BreakingProxy(stack.orchestrator.port).running() as proxy:
        process = stack.command.start("watch", job, "--url", f"http://127.0.0.1:{proxy.port}")
        assert process.stderr is not None
        seen = []
        while "#2: " not in (line := process.stderr.readline()):
            seen.append(line)
        seen.append(line)
        proxy.cut()
        ended = rest_of(process)
    text = "".join(seen) + ended.errors
    assert ended.code == ExitCode.OK and "Hz" in ended.output
    assert "trying again, the job continues" in text and "again\n" in text
    for number in (1, 2, 3, 4):
        assert text.count(f"cpu.clock 1 thread #{number}: ") == 1


def test_on_a_terminal(stack: Stack) -> None:
    before = stack.submit(duration_s=60)
    job = stack.submit(duration_s=1.2, trials=2)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hostbench", "watch", job],
        stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs,
        env=stack.command.environment | {"TERM": "xterm-256color"}, cwd=stack.root,
    )  # fmt: skip
    os.close(theirs)
    written = os.read(ours, 65536)
    stack.cancel(before)  # not before somebody watches
    written += read_terminal(ours)
    assert process.wait(60) == ExitCode.OK
    text = written.decode()
    assert "0/2" in text and re.search(r"\d s cpu\.clock 1 thread, trial \d", text)
    assert "\x1b[?25l" in text and "\x1b[?25h" in text, "the cursor comes back"
    assert "Hz" in text.rpartition("case")[2]


# ---- finding the orchestrator ----


def test_a_checkout_is_enough(stack: Stack, tmp_path: Path) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "api_key").write_text(API_KEY)
    (tmp_path / ".env").write_text(f"HOSTBENCH_PORT={stack.orchestrator.port}\n")
    command = Command(tmp_path)
    for name in ("HOSTBENCH_URL", "HOSTBENCH_API_KEY", "HOSTBENCH_API_KEY_FILE"):
        command.environment.pop(name, None)
    assert HOST in command.run("hosts").output


def test_a_wrong_key_is_one_line(here: Here, tmp_path: Path) -> None:
    wrong = tmp_path / "wrong"
    wrong.write_text("not-the-key-of-this-orchestrator")
    ended = here.run("jobs", "--json", key_file=wrong)
    assert ended.code == ExitCode.UNREACHABLE and len(ended.errors.splitlines()) == 1
    assert f"refuses the key from {wrong} (--key-file)" in ended.errors
    assert ended.document["error"]["exit_code"] == ExitCode.UNREACHABLE


def test_other_commands_do_not_load_the_client() -> None:
    code = (
        "import sys; from hostbench.cli.command_line import run_command_line; "
        "import hostbench.cli.commands; assert run_command_line(['--help']) == 0; "
        "print([name for name in ('httpx', 'hostbench.client') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=CHECKOUT, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_link_to_the_console(stack: Stack) -> None:
    printed = stack.command.run("console")
    assert printed.code == 0 and printed.output.startswith(
        f"{stack.orchestrator.url}/ui/login?link="
    )
    page = httpx.get(printed.output.strip())
    assert page.status_code == 200 and "Log in as api_key" in page.text
    printed_json = json.loads(stack.command.run("console", "--json").output)
    assert printed_json["url"] != printed.output.strip() and printed_json["valid_s"] > 0
