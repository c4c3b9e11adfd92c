"""Where the trials of `hostbench verify` run, on hosts of any number of CPUs with any numbers."""

from itertools import pairwise

from hostbench.run.verification import placements
from tests.each import each

# Cpusets: two distant CPUs, some of several sockets, every second one, all of a large host.
HOSTS = ((0, 1), (5, 130), (3, 64, 65, 200), tuple(range(1, 256, 2)), tuple(range(384)))


@each("cpus", HOSTS, len)
def test_each_cpu_leads_and_works_alone_once_in_as_many_rounds(cpus: tuple[int, ...]) -> None:
    turns = [tuple(placements("cpu", cpus, position)) for position in range(len(cpus))]
    together = [all_at_once for all_at_once, _ in turns]
    assert all(sorted(one) == list(cpus) for one in together)
    assert sorted(first for first, *_ in together) == list(cpus)
    assert sorted(cpu for _, (cpu,) in turns) == list(cpus)


@each("cpus", HOSTS, len)
def test_checksums_of_two_trials_in_a_row_are_of_different_cpus(cpus: tuple[int, ...]) -> None:
    """The first CPU of a trial makes its checksum. Trials of one case follow each other."""
    for position in range(len(cpus)):
        firsts = [one[0] for one in placements("cpu", cpus, position)]
        assert all(before != after for before, after in pairwise(firsts))


def test_a_single_cpu_works_alone_without_a_second_trial() -> None:
    assert list(placements("cpu", (7,), 3)) == [(7,)]


@each("cpus", HOSTS, len)
def test_memory_is_tried_on_all_cpus_with_another_one_first(cpus: tuple[int, ...]) -> None:
    turns = [tuple(placements("mem", cpus, position)) for position in range(len(cpus))]
    assert all(sorted(one) == list(cpus) for (one,) in turns)
    assert sorted(one[0] for (one,) in turns) == list(cpus)


def test_a_gpu_needs_no_cpu_in_particular() -> None:
    assert list(placements("gpu", (5, 130), 1)) == [()]
