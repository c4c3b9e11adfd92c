"""What a process says of itself."""

import os
import time
from pathlib import Path

from hostbench.usage import ProcessMeter


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


def test_a_difference_of_the_counter(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self/io").write_text("rchar: 5\nwrite_bytes: 1000\ncancelled_write_bytes: 3\n")
    meter = ProcessMeter("service", tmp_path)
    (tmp_path / "self/io").write_text("rchar: 9\nwrite_bytes: 5096\ncancelled_write_bytes: 3\n")
    assert meter.taken().written_bytes == 4096


def test_a_counter_that_comes_late_tells_nothing(tmp_path: Path) -> None:
    meter = ProcessMeter("service", tmp_path)
    (tmp_path / "self").mkdir()
    (tmp_path / "self/io").write_text("write_bytes: 1000\n")
    assert meter.taken().written_bytes is None


def test_a_kernel_that_does_not_tell(tmp_path: Path) -> None:
    assert ProcessMeter("service", tmp_path).taken().written_bytes is None
