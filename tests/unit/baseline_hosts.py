"""Simulated hosts of one model: jobs with 40 figures, 12 of them headlines."""

import hashlib
import random
from collections.abc import Iterator

from hostbench.model.baseline import HostKey, MeasuredFigure, MeasuredJob

KEY = HostKey(
    cpu="A CPU",
    stepping=4,
    sockets=1,
    cpus=8,
    memory="2 × 4800 MT/s",
    virtualisation="m1.large",
    protocol=1,
)
# Headline workloads of the subsystems, as many cases as it takes for twelve, and others.
WORKLOADS = (
    *["cpu.fma"] * 3,
    *["mem.triad"] * 2,
    "mem.copy",
    "mem.read",
    "disk.seq_read",
    "disk.rand_read",
    "net.tcp_stream",
    "net.tcp_rr",
    "gpu.fma",
    *["cpu.add_sub"] * 20,
    *["mem.pointer_chase"] * 8,
)
# Job to job, as measured on quiet guests: the logarithm of a figure over the host's median.
WITHIN = 0.004


def machine_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:16]


def figures(
    rng: random.Random, levels: list[float], within: float = WITHIN
) -> Iterator[tuple[str, MeasuredFigure]]:
    for at, (workload, level) in enumerate(zip(WORKLOADS, levels, strict=True)):
        lower = workload in ("net.tcp_rr", "mem.pointer_chase")
        usual = 1e-7 * (at + 1) if lower else 1e9 * (at + 1)
        value = usual * (1 / level if lower else level) * rng.lognormvariate(0, within)
        yield (
            f"{at:08x}",
            MeasuredFigure(
                title=f"{workload} {at}",
                workload=workload,
                unit="s" if lower else "byte/s",
                direction="lower" if lower else "higher",
                value=value,
                limit=usual / 2 if lower else usual * 2,
            ),
        )


def host_jobs(
    rng: random.Random,
    number: int,
    spread: float,
    jobs: int = 1,
    slow: tuple[int, float] | None = None,
    within: float = WITHIN,
    **changes: object,
) -> list[MeasuredJob]:
    """Jobs of one host. `slow`: the figure at this place is so much slower."""
    levels = [rng.lognormvariate(0, spread) for _ in WORKLOADS]
    if slow is not None:
        levels[slow[0]] *= 1 - slow[1]
    return [
        MeasuredJob(
            job=f"20261120T2056{at:02}Z-full-{number:04x}",
            machine=machine_of(number),
            digest=f"sha256:{number:05}{at:02}",
            created_unix_s=1.8e9 + at,
            versions={"cpu": "0.1.0", "mem": "0.1.0"},
            key=KEY,
            facts={"microcode": "0x1", "memory": "64 GiB"},
            figures=dict(figures(rng, levels, within)),
        ).model_copy(update=changes)
        for at in range(jobs)
    ]


def many_jobs(rng: random.Random, hosts: int, spread: float, jobs: int = 3) -> list[MeasuredJob]:
    return [job for number in range(hosts) for job in host_jobs(rng, number, spread, jobs)]
