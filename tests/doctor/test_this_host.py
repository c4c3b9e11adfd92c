"""The command on this host: held against independent witnesses, and shown to change nothing."""

import errno
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.doctor import calls
from hostbench.doctor.examination import all_checks
from hostbench.model.doctor import DoctorReport
from tests.faults.command import Command, Ended, end_of
from tests.faults.test_cgroup_limits import V2, group
from tests.patience import PATIENCE_S, SOON_S, wait_until

IS_ROOT = os.geteuid() == 0
ATTEMPTS = 4
needs_root = pytest.mark.skipif(not IS_ROOT, reason="namespaces and mounts need root")


@pytest.fixture
def command(tmp_path: Path) -> Command:
    return Command(tmp_path, PYTHONDONTWRITEBYTECODE="1")


def by_name(output: str) -> dict[str, dict[str, Any]]:
    return {one["check"]: one for one in json.loads(output)["findings"]}


def printed(*words: str, **options: Any) -> str:
    result = subprocess.run(words, capture_output=True, check=True, timeout=PATIENCE_S, **options)
    return str(result.stdout.decode().strip())


def cpu_mask(ranges: str) -> int:
    """The mask of a list such as 0-3,8."""
    mask = 0
    for part in ranges.split(","):
        first, _, last = part.partition("-")
        mask |= sum(1 << cpu for cpu in range(int(first), int(last or first) + 1))
    return mask


def inside(command: Command, *wrapper: str) -> dict[str, dict[str, Any]]:
    """The findings of a command that another command starts."""
    result = subprocess.run(
        [*wrapper, sys.executable, "-m", "hostbench", "doctor", "--json"],
        capture_output=True,
        text=True,
        env=command.environment,
        cwd=command.results.parent,
        timeout=60,
    )
    assert result.returncode == 0, result.stderr
    return by_name(result.stdout)


@dataclass(frozen=True)
class Examined:
    """What the command printed of this host, where nothing is made up, and what that took."""

    directory: Path
    ended: Ended
    took_s: float
    cpu_s: float

    @property
    def findings(self) -> dict[str, dict[str, Any]]:
        return by_name(self.ended.output)


@pytest.fixture(scope="module")
def examined(tmp_path_factory: pytest.TempPathFactory) -> Examined:
    directory = tmp_path_factory.mktemp("examined")
    command = Command(directory, PYTHONDONTWRITEBYTECODE="1")
    command.lock.write_text(json.dumps({"holder": {"job": "an-old-job", "pid": 1}}))
    started_s, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = end_of(command.start("doctor", "--json"))
    took_s, after = time.monotonic() - started_s, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Examined(directory, ended, took_s, cpu_s)


# ---- what it says ----


def test_what_it_says_is_what_others_say(examined: Examined) -> None:
    assert (examined.ended.code, examined.ended.errors) == (ExitCode.OK, "")
    found = examined.findings

    def evidence(check: str) -> str:
        return " ".join(str(one["value"]) for one in found[check]["evidence"])

    mask = int(printed("taskset", "-p", str(os.getpid())).rsplit(" ", 1)[1], 16)
    assert cpu_mask(found["cpuset"]["evidence"][0]["value"].split()[1]) == mask
    online = printed("getconf", "_NPROCESSORS_ONLN")
    if found["cpuset"]["state"] == "ok":
        assert f"all {online} CPUs" in found["cpuset"]["text"]
    assert f"soft {printed('sh', '-c', 'ulimit -n')}," in evidence("open_files")
    kind = printed("findmnt", "-n", "-o", "FSTYPE", "-T", str(examined.directory))
    assert f"type {kind}" in evidence("results_file_system")
    free = printed("df", "-B1", "--output=avail", str(examined.directory)).split()[-1]
    bytes_free = int(found["results_space"]["evidence"][0]["value"].split()[0])
    assert bytes_free == pytest.approx(int(free), rel=0.05)
    swap = printed("swapon", "--show=NAME", "--noheadings")
    assert (found["swap_in_use"]["text"] == "no swap") == (not swap)
    threads = re.search(r"Thread\(s\) per core: +(\d+)", printed("lscpu", env={"LC_ALL": "C"}))
    if threads:
        assert evidence("smt").startswith("1" if int(threads[1]) > 1 else "0")
    virtual = "hypervisor" in Path("/proc/cpuinfo").read_text()
    assert (found["virtual_machine"]["state"] == "notice") == virtual
    assert found["python"]["text"] == printed(sys.executable, "-V").removeprefix("Python ")
    assert found["programs"]["state"] == "ok", found["programs"]
    missing = [tool for tool in ("likwid-bench", "sysbench", "hpcc") if not shutil.which(tool)]
    assert all(tool in found["peers"]["text"] for tool in missing)


