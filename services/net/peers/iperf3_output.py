"""iperf3's JSON output. Its middle may be missing: with many streams it is longer than the output
kept for a peer. The parts that count are flat objects at either end."""

import json
import re
from dataclasses import dataclass
from typing import Any, Self

from hostbench.base.errors import shown
from hostbench.programs.peer import BadOutput
from hostbench.programs.tools.reading import expect


@dataclass(frozen=True)
class Received:
    """What one end received."""

    bytes: int
    bytes_per_second: float

    @classmethod
    def of(cls, printed: dict[str, Any], what: str) -> Self:
        """Return the values of a sum. Raise BadOutput."""
        try:
            return cls(int(printed["bytes"]), float(printed["bits_per_second"]) / 8)
        except (KeyError, TypeError, ValueError) as error:
            raise BadOutput(f"{what} is not iperf3's: {type(error).__name__} {error}") from None


@dataclass(frozen=True)
class Report:
    """The options in force, and what arrived: at the far end, and in a test in both directions
    here, too."""

    requested: dict[str, Any]
    received: Received
    received_back: Received | None
    congestion: str | None

    def check(self, **requested: object) -> None:
        """Raise BadOutput unless it ran with these options."""
        for name, value in requested.items():
            expect(name, self.requested.get(name), value)

    def check_congestion(self, requested: str) -> None:
        """Raise BadOutput unless the sender used this congestion control."""
        expect("congestion control", self.congestion, requested)


def read_report(output: str) -> Report:
    """Return the report. Raise BadOutput when there is none, or with iperf3's own error."""
    failed = re.search(r'^\s*"error":\s*"((?:[^"\\]|\\.)*)"', output, re.MULTILINE)
    if failed:
        raise BadOutput(f"it says {shown(failed[1])}")
    received = _part("sum_received", output)
    if received is None:
        raise BadOutput("no sum_received in its output")
    back = _part("sum_received_bidir_reverse", output)
    congestion = re.search(r'"sender_tcp_congestion":\s*"(\w+)"', output)
    return Report(
        requested=_part("test_start", output) or {},
        received=Received.of(received, "sum_received"),
        received_back=None if back is None else Received.of(back, "sum_received_bidir_reverse"),
        congestion=congestion[1] if congestion else None,
    )


def _part(name: str, output: str) -> dict[str, Any] | None:
    """Return the last object of this name, which contains no other object."""
    found = re.findall(rf'"{name}":\s*(\{{[^{{}}]*\}})', output)
    if not found:
        return None
    try:
        part: dict[str, Any] = json.loads(found[-1])
    except json.JSONDecodeError as error:
        raise BadOutput(f"{name} is not JSON: {error}") from None
    return part
