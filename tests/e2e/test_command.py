"""The command over the real program: what it prints, stores, lists and shows."""

import csv
import io
import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.judge.case import finished_case
from hostbench.judge.figure import Measured
from hostbench.model.registry import subsystem_names
from hostbench.results.store import JobDirectory
from tests.faults.command import Command, Ended, WithReport, end_of, read_terminal
from tests.unit.test_series import families

FORCE = ("--idle-policy", "force")
# A run as short as they get.
MOMENT = (
    "run", "--workload=cpu.clock", "--param=duration_s=0.05", "--param=warmup_s=0",
    "--param=threads=1", *FORCE,
)  # fmt: skip
SMALL = """
name: small
idle: {policy: force}
repeats: {min_trials: 2, max_trials: 2}
cases:
  - workload: cpu.fma
    params: {duration_s: 0.05, warmup_s: 0}
    grid: {dtype: [fp64, fp32], threads: [1, all]}
  - workload: cpu.fma
    params: {isa: LACKING}
"""
PAGE, KIB, GIB = 4096, 1 << 10, 1 << 30
FILL_ON_A_SLOW_DISK_S = GIB / 100e6
LACKING = "neon" if os.uname().machine == "x86_64" else "avx2"


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> Command:
    return WithReport(tmp_path_factory.mktemp("command"))


@pytest.fixture(scope="module")
def measured(command: Command) -> Ended:
    suite = command.results.parent / "small.yaml"
    suite.write_text(SMALL.replace("LACKING", LACKING))
    return command.run("run", str(suite))


def test_the_table(measured: Ended) -> None:
    assert measured.code in (ExitCode.OK, ExitCode.INVALID)
    lines = measured.output.splitlines()
    assert max(map(len, lines)) <= 80
    header = next(line for line in lines if re.match("case +figure", line))
    for column in ("figure", "within", "limit", "given", "verdict"):
        assert column in header
    subsystems = next(at for at, line in enumerate(lines) if line.startswith("best case"))
    assert subsystems < lines.index(header) and lines[subsystems + 1].startswith("cpu")
    rows = lines[lines.index(header) :]
    row = next(line for line in rows if re.match(r"cpu\.fma fp64 .*\d+\.\d+ Gop/s", line))
    assert "±" in row or "–" in row
    assert re.search(r"clean|noisy|disturbed|invalid", row)
    text = " ".join(" ".join(lines).split())
    assert f"{LACKING} needs" in text and "holds the true figure with 95.0 %" in text


def test_the_progress_goes_to_standard_error(measured: Ended) -> None:
    lines = measured.errors.splitlines()
    assert re.match(r"plan: 5 cases, 10 trials, \d+ s", lines[0])
    assert re.search(r"(?m)^\[1/10\] cpu\.fma fp64 1 thread #1: .*op/s", measured.errors)
    assert "[5/5 cases]" in lines[-3] and "skipped" in lines[-3]
    assert lines[-2].startswith("result: ") and lines[-2].endswith("result.json")
    assert lines[-1].startswith("report: ") and lines[-1].endswith("report.html")


def test_without_a_report(tmp_path: Path) -> None:
    """That of the interrupted job must not stand beside the result of the whole."""
    command = Command(tmp_path)
    ended = command.run(*MOMENT, "--trials=1")
    assert ended.last_line.startswith("result: ")
    (job,) = command.jobs()
    assert not (job / "report.html").exists()
    journal = (job / "journal.ndjson").read_text().splitlines(keepends=True)
    (job / "journal.ndjson").write_text("".join(journal[:-2]))
    (job / "result.json").unlink()
    (job / "report.html").touch()
    assert command.run("run", "--resume", "latest").last_line.startswith("result: ")
    assert not (job / "report.html").exists()


def test_show_says_the_same_again(command: Command, measured: Ended) -> None:
    assert command.run("show", "latest").output == measured.output


def test_wide_output(command: Command, measured: Ended) -> None:
    command.environment["COLUMNS"] = "120"
    lines = command.run("show", "latest").output.splitlines()
    command.environment["COLUMNS"] = "80"
    assert 80 < max(map(len, lines)) <= 120


def test_json_is_the_stored_document(command: Command, measured: Ended) -> None:
    shown = command.run("show", "latest", "--json")
    (job,) = command.jobs()
    assert shown.document == json.loads((job / "result.json").read_text())
    assert shown.document["schema"] == 2
    trial = shown.document["cases"][0]["trials"][0]
    assert [event["event"] for event in trial["events"]] == ["start", "end", "others"]


