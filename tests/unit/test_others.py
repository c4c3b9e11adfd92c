"""Who used the CPUs beside a trial, and how a disturbed trial says so."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hostbench.host import processes
from hostbench.host.processes import OthersMeter, control_group, read_processes
from hostbench.judge.condition import condition_of
from hostbench.judge.culprit import culprit_of, group_name, taken_by
from hostbench.judge.figure import Measured
from hostbench.judge.statistics import describe
from hostbench.judge.trial import measured_trial
from hostbench.judge.verdict import case_verdict
from hostbench.model.events import DiskUse, DiskUser, OtherGroup, OtherProcesses, OthersEvent
from hostbench.model.result import ConditionState, Verdict
from hostbench.model.subsystem import Sensitivity
from tests.unit.records import RATE_METRIC, bare_trial, end, planned, start

SPIN = "while True: pass"
BECOME_A_STRANGER = """
import os
if os.fork():
    os._exit(0)
open("/proc/self/comm", "w").write("stranger")
print(os.getpid(), flush=True)
"""


def others(
    *busiest: OtherProcesses, cpu_s: float | None = None, unseen: bool = False
) -> OthersEvent:
    return OthersEvent(elapsed_s=2.0, cpus=2, cpu_s=cpu_s, busiest=busiest, unseen=unseen)


def process(
    command: str, cpu_s: float, processes: int = 1, *, kernel: bool = False
) -> OtherProcesses:
    return OtherProcesses(command=command, pid=7, processes=processes, cpu_s=cpu_s, kernel=kernel)


def test_a_stranger_is_found_and_our_own_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stranger's parent ends at once, so it is no descendant of this process."""
    monkeypatch.setattr(processes, "BUSIEST_SHOWN", 1000)  # other tests keep the host busy
    own = subprocess.Popen([sys.executable, "-c", SPIN])
    stranger = subprocess.Popen(
        [sys.executable, "-c", f"{BECOME_A_STRANGER}\n{SPIN}"],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert stranger.stdout is not None
    pid = int(stranger.stdout.readline())
    try:
        meter = OthersMeter()
        until = time.monotonic() + 30
        before_s = read_processes(Path("/proc"))[pid].cpu_s
        while read_processes(Path("/proc"))[pid].cpu_s < before_s + 1.0:
            assert time.monotonic() < until
            time.sleep(0.1)
        found = meter.taken()
    finally:
        os.kill(pid, 9)
        own.kill()
        own.wait()
        stranger.wait()
        stranger.stdout.close()
    (strangers,) = [one for one in found.busiest if one.command == "stranger"]
    assert (strangers.pid, strangers.processes) == (pid, 1) and strangers.cpu_s >= 0.9
    assert found.cpu_s is not None and found.cpu_s > 0.9 * strangers.cpu_s - 0.1
    # Next to all that a loop of Python does is in its own code.
    assert found.user_s is not None and 0.5 * strangers.cpu_s < found.user_s <= found.cpu_s + 0.1


def test_who_had_the_disk(tmp_path: Path) -> None:
    """A stranger that writes past the page cache, beside a child of ours that writes less."""
    writes = "with open(sys.argv[1], 'wb') as file:\n" + "".join(
        f"    {line}\n"
        for line in (
            "file.write(bytes(int(sys.argv[2])))",
            "file.flush()",
            "os.fsync(file.fileno())",
            "print('done', flush=True)",
            "time.sleep(60)",
        )
    )
    theirs = f"import sys, time{BECOME_A_STRANGER}{writes}"
    meter = OthersMeter(disks=True)
    stranger = subprocess.Popen(
        [sys.executable, "-c", theirs, str(tmp_path / "theirs"), str(3 << 20)],
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert stranger.stdout is not None
    pid = int(stranger.stdout.readline())
    try:
        assert stranger.stdout.readline() == "done\n"
        ours = [sys.executable, "-c", f"import os, sys\n{writes.replace('time.sleep(60)', '')}"]
        subprocess.run(
            [*ours, str(tmp_path / "ours"), str(1 << 20)], check=True, stdout=subprocess.DEVNULL
        )
        found = meter.taken()
    finally:
        os.kill(pid, 9)
        stranger.wait()
        stranger.stdout.close()
    if found.disk is not None and found.disk.own_bytes == 0:
        pytest.skip("the file system of temporary files is in memory")
    assert found.disk is not None and found.disk.own_bytes >= 1 << 20
    (user,) = [one for one in found.disk.busiest if one.command == "stranger"]
    assert user.pid == pid and user.disk_bytes >= 3 << 20
    assert OthersMeter().taken().disk is None


def disk_use(own_bytes: int, *busiest: DiskUser) -> OthersEvent:
    total = sum(one.disk_bytes for one in busiest)
    use = DiskUse(own_bytes=own_bytes, others_bytes=total, busiest=busiest)
    return others(cpu_s=0.0).model_copy(update={"disk": use})


def test_a_disk_that_others_use_is_shared() -> None:
    dd = DiskUser(command="dd", pid=7, processes=1, disk_bytes=30, group="/docker/backup")
    tar = DiskUser(command="tar", pid=8, processes=2, disk_bytes=10)
    busy = bare_trial(events=(start(), end(100.0, clean_slice_ratio=None), disk_use(60, dd, tar)))
    judged = measured_trial(busy, (RATE_METRIC,), {}, Sensitivity.WAKING)
    assert judged.verdict is Verdict.DISTURBED
    assert judged.reasons[0].text == (
        "other processes moved 40.0 % of the bytes transferred to and from disks in the meantime "
        "(at most 5 % is tolerated), most of all dd, pid 7, of backup, on the disk"
    )
    found = condition_of(Measured(planned(), (RATE_METRIC,), [judged]))
    assert found is not None and found.state is ConditionState.SHARED
    assert found.share == pytest.approx(0.4) and found.is_sure
    assert found.culprit == "dd, pid 7, of backup, on the disk"
    for quiet in (disk_use(60), disk_use(0), others(cpu_s=0.0)):
        alone = bare_trial(events=(start(), end(100.0, clean_slice_ratio=None), quiet))
        assert measured_trial(alone, (RATE_METRIC,), {}, Sensitivity.WAKING).reasons == ()


@pytest.mark.parametrize(
    ("seen", "sentence"),
    [
        (
            others(process("stress-ng", 1.9), cpu_s=2.0),
            "stress-ng (pid 7) used 95.0 % of a CPU in the meantime",
        ),
        (
            others(process("kworker/0:1", 0.4, kernel=True), cpu_s=0.5),
            "kworker/0:1 (kernel thread, pid 7) used 20.0 % of a CPU in the meantime",
        ),
        (
            others(process("cc1", 1.9, 4), cpu_s=2.0),
            "cc1 (4 processes, such as pid 7) used 95.0 % of a CPU in the meantime",
        ),
        (
            others(process("sh", 0.1), cpu_s=3.0),
            "other processes used 150.0 % of a CPU in the meantime; the busiest: "
            "sh (pid 7) used 5.0 % of a CPU",
        ),
        (
            others(cpu_s=3.0),
            "other processes used 150.0 % of a CPU in the meantime, each for a short time",
        ),
        (
            others(process("sh", 0.1), cpu_s=3.0, unseen=True),
            "processes outside this container used 150.0 % of a CPU in the meantime",
        ),
    ],
)
def test_the_culprit_in_words(seen: OthersEvent, sentence: str) -> None:
    reason = taken_by(seen)
    assert reason is not None and reason.text == sentence


CONTAINER = f"/system.slice/docker-{'3fa9c12b7d01' + 52 * '0'}.scope"


def test_the_culprit_and_its_control_group() -> None:
    """A name that used half, with its group; else the group that did; else the busiest name."""
    hog = process("stress-ng", 1.9).model_copy(update={"group": CONTAINER})
    assert culprit_of([others(hog, cpu_s=2.0)]) == (
        "stress-ng, pid 7, of docker-3fa9c12b7d01",
        True,
    )
    group = OtherGroup(group=CONTAINER, processes=9, cpu_s=1.8)
    several = others(process("cc1", 0.8), process("as", 0.6), process("ld", 0.4), cpu_s=2.0)
    build = several.model_copy(update={"busiest_group": group})
    assert culprit_of([build]) == ("control group docker-3fa9c12b7d01", True)
    assert culprit_of([several]) == ("cc1, pid 7", False)
    assert culprit_of([others(cpu_s=2.0)]) == ("processes that ran for a short time", False)
    assert group_name("/kubepods.slice/kubepods-pod1.slice/") == "kubepods-pod1"


def test_the_control_group_of_a_process(tmp_path: Path) -> None:
    """Of version 2, of version 1, of both, of the root, and where the kernel does not tell."""
    written = {
        "1": ("0::/system.slice/cron.service\n", "/system.slice/cron.service"),
        "2": ("4:memory:/m\n3:cpu,cpuacct:/a:b\n1:name=systemd:/s\n", "/a:b"),
        "3": ("3:cpu,cpuacct:/jobs/1\n0::/init.scope\n", "/jobs/1"),
        "4": ("0::/\n", None),
        "5": ("garbage\n", None),
    }
    for pid, (text, group) in written.items():
        (tmp_path / pid).mkdir()
        (tmp_path / pid / "cgroup").write_text(text)
        assert control_group(tmp_path, int(pid)) == group, text
    assert control_group(tmp_path, 6) is None


def test_no_process_is_named_without_a_load() -> None:
    assert taken_by(None) is None
    assert taken_by(others(process("cron", 0.02), cpu_s=0.03)) is None
    assert taken_by(others(cpu_s=None)) is None


def test_a_trial_that_was_crowded_out_names_who_did_it() -> None:
    hog = others(process("stress-ng", 1.9), cpu_s=2.0)
    for disturbance, codes in (
        ({"cpu_ratio": 0.5}, ["cpu_taken_away", "taken_by"]),
        ({"steal_s": 0.5}, ["stolen"]),
        ({}, []),
    ):
        events = (start(), end(100.0, **disturbance), hog)
        trials = [
            measured_trial(bare_trial(index, events=events), (RATE_METRIC,), {})
            for index in range(3)
        ]
        assert [reason.code for reason in trials[0].reasons] == codes
        verdict, reasons = case_verdict(
            Measured(planned(), (RATE_METRIC,), trials), describe([100.0] * 3), None
        )
        assert verdict is (Verdict.DISTURBED if codes else Verdict.CLEAN)
        assert [reason.code for reason in reasons] == codes
