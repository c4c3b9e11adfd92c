"""Slow hosts, uplinks and links in simulated networks."""

import math
import random
import statistics

import pytest

from hostbench.decisions.pair_rounds import Suspects, matchings, tournament
from hostbench.decisions.pairs import (
    DEGREES_LEAST,
    HOST_MEASURED_MOST,
    Measurement,
    PairFit,
    _gamma_above,
    pair_matrix,
)
from hostbench.model.pairs import PairMatrix, PairWord
from tests.unit.pair_documents import USUAL, Network

_RNG = random.Random(1)
NORMAL = [_RNG.gauss(0, 0.03) for _ in range(500)]
# One of twenty is far below.
TAILS = [*NORMAL, *(-abs(_RNG.gauss(0, 0.15)) for _ in range(26))]


def campaign(network: Network, rounds: int = 8, looks: int = 3) -> tuple[PairMatrix, int]:
    """Judge random rounds, and what is measured next after that."""
    found = [
        one
        for pairs in matchings(network.nodes, rounds, network.racks)
        for one in network.measured(pairs)
    ]
    matrix = pair_matrix(found, network.racks)
    for _ in range(looks - 1):
        if not any(one.word is PairWord.SUSPECT for one in (*matrix.hosts, *matrix.uplinks)):
            break
        for one in matrix.next_rounds:
            found += network.measured(one.pairs)
        matrix = pair_matrix(found, network.racks)
    return matrix, len(found)


def slow(matrix: PairMatrix) -> tuple[set[str], set[str], set[tuple[str, str]]]:
    return (
        {one.host for one in matrix.hosts if one.word is PairWord.SLOW},
        {one.rack for one in matrix.uplinks if one.word is PairWord.SLOW},
        {(one.a, one.b) for one in matrix.links if one.word is PairWord.SLOW},
    )


def test_effects_are_those_that_were_planted() -> None:
    """With little noise the fit is nearly exact, beside the middle host of the rack."""
    network = Network(random.Random(1), racks_count=4, noise=[one / 30 for one in NORMAL])
    network.hosts = {"node003": 0.8, "node207": 1.1}
    network._sound = dict.fromkeys(network._sound, 1.0)
    network.uplinks = {"rack3": 0.7}
    found = [m for r in matchings(network.nodes, 8, network.racks) for m in network.measured(r)]
    fit = PairFit(found, [math.log(one.value) for one in found], network.racks)
    assert math.exp(fit.hosts["node003"].value) == pytest.approx(0.8, abs=2e-3)
    assert math.exp(fit.uplinks()["rack3"]) == pytest.approx(0.7, abs=2e-3)
    others = [v.value for name, v in fit.hosts.items() if name not in ("node003", "node207")]
    assert max(map(abs, others)) < 2e-3
    assert max(map(abs, fit.residuals)) < 6e-3


def test_the_stated_uncertainty_of_a_host_is_the_real_one() -> None:
    """Over 60 networks: the spread of a host's effect is what the fit says of it, within a
    quarter."""
    estimated, stated = [], []
    for number in range(60):
        network = Network(random.Random(number), noise=NORMAL)
        network._sound = dict.fromkeys(network._sound, 1.0)
        found = [
            m
            for r in matchings(network.nodes, 8, network.racks, number)
            for m in network.measured(r)
        ]
        fit = PairFit(found, [math.log(one.value) for one in found], network.racks)
        middles = fit._middles()
        for host in network.nodes[::9]:
            estimated.append(fit.hosts[host].value)
            stated.append(fit.host_variance(host) + middles[network.racks[host]])
    real = statistics.pstdev(estimated)
    assert real == pytest.approx(math.sqrt(statistics.fmean(stated)), rel=0.25)


@pytest.mark.parametrize("noise", [NORMAL, TAILS], ids=["normal", "long tails"])
def test_slow_hosts_and_uplinks_are_found_with_a_fifth_of_the_pairs(noise: list[float]) -> None:
    wrong = 0
    for seed in range(4):
        network = Network(random.Random(seed), noise=noise)
        network.spoil(hosts=3, uplinks=2)
        matrix, measured = campaign(network)
        hosts, uplinks, _ = slow(matrix)
        assert measured <= 0.2 * 64 * 63 / 2
        assert set(network.hosts) <= hosts and set(network.uplinks) <= uplinks
        wrong += len(hosts) + len(uplinks) - 5
        assert matrix.hosts and 0.12 < matrix.links_share < 0.2
    assert wrong <= 1


def test_where_all_is_sound_nothing_is_called_slow() -> None:
    found = [slow(campaign(Network(random.Random(seed), noise=TAILS))[0]) for seed in range(10)]
    assert sum(any(kinds) for kinds in found) <= 2, "at most one of twenty, by design"


def test_slow_links_are_found_by_the_tournament() -> None:
    network = Network(random.Random(3), racks_count=4, noise=NORMAL)
    network.spoil(hosts=1, links=3)
    found = [one for pairs in tournament(network.nodes) for one in network.measured(pairs)]
    matrix = pair_matrix(found, network.racks)
    for _ in range(4):
        for one in matrix.next_rounds:
            found += network.measured(one.pairs)
        matrix = pair_matrix(found, network.racks)
    assert matrix.links_share == 1
    assert slow(matrix)[2] == set(network.links)
    assert slow(matrix)[0] == set(network.hosts)