def test_the_stored_figures_are_those_of_the_stored_trials(
    command: Command, measured: Ended
) -> None:
    """Computed anew from its trials, and from what it took of other cases; verdicts and reasons
    too."""
    (path,) = command.jobs()
    progress = JobDirectory(path).progress()
    for case in progress.session.cases:
        done = progress.done[case.case]
        assert done.figures is not None
        again = finished_case(
            Measured(case, progress.session.workloads[case.workload], progress.trials[case.case]),
            progress.peer_trials.get(case.case, []),
            progress.idle.get(case.case),
            done.stopped,
            done.figures.others,
        )
        assert again == done


def test_csv_has_a_row_for_every_metric(command: Command, measured: Ended) -> None:
    rows = list(csv.DictReader(io.StringIO(command.run("show", "latest", "--csv").output)))
    primary = [row for row in rows if row["metric"] == "operations_per_second"]
    assert len(primary) == 4
    # A trial whose slices differ does not count.
    assert all(float(row["median"]) > 0 and row["n"] in ("1", "2") for row in primary)
    assert [row["verdict"] for row in rows if not row["metric"]] == ["skipped"]
    (job,) = command.jobs()
    assert (job / "result.csv").read_text() == command.run("show", "latest", "--csv").output


def test_samples_are_in_the_result(tmp_path: Path) -> None:
    command = Command(tmp_path)
    ended = command.run(
        "run", "--workload", "cpu.add_sub", "--param", "threads=8", "--param", "duration_s=0.6",
        "--param", "warmup_s=0", "--param", "sample_interval_s=0.1", "--trials", "1", *FORCE,
        "--json",
    )  # fmt: skip
    (case,) = ended.document["cases"]
    samples = [event for event in case["trials"][0]["events"] if event["event"] == "sample"]
    # Each at its tenth of a second, or one for several where the program was held up, which may
    # also make it end later.
    times = [sample["t_s"] for sample in samples]
    assert len(times) >= 2 and times == sorted(set(times))
    rows = list(
        csv.DictReader(io.StringIO(command.run("show", "latest", "--csv", "--samples").output))
    )
    assert [float(row["t_s"]) for row in rows] == [sample["t_s"] for sample in samples]
    # One in which the eight threads got nowhere has no rate.
    rates = [float(rate) for row in rows if (rate := row["operations_per_second"])]
    assert rates and min(rates) > 0


def test_list(command: Command, measured: Ended) -> None:
    (job,) = command.jobs()
    ended = command.run("list")
    assert any(line.startswith(f"{job.name} ") for line in ended.output.splitlines())
    assert command.run("list", "jobs").output == ended.output, "which Typer reads"
    (listed,) = command.run("list", "--json").document["jobs"]
    assert (listed["id"], listed["suite"], listed["cases"]) == (job.name, "small", 5)
    assert sum(listed["verdicts"].values()) == 5


def test_list_of_nothing(tmp_path: Path) -> None:
    command = Command(tmp_path)
    assert "hostbench run" in command.run("list").output
    assert command.run("list", "--json").document == {"jobs": []}
    assert not command.results.exists()


def test_list_suites_and_workloads(command: Command) -> None:
    assert "quick: " in command.run("list", "suites").output
    names = [suite["name"] for suite in command.run("list", "suites", "--json").document["suites"]]
    assert "cpu-600-samples" in names
    listed = command.run("list", "workloads").output
    assert "cpu.fma: " in listed and "mem.triad: " in listed
    naive = [line for line in listed.splitlines() if ".naive_" in line]
    assert naive and all("Naive: its figure misleads on purpose." in line for line in naive)
    assert listed.count("Naive: ") == len(naive)
    programs = command.run("list", "workloads", "--json").document["programs"]
    assert [one["program"] for one in programs] == [f"{name}-bench" for name in subsystem_names()]


SCALED = """
name: scaled
idle: {policy: force}
repeats: {min_trials: 1, max_trials: 1}
scales:
  quick: {params: {duration_s: 0.05, warmup_s: 0}}
  full: {params: {warmup_s: 0}, repeats: {min_trials: 2, max_trials: 2}}
cases:
  - workload: cpu.clock
    params: {threads: 1}
    scales: {full: {params: {duration_s: 0.1}}}
"""
BETWEEN = """
  - workload: net.tcp_stream
    params: {target: far_host, streams: 1}
    far_host: optional
"""


