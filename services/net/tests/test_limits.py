"""The limits of a network trial: their values, their sources, and when there is none."""

from typing import Any

import pytest

from hostbench.judge.trial import above_limit
from hostbench.model.host import Interface, Network
from hostbench.model.limit import NAIVE_REASON, Limit
from services.net.goodput import FRAMING, tcp_share, udp_share
from services.net.limits import limits
from tests.unit.records import end, host, start

CARD = Interface(
    name="eth0",
    kind="ethernet",
    physical=True,
    duplex="full",
    mtu_bytes=1500,
    link_bits_per_second=10e9,
    link_source="eth0: 10000 Mbit/s",
)
VETH = Interface(
    name="eth0",
    kind="veth",
    physical=False,
    link_reason="eth0: veth devices have no real speed",
)


def found(
    network: Network | Interface | None = CARD,
    workload: str = "tcp_stream",
    facts: dict[str, str] | None = None,
    path_mtu: float | None = None,
    **params: Any,
) -> dict[str, Limit]:
    if isinstance(network, Interface):
        network = Network(interfaces=(network,))
    given = {"target": "far_host", "ip_version": "4", "direction": "send", "block_bytes": 1472}
    seen = {"interface": "eth0", "interface_mtu": "1500"} | (facts or {})
    trial = start(workload=workload, params=given | params, facts=seen)
    metrics = {} if path_mtu is None else {"path_mtu_bytes": path_mtu}
    return limits(host(network=network), trial, end().model_copy(update={"metrics": metrics}))


def of(*arguments: Any, **more: Any) -> Limit:
    (limit,) = found(*arguments, **more).values()
    return limit


def value(*arguments: Any, **more: Any) -> float:
    limit = of(*arguments, **more)
    assert limit.value is not None, limit.reason
    return limit.value


def reason(*arguments: Any, **more: Any) -> str:
    limit = of(*arguments, **more)
    assert limit.value is None and limit.reason is not None and limit.factors == ()
    return limit.reason


# ---- the share of the line ----


@pytest.mark.parametrize(
    ("mtu", "version", "tcp", "udp"),
    [(1500, 4, 94.15, 95.71), (1500, 6, 92.85, 94.41), (9000, 4, 99.00, 99.27),
     (9000, 6, 98.78, 99.05)],
)  # fmt: skip
def test_full_packets(mtu: int, version: int, tcp: float, udp: float) -> None:
    assert tcp_share(mtu, version, timestamps=True) * 100 == pytest.approx(tcp, abs=0.005)
    block = mtu - {4: 20, 6: 40}[version] - 8
    assert udp_share(mtu, version, block) * 100 == pytest.approx(udp, abs=0.005)


def test_without_timestamps_twelve_bytes_more_are_payload() -> None:
    assert tcp_share(1500, 4, timestamps=False) == pytest.approx(1460 / 1538)


