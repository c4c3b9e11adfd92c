"""Simulated campaigns: hosts whose figures differ by a spread, and whose jobs differ as real ones
do."""

import random
from collections.abc import Callable, Mapping

from hostbench.model.baseline import HostKey
from hostbench.model.decision import CaseFigure, JobFigures
from hostbench.model.result import CampaignMember
from hostbench.model.summary import Verdict
from tests.unit.baseline_hosts import KEY, host_jobs, machine_of

BEGAN_UNIX_S = 1.7952e9
FACTS = {
    "kernel": "6.1.0",
    "firmware": "1.2 (2026-01-05)",
    "microcode": "0x2b000590",
    "stepping": "8",
    "memory channels": "8 × 4800 MT/s",
    "governor": "performance",
}
# Of a host's number: the place of a figure and by which share it is slower.
Slow = Mapping[int, tuple[int, float]]


def member(number: int, campaign: str = "qualify", cluster: str = "c0ffee") -> CampaignMember:
    """The part of a campaign that a host is."""
    return CampaignMember(
        campaign=campaign,
        engine="kubernetes",
        cluster=cluster,
        node=f"node-{number:04}",
        lock="host",
    )


def campaign(
    rng: random.Random,
    hosts: int,
    spread: float,
    slow: Slow | None = None,
    *,
    jobs: int = 1,
    within: float | None = None,
    key: HostKey = KEY,
    facts: Callable[[int], Mapping[str, str]] = lambda _number: {},
    factor: Callable[[int, str], float] = lambda _number, _workload: 1.0,
) -> list[JobFigures]:
    """The jobs of a campaign. `slow`: hosts that are slower in one figure; `within`: the deviation
    of jobs, None: as of real jobs; `facts`: what is different on a host; `factor`: by how much its
    figures of a workload are multiplied."""
    found = []
    for number in range(hosts):
        own = host_jobs(rng, number, spread, jobs, slow=(slow or {}).get(number), within=within)
        for at, job in enumerate(own):
            cases = {}
            for case, one in job.figures.items():
                value = one.value * factor(number, one.workload)
                cases[case] = CaseFigure(
                    case=case,
                    title=one.title,
                    workload=one.workload,
                    unit=one.unit,
                    direction=one.direction,
                    undisturbed=value,
                    headline=value,
                    low=value * 0.995,
                    high=value * 1.005,
                    limit=one.limit,
                    verdict=Verdict.CLEAN,
                )
            found.append(
                JobFigures(
                    job=f"20261120T2056{at:02}Z-full-{number:04x}",
                    suite="full",
                    host=f"node-{number:04}",
                    machine=machine_of(number),
                    is_guest=key.is_guest,
                    created_unix_s=BEGAN_UNIX_S + 60 * at + number / 10,
                    digest=f"sha256:{number:05}{at:02}",
                    versions=job.versions,
                    facts={"host": f"node-{number:04}", **FACTS, **facts(number)},
                    cases=cases,
                    key=key,
                    member=member(number),
                )
            )
    return found