@pytest.mark.exhaustive
def test_a_suite_at_one_of_its_scales(tmp_path: Path) -> None:
    suite = tmp_path / "scaled.yaml"
    suite.write_text(SCALED)
    command = Command(tmp_path)
    durations_s = {None: 0.05, "quick": 0.05, "full": 0.1}
    for scale, duration_s in durations_s.items():
        scale_option = () if scale is None else ("--scale", scale)
        ended = command.run("run", str(suite), *scale_option, "--json")
        assert f"plan at scale {scale or 'quick'}: 1 case" in ended.errors
        recorded = ended.document["suite"]
        assert (recorded["scale"], recorded["scales"]) == (scale or "quick", {})
        (case,) = ended.document["cases"]
        assert case["params"]["duration_s"] == duration_s
        assert len(case["trials"]) == (2 if scale == "full" else 1)
    job = command.jobs()[-1].name
    assert "-scaled-" in job
    refused = command.run("run", "--resume", job, "--scale", "quick")
    assert refused.code == ExitCode.USAGE and "leave out --scale" in refused.last_line


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("scaled.yaml", "--scale", "ful"), "scaled has no scale 'ful'; did you mean 'full'?"),
        (("quick", "--scale", "full"), "suite quick has no scales, but 'full' is given"),
        (("--workload", "cpu.fma", "--scale", "full"), "'full' is a scale of a suite"),
    ],
)
@pytest.mark.sampled(3)
def test_a_scale_that_is_none(tmp_path: Path, arguments: tuple[str, ...], says: str) -> None:
    (tmp_path / "scaled.yaml").write_text(SCALED)
    ended = Command(tmp_path).run("run", *arguments)
    assert ended.code == ExitCode.USAGE
    assert says in ended.last_line
    assert len(ended.errors.splitlines()) == 1


def test_list_suites_tells_the_scales(tmp_path: Path) -> None:
    (tmp_path / "scaled.yaml").write_text(SCALED)
    command = Command(tmp_path, HOSTBENCH_SUITES=str(tmp_path))
    assert command.run("list", "suites").output.rstrip().endswith(" Scales: quick, full.")
    (listed,) = command.run("list", "suites", "--json").document["suites"]
    assert listed["scales"] == ["quick", "full"]


def test_a_case_without_its_second_host_is_skipped_with_the_reason(tmp_path: Path) -> None:
    suite = tmp_path / "between.yaml"
    suite.write_text(SCALED + BETWEEN.lstrip("\n"))
    command = Command(tmp_path)
    ended = command.run("run", str(suite), "--json")
    assert ended.code == ExitCode.OK
    here, between = ended.document["cases"]
    assert here["metrics"] and between["verdict"] == "skipped"
    (reason,) = between["reasons"]
    assert reason["code"] == "no_far_host" and "--far-host" in reason["text"]
    assert [trial["events"] for trial in between["trials"]] == [[]]
    assert "1 case skipped because there is no second host" in ended.errors
    page = command.run("report", "latest", "--format", "markdown")
    assert page.code == ExitCode.OK and reason["text"] in page.output
    required = suite.read_text().replace("optional", "required")
    suite.write_text(required)
    refused = command.run("run", str(suite))
    assert refused.code == ExitCode.USAGE and "--far-host" in refused.last_line


def test_json_of_a_run_is_one_document(tmp_path: Path) -> None:
    ended = Command(tmp_path).run(*MOMENT, "--trials", "1", "--json")
    assert ended.document["kind"] == "hostbench.result"


@pytest.mark.parametrize("arguments", [("show", "latest", "--json"), ("list",), ("--help",)])
@pytest.mark.sampled(3)
def test_a_reader_that_goes_away_is_no_noise(
    command: Command, measured: Ended, arguments: tuple[str, ...]
) -> None:
    process = command.start(*arguments)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(60) in (ExitCode.BROKEN_PIPE, ExitCode.OK)


