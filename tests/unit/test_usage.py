"""What a process says of itself."""

import os
import shutil
import subprocess
import time
from pathlib import Path

from hostbench.host.usage import ProcessMeter


def spin(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_cpu_time_counts_and_sleeping_does_not() -> None:
    meter = ProcessMeter("service")
    time.sleep(0.2)
    spin(0.1)
    taken = meter.taken()
    assert taken.component == "service"
    assert 0.1 <= taken.cpu_s < 0.2
    assert taken.elapsed_s >= 0.3
    assert taken.cpu_ratio < 0.5


def test_what_is_written_counts(tmp_path: Path) -> None:
    meter = ProcessMeter("service")
    with (tmp_path / "file").open("wb") as file:
        file.write(os.urandom(1 << 20))
        file.flush()
        os.fsync(file.fileno())
    written = meter.taken().written_bytes
    # tmpfs has no storage behind it.
    assert written is None or written == 0 or written >= 1 << 20


def test_what_a_child_writes_does_not_count(tmp_path: Path) -> None:
    """A program that measures a disk writes gigabytes."""
    meter = ProcessMeter("service")
    command = ["dd", "if=/dev/zero", f"of={tmp_path}/file", "bs=1M", "count=4", "conv=fsync"]
    subprocess.run(command, check=True, capture_output=True)
    written = meter.taken().written_bytes
    assert written is None or written < 1 << 20


def threads(proc: Path, **written: int) -> None:
    for name, number in written.items():
        (proc / "self/task" / name).mkdir(parents=True, exist_ok=True)
        text = f"rchar: 5\nwrite_bytes: {number}\ncancelled_write_bytes: 3\n"
        (proc / "self/task" / name / "io").write_text(text)


def test_a_difference_of_the_counters_of_all_threads(tmp_path: Path) -> None:
    threads(tmp_path, t1=1000, t2=500, t3=9000)
    meter = ProcessMeter("service", tmp_path)
    shutil.rmtree(tmp_path / "self/task/t3")
    threads(tmp_path, t1=5096, t2=500, t4=70)
    assert meter.taken().written_bytes == 4096 + 70


def test_a_counter_that_comes_late_tells_nothing(tmp_path: Path) -> None:
    meter = ProcessMeter("service", tmp_path)
    threads(tmp_path, t1=1000)
    assert meter.taken().written_bytes is None


def test_a_kernel_that_does_not_tell(tmp_path: Path) -> None:
    assert ProcessMeter("service", tmp_path).taken().written_bytes is None
