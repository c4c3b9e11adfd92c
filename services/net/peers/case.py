"""What a peer must know about our case."""

from dataclasses import dataclass
from typing import Self

from hostbench.programs.peer import Params

TCP_STREAM, UDP_STREAM = "tcp_stream", "udp_stream"
TCP_RR, UDP_RR = "tcp_rr", "udp_rr"
STREAMS, ROUND_TRIPS = (TCP_STREAM, UDP_STREAM), (TCP_RR, UDP_RR)
RATE, ROUND_TRIP, MEAN_ROUND_TRIP = "bytes_per_second", "round_trip_s", "latency_mean_s"
SYSTEM = "system"
# The program's defaults, for a plan; a trial reports what it ran with.
_BLOCK_BYTES = {TCP_STREAM: 131_072, UDP_STREAM: 1472}
# Our UDP buffers have this size by default, which a tool without privileges cannot request.
UDP_BUFFER_BYTES = 4 << 20
_LOOPBACKS = {4: "127.0.0.1", 6: "::1"}


@dataclass(frozen=True)
class Case:
    """Sizes are bytes. `rate` is byte/s of all streams together (None: as fast as possible). A
    buffer of 0 is left to the kernel. `target` is auto until a trial has resolved it. `version` is
    the IP version."""

    workload: str
    target: str
    version: int
    streams: int
    block_bytes: int
    direction: str
    rate: float | None
    send_path: str
    receive_path: str
    udp_path: str
    congestion: str
    send_buffer_bytes: int
    receive_buffer_bytes: int
    spins: bool
    load_streams: int
    duration_s: float
    warmup_s: float

    @classmethod
    def of(cls, workload: str, params: Params) -> Self:
        """Return the case with these parameters, as a trial resolved them or as a suite has
        them."""
        buffer = UDP_BUFFER_BYTES if workload.startswith("udp_") else 0
        return cls(
            workload=workload,
            target=_word(params, "target", "auto"),
            version=6 if _word(params, "ip_version", "4") == "6" else 4,
            streams=int(_number(params, "streams", 1)),
            block_bytes=int(_number(params, "block_bytes", _BLOCK_BYTES.get(workload, 1))),
            direction=_word(params, "direction", "send"),
            rate=_number(params, "rate", 0.0) or None,
            send_path=_word(params, "send_path", "auto"),
            receive_path=_word(params, "receive_path", "auto"),
            udp_path=_word(params, "udp_path", "auto"),
            congestion=_word(params, "congestion", SYSTEM),
            send_buffer_bytes=int(_number(params, "send_buffer_bytes", buffer)),
            receive_buffer_bytes=int(_number(params, "receive_buffer_bytes", buffer)),
            spins=_word(params, "wait", "block") == "spin",
            load_streams=int(_number(params, "load_streams", 0)),
            duration_s=_number(params, "duration_s", 1.0),
            warmup_s=_number(params, "warmup_s", 0.1),
        )

    @property
    def udp(self) -> bool:
        """Whether it sends datagrams."""
        return self.workload.startswith("udp_")

    @property
    def protocol(self) -> str:
        """The protocol's usual name."""
        return "UDP" if self.udp else "TCP"

    @property
    def one_at_a_time(self) -> bool:
        """Whether it has one round trip after the other on a quiet path, like small tools."""
        return self.workload in ROUND_TRIPS and self.streams == 1 and self.load_streams == 0

    @property
    def loopback_address(self) -> str:
        """The address at which a server listens for this host only."""
        return _LOOPBACKS[self.version]


def _number(params: Params, name: str, default: float) -> float:
    """Return a given number, or `default` if it is left to the program."""
    value = params.get(name)
    return value if isinstance(value, int | float) else default


def _word(params: Params, name: str, default: str) -> str:
    value = params.get(name)
    return default if value is None else str(value)