def test_a_full_disk_behind_standard_output_is_one_line(command: Command, measured: Ended) -> None:
    with Path("/dev/full").open("w") as full:
        process = subprocess.Popen(
            [sys.executable, "-m", "hostbench", "show", "latest", "--json"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=command.environment,
        )
        _, errors = process.communicate(timeout=60)
    assert process.returncode == ExitCode.RESOURCE
    assert len(errors.splitlines()) == 1 and "No space left" in errors


def test_a_measurement_survives_the_reader_of_its_progress(tmp_path: Path) -> None:
    # As most users have it: what could not be written is tried again when the interpreter ends.
    command = Command(tmp_path, PYTHONUNBUFFERED="")
    process = command.start(
        "run", "--workload", "cpu.clock", "--param", "duration_s=0.3", "--param", "threads=1",
        "--trials", "2", *FORCE, "--json",
    )  # fmt: skip
    assert process.stdout is not None and process.stderr is not None
    process.stderr.close()
    document = json.loads(process.stdout.read())
    process.stdout.close()
    assert process.wait(60) == ExitCode.OK
    assert document["job"]["state"] == "succeeded"


@pytest.mark.parametrize("closed", ["0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"])
@pytest.mark.sampled(4)
def test_closed_standard_streams(tmp_path: Path, closed: str) -> None:
    command = Command(tmp_path)
    script = f"exec {sys.executable} -m hostbench {' '.join(MOMENT)} --trials 1 {closed}"
    done = subprocess.run(["sh", "-c", script], env=command.environment, capture_output=True)
    assert done.returncode == ExitCode.OK
    assert b"Traceback" not in done.stderr
    assert len(command.documents()) == 2


def test_an_ignored_sigchld_is_taken_back(tmp_path: Path) -> None:
    ended = Command(tmp_path).run(
        "run", "--workload", "cpu.fma", "--param", f"isa={LACKING}", *FORCE,
        preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN),
    )  # fmt: skip
    assert ended.code == ExitCode.NOTHING_RAN


def test_an_ascii_terminal(command: Command, measured: Ended) -> None:
    command.environment["PYTHONIOENCODING"] = "ascii"
    ended = command.run("show", "latest")
    del command.environment["PYTHONIOENCODING"]
    assert ended.code == 0 and "Gop/s" in ended.output


def test_on_a_terminal(tmp_path: Path) -> None:
    """Rich draws its bar on the terminal, takes it away, and the table is what remains."""
    command = Command(tmp_path, TERM="xterm-256color")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "hostbench", *MOMENT, "--trials", "2"],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        env=command.environment,
    )
    os.close(theirs)
    written = read_terminal(ours)
    assert process.wait(60) == ExitCode.OK
    text = written.decode()
    assert "0/2" in text and "trial 1" in text
    assert "\x1b[?25l" in text and "\x1b[?25h" in text, "the cursor comes back"
    assert "Hz" in text.rpartition("case")[2]


def cpu_seconds_of_children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_help_says_the_exit_codes_and_starts_fast(command: Command) -> None:
    began_s = cpu_seconds_of_children()
    ended = end_of(command.start("run", "--help"))
    used_s = cpu_seconds_of_children() - began_s
    # What it takes where nothing else runs: other work stretches the time, hardly this.
    assert used_s < 0.7
    for code in ExitCode:
        assert re.search(
            rf"^ *{code.value}  {re.escape(code.meaning)}$", ended.output, re.MULTILINE
        )


def test_the_course_of_disks_is_bounded_by_time_and_by_the_courses_totals() -> None:
    from hostbench.plan.suite import find_suite, load_suite
    from hostbench.run.job import set_up

    cases = set_up(load_suite(find_suite("disk-course")))[0].plan.cases
    assert all(case.params["duration_s"] == 1 and case.params["total_bytes"] for case in cases)
    planned = {
        name: {case.params[name] for case in cases}
        for name in ("block_bytes", "threads", "file_bytes", "cache_mode")
    }
    mib = 1 << 20
    blocks = {1, 8, 1024, 8192, mib, 8 * mib, 10 * mib, 80 * mib, 100 * mib}
    assert planned["block_bytes"] == blocks
    assert planned["threads"] == {1 << power for power in range(8)}
    assert planned["file_bytes"] == {GIB, 10 * GIB}
    assert {"direct+sync", "buffered+fsync_end"} <= planned["cache_mode"]
    writes = [case for case in cases if not case.workload.endswith("_read")]
    assert all(case.params["warmup_s"] == 0 and not case.peers for case in writes)


