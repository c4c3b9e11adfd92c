"""Groups of CPUs that share something, found in the times of hand-overs and beside the kernel's."""

import random
from collections.abc import Callable
from itertools import combinations

from hostbench.model.host import Cache, HostInventory, Virtualisation
from hostbench.report.content import Block, Bullets, Paragraph
from services.cpu.sharing import Distances, sharing_blocks, steps
from tests.each import each
from tests.unit.records import host

METAL, GUEST = Virtualisation(hypervisor=False), Virtualisation(hypervisor=True)
KIND = {1: "Data", 2: "Unified", 3: "Unified"}


def measured(cpus: range | tuple[int, ...], time_s: Callable[[int, int], float]) -> Distances:
    """The time of each pair, 5 % of noise around it."""
    rng = random.Random(1)
    return {pair: time_s(*pair) * rng.uniform(0.95, 1.05) for pair in combinations(sorted(cpus), 2)}


def of_two_sockets(one: int, other: int) -> float:
    """Siblings are n and n + 8 of 16 CPUs, four cores share an L3 cache."""
    if one % 8 == other % 8:
        return 10e-9
    return 25e-9 if one % 8 // 4 == other % 8 // 4 else 110e-9


def with_caches(virtualisation: Virtualisation, **lists: tuple[str, ...]) -> HostInventory:
    caches = tuple(
        Cache(
            level=int(name[1]),
            type=KIND[int(name[1])],
            size_bytes=1 << 20,
            shared_by_cpus=None,
            instances=len(cpu_lists),
            cpu_lists=cpu_lists,
        )
        for name, cpu_lists in lists.items()
    )
    return host(caches=caches, virtualisation=virtualisation)


def texts_of(blocks: list[Block]) -> list[str]:
    (last,) = blocks[-1:]
    if isinstance(last, Bullets):
        return [str(item) for item in last.items]
    assert isinstance(last, Paragraph)
    return [str(last.text)]


SIBLINGS = tuple(f"{cpu},{cpu + 8}" for cpu in range(8))
TWO_L3 = ("0-3,8-11", "4-7,12-15")


def test_cores_and_caches_are_steps_of_their_own() -> None:
    cores, caches = steps(measured(range(16), of_two_sockets))
    assert cores.groups == {frozenset({cpu, cpu + 8}) for cpu in range(8)}
    assert caches.groups == {
        frozenset({*range(4), *range(8, 12)}),
        frozenset({*range(4, 8), *range(12, 16)}),
    }
    assert 9e-9 < cores.within_s < 11e-9 and 20e-9 < cores.between_s < 25e-9
    assert caches.within_s < 27e-9 and caches.between_s > 100e-9


def test_what_the_kernel_says_too_is_named() -> None:
    sound = with_caches(METAL, L1=SIBLINGS, L2=SIBLINGS, L3=TWO_L3)
    cores, caches = texts_of(list(sharing_blocks(measured(range(16), of_two_sockets), sound)))
    assert cores.startswith("CPUs 0,8; 1,9; 2,10; 3,11 and 4 more groups share L1 and L2, as the")
    assert caches.startswith("CPUs 0-3,8-11 and 4-7,12-15 share L3, as the kernel says: a hand")


def test_what_a_hypervisor_hides_or_invents_is_named() -> None:
    distances = measured(range(16), of_two_sockets)
    flat = with_caches(GUEST, L3=("0-15",))
    assert all(
        "the hypervisor hides" in one for one in texts_of(list(sharing_blocks(distances, flat)))
    )
    alike = measured(range(16), lambda one, other: 60e-9)
    (line,) = texts_of(list(sharing_blocks(alike, with_caches(GUEST, L3=TWO_L3))))
    assert line.startswith("The kernel says that CPUs 0-3,8-11 and 4-7,12-15 share L3; the times")
    assert "the hypervisor moves its CPUs" in line


def test_without_groups_the_range_stands_there() -> None:
    alike = measured((3, 64, 65), lambda one, other: 60e-9)
    (line,) = texts_of(list(sharing_blocks(alike, with_caches(METAL, L3=("0-127",)))))
    assert "rise without a jump" in line


@each("seed", range(20))
def test_noise_makes_no_groups(seed: int) -> None:
    """Of equal pairs, whose times vary by a fifth, and one that was held up."""
    rng = random.Random(seed)
    distances = {pair: 60e-9 * rng.uniform(0.9, 1.1) for pair in combinations(range(12), 2)}
    distances[rng.randrange(5), rng.randrange(6, 12)] *= 4
    assert steps(distances) == ()


def test_a_pair_that_was_held_up_hides_no_group() -> None:
    distances = dict(measured(range(16), of_two_sockets))
    distances[0, 1] *= 20
    assert [len(one.groups) for one in steps(distances)] == [8, 2]


@each("cpus", [(0, 1), tuple(range(66))], len)
def test_of_two_cpus_or_of_a_sample_there_are_no_groups(cpus: tuple[int, ...]) -> None:
    distances = dict(measured(cpus, of_two_sockets))
    if len(cpus) > 2:
        distances.popitem()
    assert steps(distances) == ()
    assert not list(sharing_blocks(distances, with_caches(METAL)))