def test_settings_shown_as_evidence_say_that(examined: Examined) -> None:
    """Settings do not change by themselves: read again here, they say the same."""
    found = examined.findings
    settings = [
        one
        for finding in found.values()
        for one in finding["evidence"]
        if re.match(r"/proc/sys/|/sys/(devices|kernel|class|module)/", one["source"])
        and Path(one["source"]).is_file()
        and not one["source"].endswith("_count")  # of connections, which come and go
    ]
    assert len(settings) >= 10
    for one in settings:
        assert one["value"] == " ".join(Path(one["source"]).read_text().split()), one


def test_the_answers_of_the_calls_are_refusals() -> None:
    answers = calls.ask()
    refusals = {errno.EFAULT, errno.EPERM, errno.ENOSYS, errno.EACCES}
    assert answers.io_uring_errno in refusals
    assert answers.perf_event_errno in refusals
    assert answers.clock_resolution_s == time.clock_getres(time.CLOCK_MONOTONIC)


def test_the_form_of_the_report(command: Command) -> None:
    ended = command.run("doctor", "--json", "--subsystem", "net")
    document = json.loads(ended.output)
    assert list(document) == [
        "schema",
        "version",
        "hostname",
        "cpu",
        "time_unix_s",
        "window_s",
        "subsystem",
        "summary",
        "findings",
    ]
    assert (document["schema"], document["subsystem"]) == (1, "net")
    assert list(document["summary"]) == ["problem", "notice", "unknown", "ok"]
    assert sum(document["summary"].values()) == len(document["findings"])
    assert 0.9 < document["window_s"] < SOON_S
    for finding in document["findings"]:
        assert list(finding) == [
            "check",
            "topic",
            "title",
            "state",
            "text",
            "evidence",
            "remedy",
            "subsystems",
        ]
        assert "net" in finding["subsystems"]
        assert finding["evidence"], finding
        assert all((one["value"] is None) == bool(one["reason"]) for one in finding["evidence"])
    report = DoctorReport.model_validate_json(ended.output)
    assert report.model_dump_json(indent=1, by_alias=True) == ended.output.rstrip("\n")
    expected = {check.name for check in all_checks() if check.touches("net")}
    assert {finding["check"] for finding in document["findings"]} == expected


def test_the_text(command: Command) -> None:
    ended = command.run("doctor", "--subsystem", "cpu")
    assert ended.code == ExitCode.OK
    lines = ended.output.splitlines()
    assert max(map(len, lines)) <= 80
    assert "checks for cpu" in " ".join(lines[:2])
    assert re.fullmatch(r"\d+ problems?, \d+ notices?, \d+ ok, \d+ unknown", lines[-1])
    words = [line.split()[0] for line in lines if re.match(r"problem|notice|unknown|ok", line)]
    order = ["problem", "notice", "unknown", "ok"]
    assert words == sorted(words, key=order.index)
    counts = [int(number) for number in re.findall(r"\d+", lines[-1])]
    assert counts == [words.count(word) for word in ("problem", "notice", "ok", "unknown")]
    assert "\x1b" not in ended.output


def test_it_takes_its_second_and_little_more(examined: Examined) -> None:
    assert 1.0 <= examined.took_s < SOON_S
    # Most of it is the start of the interpreter. Unlike the time it hardly grows with the load.
    assert examined.cpu_s < 2.0


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["--subsystem", "cqu"], ["'cqu'", "did you mean 'cpu'?", "gpu"]),
        (["--subsystem", "CPU"], ["'CPU'", "cpu"]),
        (["--subsystem", ""], ["''", "cpu"]),
        (["--subsystem"], ["--subsystem"]),
        (["--csv"], ["--csv"]),
        (["extra"], ["extra"]),
        (["--jsn"], ["--jsn"]),
    ],
)
@pytest.mark.sampled(4)
def test_bad_input_is_one_line(command: Command, arguments: list[str], parts: list[str]) -> None:
    ended = command.run("doctor", *arguments)
    assert ended.code == ExitCode.USAGE
    assert len(ended.errors.splitlines()) == 1
    assert all(part in ended.errors for part in parts), ended.errors


def test_an_interrupt_ends_it_at_once(command: Command, tmp_path: Path) -> None:
    place = tmp_path / "patient"
    place.mkdir()
    (place / "sitecustomize.py").write_text(
        "import hostbench.doctor.examination as examination\nexamination.WINDOW_S = 600.0\n"
    )
    command.environment["PYTHONPATH"] += f"{os.pathsep}{place}"
    process = command.start("doctor")
    wait_until(lambda: sleeps(process.pid), lambda: "it does not watch the host")
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == ExitCode.INTERRUPTED
    assert (output, "Traceback" in errors) == ("", False)


