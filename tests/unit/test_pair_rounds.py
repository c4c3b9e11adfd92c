"""Which hosts meet in which round."""

import tracemalloc
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hostbench.decisions.pair_rounds import (
    Pair,
    Round,
    Suspects,
    link,
    matchings,
    pairs_of,
    retests,
    rounds_most,
    tournament,
)


def named(count: int) -> list[str]:
    return [f"n{number}" for number in range(count)]


def are_matchings(rounds: Sequence[Round], nodes: list[str], *, perfect: bool = True) -> None:
    """No host twice in a round; in a perfect one all meet, but for one of an odd number."""
    for one in rounds:
        busy = [host for pair in one for host in pair]
        assert len(busy) == len(set(busy)) and set(busy) <= set(nodes)
        assert not perfect or len(busy) == len(nodes) - len(nodes) % 2


def links(rounds: Sequence[Round]) -> Counter[Pair]:
    return Counter(link(pair) for one in rounds for pair in one)


@given(st.integers(2, 70))
def test_a_tournament_has_every_pair_once(count: int) -> None:
    nodes = named(count)
    rounds = tournament(nodes)
    assert len(rounds) == rounds_most(count)
    are_matchings(rounds, nodes)
    measured = links(rounds)
    assert len(measured) == pairs_of(count) and set(measured.values()) == {1}


@given(st.data(), st.integers(2, 60), st.integers(0, 9))
def test_random_rounds_are_matchings_without_a_pair_in_common(
    data: st.DataObject, count: int, racks_count: int
) -> None:
    nodes = named(count)
    rounds = data.draw(st.integers(1, rounds_most(count)))
    seed = data.draw(st.integers(0, 10**9))
    racks = {node: f"r{number % racks_count}" for number, node in enumerate(nodes) if racks_count}
    found = matchings(nodes, rounds, racks, seed)
    assert len(found) == rounds
    are_matchings(found, nodes)
    assert set(links(found).values()) == {1}
    assert found == matchings(nodes, rounds, racks, seed), "the same seed, the same rounds"


def test_ten_thousand_nodes_need_the_memory_of_the_rounds_requested() -> None:
    nodes = named(10_000)
    tracemalloc.start()
    found = matchings(nodes, 8)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    are_matchings(found, nodes)
    assert most < 50e6


def test_another_seed_gives_other_rounds() -> None:
    assert matchings(named(12), 3, seed=1) != matchings(named(12), 3, seed=2)


@pytest.mark.parametrize("size", [3, 4, 8])
def test_the_first_round_stays_within_the_racks(size: int) -> None:
    nodes = named(8 * size)
    racks = {node: f"r{number // size}" for number, node in enumerate(nodes)}
    first = matchings(nodes, 4, racks, seed=5)[0]
    within = sum(racks[a] == racks[b] for a, b in first)
    assert within == 8 * (size // 2), "of a rack of an odd size one host goes elsewhere"


@given(st.integers(0, 6), st.integers(0, 3), st.integers(0, 10), st.integers(1, 9), st.integers(0))
def test_retests_measure_each_suspect_so_often(
    hosts: int, uplinks: int, links_count: int, repeats: int, seed: int
) -> None:
    nodes = named(48)
    racks = {node: f"r{number // 8}" for number, node in enumerate(nodes)}
    every = [link(pair) for one in tournament(nodes) for pair in one]
    suspects = Suspects(
        tuple(nodes[:hosts]), tuple(f"r{n}" for n in range(uplinks)), tuple(every[:links_count])
    )
    good = set(nodes[hosts:])
    rounds = retests(suspects, good, racks, Counter(), repeats, seed)
    are_matchings(rounds, nodes, perfect=False)
    measured = links(rounds)
    by_host = Counter(host for pair in measured.elements() for host in pair)
    assert all(by_host[host] >= repeats for host in suspects.hosts)
    assert all(measured[one] >= repeats for one in suspects.links)
    assert sum(measured.values()) == repeats * (hosts + uplinks + links_count)


def test_a_suspect_meets_a_new_partner_each_time() -> None:
    nodes = named(10)
    measured = Counter({link(("n0", partner)): 1 for partner in nodes[1:6]})
    rounds = retests(Suspects(hosts=("n0",)), set(nodes[1:]), {}, measured, 4)
    partners = {host for one in rounds for pair in one for host in pair} - {"n0"}
    assert partners == {"n6", "n7", "n8", "n9"}


def test_without_a_good_partner_there_is_no_round() -> None:
    assert retests(Suspects(hosts=("n0",)), (), {}, Counter(), 3) == []
