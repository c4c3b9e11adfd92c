"""A case as all parts of the network's section see it: its parameters and their names."""

from collections.abc import Iterator, Sequence

from hostbench.base.units import human
from hostbench.model.result import CaseResult
from hostbench.report.cases import median, name_of, number, requested
from hostbench.report.grouping import Params, resolved

STREAMS = ("tcp_stream", "udp_stream")
UDP_STREAM = "udp_stream"
ROUND_TRIPS = ("tcp_rr", "udp_rr")
CONNECTIONS = "tcp_crr"
KNOWN = (*STREAMS, *ROUND_TRIPS, CONNECTIONS)

COUNT, BLOCK, RATE, TOTAL = "streams", "block_bytes", "rate", "total_bytes"
TARGET, DIRECTION, WAIT = "target", "direction", "wait"
LOAD, LOAD_DIRECTION = "load_streams", "load_direction"
SEND_PATH, RECEIVE_PATH, UDP_PATH = "send_path", "receive_path", "udp_path"
CONGESTION, VERSION = "congestion", "ip_version"
_BUFFERS = ("send_buffer_bytes", "receive_buffer_bytes")
UDP_BUFFER_BYTES = 4 << 20
# The prefixes of figures that each direction of a case with both has for itself.
BOTH = ("send", "receive")

GOODPUT, OFFERED = "bytes_per_second", "offered_bytes_per_second"
LOST, ROUND_TRIP = "lost_ratio", "round_trip_s"
SAMPLED = "sampled"


def distinguishing(case: CaseResult) -> Params:
    """Return the parameters that the suite gives, without UDP's default buffers."""
    udp = name_of(case).startswith("udp")
    return {
        name: value
        for name, value in requested(case).items()
        if not (udp and name in _BUFFERS and value == UDP_BUFFER_BYTES)
    }


def bits(value: float | None) -> str:
    """Return a rate of bytes in bit/s, as is usual for networks."""
    return human(None if value is None else value * 8, "bit/s")


def target_of(case: CaseResult) -> str:
    """Return where the far end was, `loopback` or `far_host`; the requested target if nothing
    ran."""
    return str(resolved(case).get(TARGET) or "")


def is_both(case: CaseResult) -> bool:
    """Whether it sent and received at once."""
    return resolved(case).get(DIRECTION) == "both"


def is_loaded(case: CaseResult) -> bool:
    """Whether bulk streams ran beside its round trips."""
    return number(case, LOAD) is not None


def directions(case: CaseResult) -> Iterator[tuple[str, str]]:
    """Yield the prefix of its metrics and the name, for each direction that has its own."""
    yield "", ""
    if is_both(case):
        for one in BOTH:
            yield f"{one}_", one


def of_workloads(cases: Sequence[CaseResult], names: Sequence[str]) -> list[CaseResult]:
    """Return the cases of these workloads."""
    return [case for case in cases if name_of(case) in names]


def lost(case: CaseResult) -> float:
    """Return the largest share of datagrams lost in any direction."""
    found = (median(case, f"{prefix}{LOST}") for prefix, _ in directions(case))
    return max((value for value in found if value is not None), default=0.0)
