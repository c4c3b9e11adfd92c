"""Simulated hosts of one model: jobs with 40 figures, 12 of them headlines."""

import csv
import functools
import hashlib
import math
import random
import statistics
from collections.abc import Iterator

from hostbench.base.errors import UsageError
from hostbench.base.place import CHECKOUT
from hostbench.decisions.baseline import made_of
from hostbench.decisions.hostcheck import check_host
from hostbench.model.baseline import Baseline, HostKey, HostWord, MeasuredFigure, MeasuredJob

KEY = HostKey(
    cpu="A CPU",
    stepping=4,
    sockets=1,
    cpus=8,
    memory="2 × 4800 MT/s",
    virtualisation="m1.large",
    is_guest=True,
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
# The places of the CPU's headline figures.
CPU = (0, 1, 2)
# Figures of some ninety quiet jobs over half a day on one guest.
JOBS = CHECKOUT / "benchmarks/trust/results/amd/jobs.csv"
_LIKE = {
    "mem.triad": "mem.copy",
    "mem.read": "mem.copy",
    "disk.seq_read": "disk.rand_read",
    "gpu.fma": "cpu.fma",
}


@functools.cache
def residuals(workload: str) -> tuple[float, ...]:
    """How far figures of real jobs lie off their median: logarithms, the better the higher."""
    lines = [line for line in JOBS.read_text().splitlines() if not line.startswith("#")]
    measured = _LIKE.get(workload, workload)
    logs = [
        math.log(float(row["value"]))
        for row in csv.DictReader(lines)
        if row["plant"] == "none"
        and row["workload"] == measured
        and row["verdict"] in ("clean", "noisy")
    ]
    assert len(logs) > 80, workload
    middle, sign = statistics.median(logs), -1 if is_time(workload) else 1
    return tuple(sign * (log - middle) for log in logs)


def is_time(workload: str) -> bool:
    """Whether less is better."""
    return workload in ("net.tcp_rr", "mem.pointer_chase")


def machine_of(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()[:16]


def figures(
    rng: random.Random, levels: list[float], within: float | None
) -> Iterator[tuple[str, MeasuredFigure]]:
    for at, (workload, level) in enumerate(zip(WORKLOADS, levels, strict=True)):
        lower = is_time(workload)
        usual = 1e-7 * (at + 1) if lower else 1e9 * (at + 1)
        noise = rng.choice(residuals(workload)) if within is None else rng.gauss(0, within)
        factor = level * math.exp(noise)
        value = usual * (1 / factor if lower else factor)
        yield (
            f"{at:08x}",
            MeasuredFigure(
                title=f"{workload} {at}",
                workload=workload,
                unit="s" if lower else "byte/s",
                direction="lower" if lower else "higher",
                value=value,
                limit=usual / 3 if lower else usual * 3,
            ),
        )


def host_jobs(
    rng: random.Random,
    number: int,
    spread: float,
    jobs: int = 1,
    slow: tuple[int, float] | None = None,
    within: float | None = 0.004,
    **changes: object,
) -> list[MeasuredJob]:
    """Jobs of one host. `slow`: the figure at this place is so much slower. `within`: the deviation
    of jobs, None: jobs differ as real ones do."""
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
            key=KEY.model_copy(update={"is_guest": within is None}),
            facts={"microcode": "0x1", "memory": "64 GiB"},
            figures=dict(figures(rng, levels, within)),
        ).model_copy(update=changes)
        for at in range(jobs)
    ]


def many_jobs(
    rng: random.Random, hosts: int, spread: float, jobs: int = 3, within: float | None = 0.004
) -> list[MeasuredJob]:
    return [
        job
        for number in range(hosts)
        for job in host_jobs(rng, number, spread, jobs, within=within)
    ]


def sound_baseline(
    rng: random.Random, hosts: int, spread: float, jobs: int, within: float | None
) -> Baseline:
    """Of sound hosts, drawn again where they are refused, as some are by chance."""
    while True:
        try:
            return made_of(many_jobs(rng, hosts, spread, jobs=jobs, within=within))
        except UsageError:
            continue


def refused(
    hosts: int,
    spread: float,
    baselines: int,
    slow: float | None = None,
    jobs: int = 1,
    within: float | None = None,
) -> int:
    """How many of so many baselines of simulated guests are refused. `slow`: their first host is so
    much slower in a headline figure of the CPU, and the refusal names the host and the figure."""
    rng = random.Random(f"{hosts} {spread} {slow} {jobs} {within}")
    count = 0
    for _ in range(baselines):
        at = rng.choice(CPU)
        odd = (at, slow) if slow is not None else None
        measured = host_jobs(rng, 0, spread, jobs, slow=odd, within=within)
        for number in range(1, hosts):
            measured += host_jobs(rng, number, spread, jobs, within=within)
        try:
            made_of(measured)
        except UsageError as error:
            named = f"its host {machine_of(0)} ", f" in {WORKLOADS[at]} {at},"
            count += slow is None or all(words in error.message for words in named)
    return count


def called_low(
    hosts: int,
    spread: float,
    checked: int,
    slow: float | None = None,
    jobs: int = 1,
    within: float | None = None,
) -> int:
    """How many of `checked` simulated guests are called low, beside baselines of so many hosts that
    are drawn anew for every 20 of them. Jobs of one host differ as real ones do, or by `within`.
    `slow`: each is so much slower in a headline figure, of the CPU where jobs are real, and is
    called low in it."""
    rng = random.Random(1000 * hosts + int(spread * 100))
    a_baseline, low = 20, 0
    for _ in range(checked // a_baseline):
        known = sound_baseline(rng, hosts, spread, jobs, within)
        for number in range(a_baseline):
            of = CPU if within is None else range(12)
            at = (rng.choice(of), slow) if slow is not None else None
            host = host_jobs(rng, 9000 + number, spread, jobs, slow=at, within=within)
            found = check_host(host, known)
            words = {one.case: one.word for one in found.figures}
            word = found.word if at is None else words[f"{at[0]:08x}"]
            low += word is HostWord.LOW
    return low
