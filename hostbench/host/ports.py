"""The least cycles of a sequence of instructions, by the ports that its µops can use.

An instruction is one or more µops, and each µop can use any one port of a set. In the best case the
scheduler spreads them perfectly and nothing waits for a result. Then a set S of ports is busy for
(µops that can go to S only) / |S| cycles. No sequence is faster than its busiest set, or than the
front end, which issues a fixed number of µops a cycle.

Hall's theorem on bipartite matchings shows that the busiest set is also reached. The same bound is
behind the port-usage inference of Abel and Reineke, "uops.info" (ASPLOS'19), and the throughput
bound of OSACA.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import Annotated, NamedTuple

from pydantic import BeforeValidator

ELIMINATED = "eliminated"
MICRO_OPS = re.compile(r"(?P<count>[1-9]\d*)\*(?P<ports>[a-z]+[0-9A-F]+)(?:\[(?P<cycles>[1-9])\])?")


@dataclass(frozen=True)
class MicroOps:
    """`count` equal µops. Each occupies one of `ports` for `cycles` cycles.

    No ports: the µop only takes its slot of the front end.
    """

    count: int
    ports: frozenset[str]
    cycles: int = 1

    def __str__(self) -> str:
        """Return the µops in words: `2 µops on p01`."""
        if not self.ports:
            return "eliminated at rename"
        held = f" for {self.cycles} cycles" if self.cycles > 1 else ""
        return f"{self.count} {'µop' if self.count == 1 else 'µops'} on {spelt(self.ports)}{held}"


Usage = tuple[MicroOps, ...]


def parse(text: object) -> Usage:
    """Return a usage from the table's notation: uops.info's `1*p05+2*p01`, where p05 means p0 or
    p5.

    Each character after the letters is one port (A is port 10). `[2]` after the ports: each µop
    keeps its port for two cycles. `eliminated`: the instruction is completed at rename.
    """
    if not isinstance(text, str):
        raise ValueError(f"{text!r} is no port usage: write text such as 1*p05")
    if text == ELIMINATED:
        return (MicroOps(1, frozenset()),)
    return tuple(_micro_ops(part) for part in text.split("+"))


def _micro_ops(text: str) -> MicroOps:
    found = MICRO_OPS.fullmatch(text)
    if not found:
        raise ValueError(
            f"{text!r} is no port usage: write µops*ports as in 1*p05, with [2] behind it when "
            f"each keeps its port for two cycles, or {ELIMINATED!r}"
        )
    letters = found["ports"].rstrip("0123456789ABCDEF")
    ports = frozenset(letters + port for port in found["ports"].removeprefix(letters))
    return MicroOps(int(found["count"]), ports, int(found["cycles"] or 1))


PortUsage = Annotated[Usage, BeforeValidator(parse)]


def spelt(ports: Iterable[str]) -> str:
    """Return ports in the table's notation: {p0, p1} is p01."""
    kinds: dict[str, str] = {}
    for name in sorted(ports):
        kinds[name[:-1]] = kinds.get(name[:-1], "") + name[-1]
    return " and ".join(letters + numbers for letters, numbers in kinds.items())


def in_words(usage: Usage) -> str:
    """Return one instruction's µops for people: `1 µop on p0 + 2 µops on p05`."""
    return " + ".join(str(each) for each in usage)


class Bound(NamedTuple):
    """The least cycles of a sequence, and what limits it, in words."""

    cycles: Fraction
    because: str
    of_front_end: bool = False


def bound(usages: Iterable[Usage], issue_width: int) -> Bound:
    """Return the least cycles of one pass of a sequence, given the usage of each of its
    instructions.

    `issue_width` is in µops a cycle.
    """
    micro_ops = [each for usage in usages for each in usage]
    # Of equal bounds the first counts: ports are more informative than the front end.
    return max((*_port_bounds(micro_ops), _front_end(micro_ops, issue_width)), key=_cycles)


def _cycles(found: Bound) -> Fraction:
    return found.cycles


def _front_end(micro_ops: Iterable[MicroOps], issue_width: int) -> Bound:
    slots = sum(each.count for each in micro_ops)
    return Bound(
        cycles=Fraction(slots, issue_width),
        because=f"the front end issues {issue_width} µops a cycle and these are {slots}",
        of_front_end=True,
    )


def _port_bounds(micro_ops: Iterable[MicroOps]) -> Iterable[Bound]:
    """Yield the bound of every set of ports that can be the busiest: a union of the µops' own
    sets."""
    placed = [each for each in micro_ops if each.ports]
    own = sorted({each.ports for each in placed}, key=lambda ports: (len(ports), spelt(ports)))
    for number in range(1, len(own) + 1):
        for chosen in combinations(own, number):
            ports: frozenset[str] = frozenset().union(*chosen)
            work = sum(each.count * each.cycles for each in placed if each.ports <= ports)
            yield Bound(Fraction(work, len(ports)), _busy(ports, work))


def _busy(ports: frozenset[str], work: int) -> str:
    cycles = f"{work} {'cycle' if work == 1 else 'cycles'} of work"
    if len(ports) == 1:
        return f"port {spelt(ports)} has {cycles}"
    return f"the {len(ports)} ports {spelt(ports)} have {cycles}"
