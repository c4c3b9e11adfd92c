"""Simulated fleets, and the result documents of jobs between two of their hosts."""

import functools
import hashlib
import math
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from hostbench.decisions.pair_rounds import Pair, link
from hostbench.decisions.pairs import Measurement
from hostbench.model.result import CampaignMember, FarHostRecord, Figure, ResultDocument, Verdict
from hostbench.results.sealed import sealed
from tests.unit.net_documents import planned_net, run_of
from tests.unit.report_documents import HOST

USUAL = 1.17e9
SPREAD = 0.01


@dataclass
class Network:
    """A network of racks of equally many hosts. `hosts`, `uplinks` and `links` have the factor of
    what is not sound; sound hosts and uplinks differ by SPREAD."""

    rng: random.Random
    racks_count: int = 8
    rack_size: int = 8
    noise: Sequence[float] = (0.0,)
    hosts: dict[str, float] = field(default_factory=dict)
    uplinks: dict[str, float] = field(default_factory=dict)
    links: dict[Pair, float] = field(default_factory=dict)
    together: float = 1.0
    slowest_part: bool = False

    def __post_init__(self) -> None:
        self.racks = {
            f"node{rack}{number:02}": f"rack{rack}"
            for rack in range(self.racks_count)
            for number in range(self.rack_size)
        }
        self.nodes = list(self.racks)
        self._sound = {
            name: math.exp(self.rng.gauss(0, SPREAD))
            for name in (*self.nodes, *self.racks.values())
        }

    def spoil(self, hosts: int = 0, uplinks: int = 0, links: int = 0) -> None:
        """Make so many of each a tenth to three tenths slower."""

        def factor() -> float:
            return 1 - self.rng.uniform(0.1, 0.3)

        self.hosts = {name: factor() for name in self.rng.sample(self.nodes, hosts)}
        racks = sorted(set(self.racks.values()))
        self.uplinks = {name: factor() for name in self.rng.sample(racks, uplinks)}
        while len(self.links) < links:
            a, b = self.rng.sample(self.nodes, 2)
            self.links[link((a, b))] = factor()

    def measured(self, pairs: Iterable[Pair], *, alone: bool = False) -> list[Measurement]:
        """One measurement of each pair."""
        return [Measurement(a, b, self.value(a, b, alone=alone), alone) for a, b in pairs]

    def value(self, a: str, b: str, *, alone: bool = False) -> float:
        across = self.racks[a] != self.racks[b]
        parts = [self.hosts.get(one, 1.0) * self._sound[one] for one in (a, b)]
        if across:
            racks = (self.racks[a], self.racks[b])
            parts += [self.uplinks.get(one, 1.0) * self._sound[one] for one in racks]
        parts.append(self.links.get(link((a, b)), 1.0))
        factor = min(parts) if self.slowest_part else math.prod(parts)
        crowd = self.together if across and not alone else 1.0
        return USUAL * factor * crowd * math.exp(self.rng.choice(self.noise))


@functools.cache
def whole() -> ResultDocument:
    """A job between two hosts: a stream and round trips, and a stream within the near host."""
    cases = (
        planned_net("tcp_stream", target="far_host", duration_s=1.0),
        planned_net("tcp_rr", target="far_host", duration_s=1.0),
        planned_net("tcp_stream", target="loopback", duration_s=1.0),
    )
    return run_of(cases, random.Random(5))


def machine(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:16]


def document(
    near: str,
    far: str,
    value: float,
    number: int,
    *,
    start_s: float = 0.0,
    cluster: str | None = None,
    campaign: str = "net-1",
    verdict: Verdict = Verdict.CLEAN,
    far_machine: str | None = None,
) -> ResultDocument:
    """The document of a job whose stream had this figure, begun so long after the first one."""
    base = whole()
    stream, trips, within = base.cases

    def of(case: Any, factor: float) -> Any:
        assert case.figure is not None
        figure = Figure.model_validate(case.figure.model_dump() | {"value": factor})
        first_s = min(trial.time_unix_s for trial in case.trials)
        trials = tuple(
            trial.model_copy(update={"time_unix_s": trial.time_unix_s - first_s + 1.8e9 + start_s})
            for trial in case.trials
        )
        return case.model_copy(update={"figure": figure, "verdict": verdict, "trials": trials})

    return sealed(
        base.model_copy(
            update={
                "digest": None,
                "host": HOST.model_copy(update={"hostname": near, "machine": machine(near)}),
                "far_host": FarHostRecord(
                    inventory=HOST.model_copy(
                        update={"hostname": far, "machine": far_machine or machine(far)}
                    ),
                    program=base.programs[0],
                    address="192.0.2.2",
                    near_address="192.0.2.1",
                ),
                "job": replace(
                    base.job,
                    id=f"20261126T{number:06}Z-net-{number % 65536:04x}",
                    created_unix_s=1.8e9 + start_s,
                    hostname=near,
                ),
                "cases": (of(within, 4e9), of(stream, value), of(trips, 40e-6 * USUAL / value)),
                "member": None
                if cluster is None
                else CampaignMember(
                    campaign=campaign, engine="slurm", cluster=cluster, node=near, lock="host"
                ),
            }
        )
    )