def sleeps(pid: int) -> bool:
    """Whether a process does nothing for half a second."""
    for _ in range(25):
        if Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "S":
            return False
        time.sleep(0.02)
    return True


# ---- what it sees ----


def test_a_busy_program_is_seen_and_named(command: Command) -> None:
    with subprocess.Popen(["stress-ng", "--cpu", "1", "--timeout", "20s", "--quiet"]) as load:
        try:
            time.sleep(0.5)
            found = by_name(command.run("doctor", "--json").output)["busy_cpus"]
            for _ in range(ATTEMPTS):
                if len(found["evidence"]) > 1:  # beside other tests it may not stand out
                    break
                found = by_name(command.run("doctor", "--json").output)["busy_cpus"]
        finally:
            load.terminate()
    assert found["state"] == "problem"
    assert "stress-ng" in found["evidence"][1]["value"]


@pytest.fixture
def held_lock(command: Command) -> Iterator[Path]:
    command.lock.write_text(json.dumps({"holder": {"job": "a-job", "pid": 1, "user": "me"}}))
    with command.lock.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield command.lock


def test_another_run_is_seen_and_left_alone(command: Command, held_lock: Path) -> None:
    before = held_lock.read_bytes(), held_lock.stat().st_mtime_ns
    found = by_name(command.run("doctor", "--json").output)["other_run"]
    assert found["state"] == "problem", found
    assert f":{held_lock.stat().st_ino} " in found["evidence"][0]["value"]
    assert "a-job" in found["evidence"][1]["value"]
    assert (held_lock.read_bytes(), held_lock.stat().st_mtime_ns) == before


def test_a_free_lock_is_not_a_run(examined: Examined) -> None:
    found = examined.findings["other_run"]
    assert found["state"] in ("ok", "unknown"), found


def test_a_real_quota_is_seen(command: Command) -> None:
    settings = (
        {"cpu.max": "50000 100000"}
        if V2
        else {"cpu.cfs_quota_us": "50000", "cpu.cfs_period_us": "100000"}
    )
    with group("cpu", settings) as directory:
        join = f'echo $$ > "{directory}/cgroup.procs" && exec "$@"'
        found = inside(command, "sh", "-c", join, "sh")
    assert found["cpu_quota"]["state"] == "problem"
    assert found["cpu_quota"]["text"].startswith("0.5000 CPUs")
    assert str(directory) in found["cpu_quota"]["evidence"][0]["source"]


def test_a_smaller_affinity_low_limits_and_nice_are_seen(command: Command) -> None:
    first = min(os.sched_getaffinity(0))
    shell = 'ulimit -n 256; exec "$@"'
    found = inside(command, "taskset", "-c", str(first), "nice", "-n", "7", "sh", "-c", shell, "sh")
    if len(os.sched_getaffinity(0)) > 1:
        assert found["cpuset"]["state"] == "notice"
    assert f"Cpus_allowed_list {first}" in found["cpuset"]["evidence"][0]["value"]
    assert (found["open_files"]["state"], found["open_files"]["text"][:4]) == ("notice", "256:")
    assert found["priority"]["text"].startswith("nice 7")


@needs_root
def test_a_pid_namespace_makes_processes_unknown(command: Command) -> None:
    wrapper = ("unshare", "--pid", "--fork", "--mount-proc")
    command.lock.touch()
    found = inside(command, *wrapper)
    assert found["irqbalance"]["state"] == "unknown"
    assert found["other_run"]["state"] == "unknown"


@needs_root
def test_lost_capabilities_are_seen(command: Command) -> None:
    found = inside(command, "setpriv", "--bounding-set=-sys_nice,-ipc_lock", "--inh-caps=-all")
    assert found["capabilities"]["state"] == "notice"
    assert "SYS_NICE and IPC_LOCK" in found["capabilities"]["text"]


# ---- what it does not do ----

# fmt: off
CHANGING = frozenset(
    {
        "acct", "add_key", "adjtimex", "bind", "bpf", "chmod", "chown", "clock_settime",
        "connect", "copy_file_range", "creat", "delete_module", "fallocate", "fchmod",
        "fchmodat", "fchmodat2", "fchown", "fchownat", "finit_module", "flock",
        "fremovexattr", "fsetxattr", "fsync", "ftruncate", "init_module", "io_submit",
        "ioprio_set", "kexec_load", "keyctl", "kill", "lchown", "link", "linkat", "listen",
        "lremovexattr", "lsetxattr", "mkdir", "mkdirat", "mknod", "mknodat", "mount",
        "move_mount", "pivot_root", "ptrace", "pwrite64", "pwritev", "pwritev2", "quotactl",
        "reboot", "rename", "renameat", "renameat2", "removexattr", "rmdir",
        "sched_setaffinity", "sched_setattr", "sched_setparam", "sched_setscheduler",
        "sendfile", "sendmmsg", "sendmsg", "sendto", "setdomainname", "sethostname",
        "setns", "setpriority", "setrlimit", "settimeofday", "setxattr", "socket", "splice",
        "swapoff", "swapon", "symlink", "symlinkat", "sync", "syncfs", "tgkill", "tkill",
        "truncate", "umount2", "unlink", "unlinkat", "unshare", "utime", "utimensat",
        "utimes",
    }
)
# fmt: on
CALL = re.compile(r"^(?:\[pid +\d+\] |\d+ +)?(\w+)\((.*)$")