def test_the_networks_course_grid_has_all_its_blocks_and_totals() -> None:
    from hostbench.plan.suite import find_suite, load_suite
    from hostbench.run.job import set_up

    for name, target in (("net-course", "loopback"), ("net-two-hosts", "far_host")):
        cases = set_up(load_suite(find_suite(name)))[0].plan.cases
        assert {case.params["target"] for case in cases} == {target}
        totals = [case for case in cases if case.params.get("total_bytes")]
        planned = {
            (case.workload, case.params["block_bytes"], case.params["streams"]) for case in totals
        }
        for block, streams in (
            *((KIB, streams) for streams in (1, 2, 4, 8)),
            *((32 * KIB, streams) for streams in (1, 2, 4, 8)),
            *((1, streams) for streams in (1, 2)),
        ):
            assert {
                ("net.tcp_stream", block, streams),
                ("net.udp_stream", block, streams),
            } <= planned
        assert {("net.tcp_stream", 64 * KIB, streams) for streams in (1, 2, 4, 8)} <= planned
        assert {("net.udp_stream", 63 * KIB, streams) for streams in (1, 2, 4, 8)} <= planned
        assert {case.params["total_bytes"] for case in totals} == {GIB, 100 * GIB}
        assert all(case.params["duration_s"] == 1 for case in totals)
        million = [case for case in cases if case.params.get("work")]
        assert {case.params["work"] for case in million} == {1_000_000}
        assert {case.workload for case in million} == {"net.tcp_rr", "net.udp_rr"}
        assert {case.params["block_bytes"] for case in million} == {1}
        echoed = {(case.workload, case.params["block_bytes"]) for case in cases}
        assert {("net.tcp_rr", 64 * KIB), ("net.udp_rr", 63 * KIB)} <= echoed


def test_the_quick_suite_keeps_its_budget() -> None:
    from hostbench.plan.estimate import Plan
    from hostbench.plan.suite import Changes, changed, find_suite, load_suite
    from hostbench.run.job import set_up

    suite = load_suite(find_suite("quick"))
    alone, _programs = set_up(changed(suite, Changes(peers="none")))
    assert alone.plan.estimate().high_s <= 210
    setup, _programs = set_up(suite)
    plan = setup.plan
    assert plan.estimate().high_s <= 300
    memory = Plan(plan.suite, tuple(case for case in plan.cases if case.subsystem == "mem"))
    assert memory.estimate().low_s <= 45
    disk = [case for case in plan.cases if case.subsystem == "disk"]
    in_time = Plan(plan.suite, tuple(disk)).estimate()
    assert in_time.complete and in_time.low_s + FILL_ON_A_SLOW_DISK_S <= 45

    assert {case.params["file_bytes"] for case in disk} == {GIB}, "filled once"
    writing = [case for case in disk if "write" in case.workload or "fsync" in case.workload]
    assert all(float(case.params["duration_s"]) >= 1 for case in writing)
    net = Plan(plan.suite, tuple(case for case in plan.cases if case.subsystem == "net"))
    assert net.estimate().complete and net.estimate().low_s <= 30
    assert {case.params["target"] for case in net.cases} == {"loopback"}
    assert {"likwid-bench", "sysbench"} <= {tool for case in plan.cases for tool in case.peers}
    workloads = {case.workload for case in plan.cases}
    assert {"cpu.clock", "cpu.fma", "cpu.dot", "cpu.linpack"} <= workloads
    assert {"mem.read", "mem.write", "mem.copy", "mem.triad", "mem.pointer_chase"} <= workloads
    assert {
        f"net.{name}" for name in ("tcp_stream", "udp_stream", "tcp_rr", "udp_rr", "tcp_crr")
    } <= workloads


def test_the_series_of_a_run(command: Command, tmp_path: Path) -> None:
    """They are those of `hostbench report`; where they cannot be written, one line says how to do
    it later, and nothing of the job is lost."""
    target = tmp_path / "hostbench.prom"
    ended = command.run(*MOMENT, f"--openmetrics={target}")
    assert ended.code == ExitCode.OK, ended.errors
    reported = command.run("report", "latest", "--format", "openmetrics")
    assert reported.code == 0 and reported.output == target.read_text()
    found = families(reported.output)
    assert found["hostbench_headline_hertz"].samples[0].value > 0
    assert found["hostbench_job_end_time_seconds"].samples[0].labels["subsystem"] == "cpu"
    target.unlink()
    target.symlink_to(tmp_path / "gone" / "hostbench.prom")
    failed = command.run(*MOMENT, "--json", f"--openmetrics={target}")
    assert failed.code == ExitCode.RESOURCE
    (line,) = [one for one in failed.errors.splitlines() if one.startswith("hostbench: ")]
    job = failed.document["job"]["id"]
    assert f"hostbench report {job} --format openmetrics --output {target}" in line
    assert (command.results / job / "result.json").exists()


def test_series_without_a_reader_are_refused_before_the_run(command: Command) -> None:
    jobs = command.jobs()
    refused = command.run(*MOMENT, "--openmetrics=series.txt")
    assert refused.code == ExitCode.USAGE and "ends in .prom" in refused.last_line
    assert command.jobs() == jobs
