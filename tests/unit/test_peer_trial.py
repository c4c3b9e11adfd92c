"""What others took while a peer ran, from the kernel's counts."""

import pytest

from hostbench.base.cpu_times import CpuTimes, parse_cpu_times
from hostbench.model.service import SessionPlace
from hostbench.model.trial import Beside
from hostbench.programs.peer_trial import Used, taken_by_others

BESIDE = Beside(cpus=(1, 1), rate=1.0, elapsed_s=1.0)
# user nice system idle iowait irq softirq steal, in hundredths of a second.
BEFORE = parse_cpu_times("cpu0 0 0 0 0 0 0 0 0\ncpu1 100 10 50 1000 7 1 1 4\nintr 5\n")
# On CPU 1 since then: 30 user, 10 nice, 40 kernel with interrupts, 16 idle or waiting, 4 stolen.
AFTER = parse_cpu_times("cpu0 900 0 0 0 0 0 0 0\ncpu1 130 20 80 1010 13 5 7 8\nintr 5\n")


def test_times_in_programs_own_code_are_distinguished() -> None:
    assert AFTER["cpu1"] == CpuTimes(total=1273, idle=1023, steal=8, user=150)


@pytest.mark.parametrize(
    ("kernel_works", "cpu_s", "user_s", "others"),
    [
        (False, 0.5, 0.3, 0.3),
        # What the kernel did may have been for the peer: only user code counts.
        (True, 0.5, 0.3, 0.1),
        (True, 0.8, 0.4, 0.0),
        # Counted in hundredths, it may come out below nothing.
        (False, 0.9, 0.5, 0.0),
        (True, 0.9, 0.5, 0.0),
    ],
)
def test_others_are_what_the_peer_is_not(
    kernel_works: bool, cpu_s: float, user_s: float, others: float
) -> None:
    used = Used(elapsed_s=1.0, cpu_s=cpu_s, user_s=user_s)
    found, stolen = taken_by_others(BEFORE, AFTER, BESIDE, used, kernel_works)
    assert found == pytest.approx(others)
    assert stolen == pytest.approx(0.04)


def test_what_is_not_reported_is_not_judged() -> None:
    used = Used(elapsed_s=1.0, cpu_s=0.5, user_s=0.3)
    assert taken_by_others({}, AFTER, BESIDE, used, kernel_works=True) == (None, None)
    moment = Used(elapsed_s=0.1, cpu_s=0.05, user_s=0.03)
    assert taken_by_others(BEFORE, AFTER, BESIDE, moment, kernel_works=True) == (None, None)


def test_cpus_of_a_server_that_it_brings_along_are_its_own() -> None:
    used = Used(elapsed_s=1.0, cpu_s=4.0, user_s=3.4)
    beside = BESIDE.model_copy(update={"cpus": (1,), "far_cpus": (0,)})
    # CPU 0 was used for 9 s of user code in one second of theirs: a made-up host.
    found, _ = taken_by_others(BEFORE, AFTER, beside, used, kernel_works=True)
    assert found == pytest.approx((9.0 + 0.4 - 3.4) / 2)
    # Between two hosts they are another host's.
    far = beside.model_copy(update={"far": SessionPlace(address="192.0.2.7", port=5201)})
    found, _ = taken_by_others(BEFORE, AFTER, far, used, kernel_works=True)
    assert found == 0