def test_it_changes_nothing(command: Command, tmp_path: Path) -> None:
    """Every system call of the command and of what it starts is looked at."""
    if shutil.which("strace") is None:
        pytest.skip("strace is not installed")
    trace = tmp_path / "trace"
    strace = ("strace", "-f", "-qq", "-y", "-s", "0", "-o", str(trace))
    command.lock.touch()
    result = subprocess.run(
        [*strace, sys.executable, "-m", "hostbench", "doctor"],
        capture_output=True,
        text=True,
        env=command.environment,
        cwd=tmp_path,
        timeout=100,
    )
    if "PTRACE" in result.stderr or "ptrace" in result.stderr:
        pytest.skip(f"strace may not trace here: {result.stderr}")
    assert result.returncode == 0, result.stderr
    lines = trace.read_text(errors="replace").splitlines()
    for seen in ('"/proc/locks"', '/cpu-bench"', "/cpufreq", "io_uring_setup"):
        assert any(seen in line for line in lines), f"the trace shows no {seen}"
    assert [line for line in lines if _changes(line)] == []
    assert sorted(path.name for path in tmp_path.iterdir()) == [command.lock.name, "trace"]


def _changes(line: str) -> bool:
    match = CALL.match(line)
    if match is None:
        return False
    name, rest = match.groups()
    if name in CHANGING:
        return True
    if name in ("open", "openat", "openat2"):
        writes = re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC|APPEND|TMPFILE)", rest)
        return bool(writes) and '"/dev/null"' not in rest
    if name in ("write", "writev"):
        return not re.match(r"[12]<|\d+<(pipe|anon_inode|/dev/null)", rest)
    if name == "fcntl":
        return bool(re.search(r"F_(OFD_)?SETLKW?|F_SETLEASE|F_ADD_SEALS", rest))
    if name == "prlimit64":
        return not re.match(r"\d+(<[^>]*>)?, \w+, NULL", rest)
    # A ring that is only set up, as disk-bench tries whether it may, does nothing until entered.
    return name in ("io_uring_enter", "perf_event_open") and "= -1 " not in rest


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        ('7 openat(AT_FDCWD</>, "/x", O_RDONLY|O_CLOEXEC) = 3</x>', False),
        ('7 openat(AT_FDCWD</>, "/x", O_RDWR|O_CREAT, 0644) = 3</x>', True),
        ('7 write(3</x>, "a", 1) = 1', True),
        ('7 write(1</dev/pts/0>, "a", 1) = 1', False),
        ("7 flock(3</x>, LOCK_SH) = 0", True),
        ("7 fcntl(3</x>, F_SETLK, {l_type=F_RDLCK}) = 0", True),
        ("7 fcntl(3</x>, F_GETFD) = 1", False),
        ("7 socket(AF_UNIX, SOCK_STREAM, 0) = 3<socket:[1]>", True),
    ],
)
def test_the_judge_of_the_trace(line: str, changes: bool) -> None:
    assert _changes(line) is changes


@needs_root
def test_it_works_where_nothing_can_be_written(command: Command) -> None:
    mount = "mount -o remount,bind,ro / && mount -t tmpfs -o ro tmpfs /dev/shm"
    shell = f'{mount} && ! touch "{command.results.parent}/x" 2>/dev/null && exec "$@"'
    found = inside(command, "unshare", "--mount", "sh", "-c", shell, "sh")
    assert found["results_space"]["state"] == "problem"
    assert "may not be written" in found["results_space"]["text"]
    assert found["scratch_directory"]["state"] == "problem"


def test_a_run_does_not_ask_it(tmp_path: Path) -> None:
    """Importing what `hostbench run` imports brings none of it."""
    code = (
        "import sys, hostbench.cli.app, hostbench.cli.commands, hostbench.cli.render;"
        "print([m for m in sys.modules if 'doctor' in m])"
    )
    assert printed(sys.executable, "-c", code, cwd=Path(__file__).parents[2]) == "[]"