def test_small_datagrams_fill_up_frames() -> None:
    # 1 + 8 + 20 is less than a frame may hold.
    assert udp_share(1500, 4, 1) == pytest.approx(1 / (46 + FRAMING))
    assert udp_share(1500, 4, 18) == pytest.approx(18 / (46 + FRAMING))
    assert udp_share(1500, 4, 19) == pytest.approx(19 / (47 + FRAMING))


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("block", [1, 1472, 1473, 2960, 8000, 63 * 1024, 65507])
def test_datagrams_in_fragments(version: int, block: int) -> None:
    """Against a model that cuts the datagram up piece by piece."""
    mtu, ip, extra = 1500, {4: 20, 6: 40}[version], {4: 0, 6: 8}[version]
    left, wire, frames = block + 8, 0, 0
    if left + ip <= mtu:
        wire = max(46, left + ip) + FRAMING
    else:
        while left > 0:
            piece = min(left, (mtu - ip - extra) // 8 * 8)
            wire += max(46, piece + ip + extra) + FRAMING
            left -= piece
            frames += 1
    assert udp_share(mtu, version, block) == pytest.approx(block / wire)
    if block == 63 * 1024 and version == 4:
        assert frames == 44


# ---- with a physical interface ----


def test_the_line_less_the_headers() -> None:
    limit = of()
    assert limit.unit == "byte/s"
    assert limit.value == pytest.approx(10e9 / 8 * 1448 / 1538)
    names = [factor.name for factor in limit.factors]
    assert names == ["line_speed", "bytes_per_bit", "goodput_share"]
    assert limit.factors[0].source == "eth0: 10000 Mbit/s"
    assert "MTU 1500, IPv4, TCP with timestamps" in limit.factors[2].source


def test_datagrams() -> None:
    assert value(workload="udp_stream") == pytest.approx(10e9 / 8 * 1472 / 1538)
    assert value(workload="udp_stream", block_bytes=1) == pytest.approx(10e9 / 8 / 84)
    six = value(workload="udp_stream", ip_version="6", block_bytes=1452)
    assert six == pytest.approx(10e9 / 8 * 1452 / 1538)


def test_the_smaller_mtu_counts() -> None:
    smaller = value(path_mtu=1400.0)
    assert smaller == pytest.approx(10e9 / 8 * 1348 / 1438) and smaller < value()
    assert value(path_mtu=9000.0) == value()
    # Of a connection that has not learnt it yet.
    assert value(path_mtu=0.0) == value()
    assert value(facts={"interface_mtu": ""}, path_mtu=1500.0) == value()


def test_by_the_address_where_the_version_is_left_open() -> None:
    six = value(ip_version="auto", facts={"far_address": "2001:db8::7"})
    assert six == pytest.approx(10e9 / 8 * 1428 / 1538)
    assert value(ip_version="auto", facts={"far_address": "192.0.2.7"}) == value()
    assert value(ip_version="auto") == value()


def test_a_host_without_timestamps() -> None:
    network = Network(interfaces=(CARD,), tcp_timestamps=False)
    assert value(network) == pytest.approx(10e9 / 8 * 1460 / 1538)


def test_both_directions_have_a_line_each() -> None:
    assert value(direction="both") == pytest.approx(2 * value())
    half = CARD.model_copy(update={"duplex": "half"})
    assert "full duplex" in reason(half, direction="both")
    assert value(half) == value()


def test_a_figure_above_it_is_found_out() -> None:
    limit = of()
    assert limit.value is not None
    for share, invalid in ((1.01, False), (1.03, True)):
        figures = {"bytes_per_second": limit.value * share}
        assert bool(above_limit(figures, {"bytes_per_second": limit}, [])) is invalid


# ---- what the user tells ----


def test_what_the_user_tells_comes_first() -> None:
    for interface in (CARD, VETH):
        rated = Network(interfaces=(interface,), user_bytes_per_second=1e9)
        limit = of(rated)
        (factor,) = limit.factors
        assert (limit.value, factor.source) == (1e9, "set by HOSTBENCH_NET_BANDWIDTH")
        assert value(rated, direction="both") == 2e9
    assert value(Network(user_bytes_per_second=1e9)) == 1e9


# ---- where there is none ----


@pytest.mark.parametrize("workload", ["tcp_rr", "udp_rr", "tcp_crr"])
def test_times_and_connections_have_none(workload: str) -> None:
    assert found(workload=workload) == {}


@pytest.mark.parametrize("target", ["loopback", "far_host"])
def test_a_naive_figure_is_held_against_none(target: str) -> None:
    assert reason(workload="naive_stream", target=target) == NAIVE_REASON


@pytest.mark.parametrize("workload", ["tcp_stream", "udp_stream"])
def test_the_loopback_has_none(workload: str) -> None:
    rated = Network(interfaces=(CARD,), user_bytes_per_second=1e9)
    assert "loopback has no line" in reason(rated, workload, target="loopback")


def test_why_it_is_not_known() -> None:
    assert "HOSTBENCH_NET_BANDWIDTH" in reason(VETH) and "veth devices" in reason(VETH)
    assert "before hostbench looked" in reason(None)
    assert "(eth9)" in reason(facts={"interface": "eth9"})
    assert "none that the trial reports" in reason(facts={"interface": ""})
    assert "interface_mtu" in reason(facts={"interface_mtu": ""})
    assert "interface_mtu" in reason(facts={"interface_mtu": "large"})
    assert "block_bytes" in reason(workload="udp_stream", block_bytes=0)
    infiniband = CARD.model_copy(update={"kind": "infiniband"})
    assert "framing of infiniband" in reason(infiniband)