def test_a_rack_of_slow_hosts_is_no_slow_uplink() -> None:
    network = Network(random.Random(4), noise=NORMAL, hosts={f"node2{n:02}": 0.8 for n in range(8)})
    network.uplinks = {"rack5": 0.8}
    matrix, _ = campaign(network)
    racks = {one.rack: one for one in matrix.uplinks}
    assert {name for name, one in racks.items() if one.word is PairWord.SLOW} == {"rack2", "rack5"}
    assert racks["rack2"].whole_rack and not racks["rack5"].whole_rack
    assert racks["rack2"].inside_ratio == pytest.approx(0.64, rel=0.1)


def test_times_are_better_the_lower() -> None:
    network = Network(random.Random(5), noise=NORMAL, hosts={"node101": 0.75})
    found = [
        Measurement(one.near, one.far, 40e-6 * USUAL / one.value)
        for pairs in tournament(network.nodes)[:20]
        for one in network.measured(pairs)
    ]
    matrix = pair_matrix(found, network.racks, unit="s", direction="lower")
    assert slow(matrix)[0] == {"node101"}
    (host,) = [one for one in matrix.hosts if one.host == "node101"]
    assert host.ratio == pytest.approx(0.75, rel=0.05)


def test_without_racks_hosts_are_compared_with_all_others() -> None:
    network = Network(random.Random(6), racks_count=1, rack_size=24, noise=NORMAL)
    network.hosts = {"node011": 0.8}
    found = [m for r in matchings(network.nodes, 14) for m in network.measured(r)]
    matrix = pair_matrix(found)
    assert slow(matrix)[0] == {"node011"} and not matrix.uplinks
    assert all(one.rack is None for one in matrix.hosts)


def test_racks_of_two_hosts_have_no_uplink_to_judge() -> None:
    network = Network(random.Random(7), racks_count=8, rack_size=2, noise=NORMAL)
    found = [m for r in matchings(network.nodes, 10, network.racks) for m in network.measured(r)]
    matrix = pair_matrix(found, network.racks)
    assert not matrix.uplinks and matrix.undecided is None


def test_pairs_at_the_same_time_beside_pairs_alone() -> None:
    network = Network(random.Random(8), noise=NORMAL, together=0.6)
    rounds = matchings(network.nodes, 8, network.racks)
    found = [one for pairs in rounds for one in network.measured(pairs)]
    found += network.measured(rounds[0], alone=True) + network.measured(rounds[1], alone=True)
    matrix = pair_matrix(found, network.racks)
    within, across = matrix.at_once
    assert across.across and across.ratio == pytest.approx(0.6, rel=0.05)
    assert across.low < 0.6 < across.high
    assert not within.across and within.low < 1 < within.high


def test_a_campaign_of_pairs_alone_compares_nothing() -> None:
    network = Network(random.Random(8), noise=NORMAL)
    rounds = matchings(network.nodes, 8, network.racks)
    matrix = pair_matrix([m for r in rounds for m in network.measured(r, alone=True)])
    assert matrix.at_once == () and matrix.undecided is None


@pytest.mark.parametrize(
    ("pairs", "words"),
    [
        ([("a", "b")], "too few"),
        ([("a", "b"), ("c", "d")] * 20, "with each other alone"),
        ([(a, b) for a in "abc" for b in "xyz"] * 4, "two kinds"),
    ],
)
def test_what_cannot_be_decided(pairs: list[tuple[str, str]], words: str) -> None:
    rng = random.Random(9)
    matrix = pair_matrix([Measurement(a, b, USUAL * rng.gauss(1, 0.02)) for a, b in pairs])
    assert matrix.undecided is not None and words in matrix.undecided
    judged = (*matrix.hosts, *matrix.uplinks, *matrix.links)
    assert {one.word for one in judged} == {PairWord.UNKNOWN}
    assert not matrix.next_rounds


def test_suspects_come_before_links_and_not_for_ever() -> None:
    network = Network(random.Random(2), noise=TAILS)
    network.spoil(hosts=3)
    found = [m for r in matchings(network.nodes, 8, network.racks) for m in network.measured(r)]
    matrix = pair_matrix(found, network.racks)
    for _ in range(12):
        for one in matrix.next_rounds:
            found += network.measured(one.pairs)
        matrix = pair_matrix(found, network.racks)
    assert not matrix.next_rounds, "it ends"
    suspects = Suspects(tuple(h.host for h in matrix.hosts if h.word is PairWord.SUSPECT))
    assert all(
        one.measured >= HOST_MEASURED_MOST for one in matrix.hosts if one.host in suspects.hosts
    )


def test_the_sum_of_exponential_values() -> None:
    assert _gamma_above(3.0, 1) == pytest.approx(math.exp(-3.0))
    # scipy.stats.gamma.sf(15.1, 4)
    assert _gamma_above(15.1, 4) == pytest.approx(0.000195, rel=0.01)
    assert _gamma_above(0.0, 5) == 1.0


def test_so_few_measurements_have_no_noise() -> None:
    matrix = pair_matrix([Measurement("a", "b", USUAL)] * DEGREES_LEAST)
    assert matrix.links_share == 1
    assert len(matrix.links) == 1 and matrix.links[0].measured == DEGREES_LEAST
