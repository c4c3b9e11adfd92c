"""A campaign on a thousand simulated nodes beside the engine alone.

usage: python -m benchmarks.fleet.kubernetes [--readme]

Starts a real control plane with kwok (scripts/kubernetes.sh builds it), adds 1,000 nodes, and
measures in turn, for 250 and for 1,000 of them:

- alone: the same Jobs, made by kubectl, until the last one is complete;
- campaign: `hostbench fleet run --no-documents`, from its start to its exit: its time, the most
  memory that it had, and its calls to the API server.

Pods of the simulated nodes run for half a second. Writes the raw figures into results/, and with
--readme the table of README from what is there. Takes some four minutes.
"""

import csv
import dataclasses
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from lightkube.resources.batch_v1 import Job
from lightkube.resources.core_v1 import Pod

from benchmarks.figures import BENCHMARKS
from benchmarks.programs import ROOT
from benchmarks.tables import README
from hostbench.fleet.campaign import Campaign
from hostbench.fleet.kubernetes.objects import CAMPAIGN_LABEL, PodOptions, labels, node_job
from hostbench.model.suite import Suite, SuiteCase
from tests.fleet.cluster import Cluster
from tests.fleet.simulated import simulate

RAW = BENCHMARKS / "fleet/results/amd/kubernetes.csv"
SIZES = (250, 1000)
FAR = 10_000
IMAGE = "hostbench:simulated"
LIMIT_S = 3600.0
PLACE = "fleet: kubernetes"


@dataclass(frozen=True)
class Figure:
    """One row of the raw figures. `calls` and `peak_bytes`: of a campaign's client."""

    nodes: int
    side: str
    seconds: float
    calls: int | None = None
    peak_bytes: int | None = None


def measure(root: Path) -> Iterator[Figure]:
    """Yield the figures as they come."""
    with Cluster(root) as cluster:
        names = [f"n{i:05}" for i in range(max(SIZES))]
        cluster.add_nodes(names[: SIZES[0]], labels={"small": "yes"})
        cluster.add_nodes(names[SIZES[0] :])
        simulate(cluster)
        for size in SIZES:
            yield Figure(size, "alone", alone(cluster, names[:size]))
            yield campaign(cluster, root, size)


def alone(cluster: Cluster, names: list[str]) -> float:
    """Return how long the engine takes for the Jobs of a campaign."""
    suite = Suite(name="simulated", cases=(SuiteCase(workload="cpu.clock"),))
    made = Campaign(f"alone-{len(names)}", "uid", suite, tuple(names), time_limit_s=LIMIT_S)
    resources = {"cpu": "64000m", "memory": str(256 << 30)}
    items = [
        node_job(made, PodOptions(image=IMAGE), name, 1, resources, suspended=False).to_dict()
        for name in names
    ]
    for item in items:
        item |= {"apiVersion": "batch/v1", "kind": "Job"}
    given = json.dumps({"apiVersion": "v1", "kind": "List", "items": items})
    since_s = time.monotonic()
    cluster.kubectl("create", "-f", "-", given=given)
    cluster.wait_for(
        Job, lambda jobs: len(jobs) == len(names) and all(map(complete, jobs.values())),
        labels={CAMPAIGN_LABEL: made.name},
    )  # fmt: skip
    seconds = time.monotonic() - since_s
    cluster.kubectl("delete", "job", "-l", f"{CAMPAIGN_LABEL}={made.name}", "--wait=false")
    until_gone(cluster, made.name)
    return seconds


def complete(job: Job) -> bool:
    """Whether a Job has ended well."""
    conditions = (job.status and job.status.conditions) or ()
    return any(one.type == "Complete" and one.status == "True" for one in conditions)


def until_gone(cluster: Cluster, name: str) -> None:
    """Wait until no pod of a campaign is left, so that its end disturbs nothing."""
    cluster.wait_for(Pod, lambda pods: not pods, labels=labels(name))


def campaign(cluster: Cluster, root: Path, size: int) -> Figure:
    """Return the figures of a campaign."""
    suite, calls = root / "simulated.yaml", root / "calls.json"
    suite.write_text("name: simulated\ncases: [{workload: cpu.clock}]\n")
    name = f"campaign-{size}"
    nodes = ("--nodes=small=yes",) if size < max(SIZES) else ()
    command = [
        sys.executable, "-m", "benchmarks.fleet.counted", str(calls), "fleet", "run", str(suite),
        f"--name={name}", *nodes, "--no-documents", f"--time-limit={LIMIT_S}",
        f"--image={IMAGE}",
    ]  # fmt: skip
    env = {"PATH": os.environ["PATH"], "HOME": str(root), "KUBECONFIG": str(cluster.kubeconfig)}
    since_s = time.monotonic()
    with (root / "client.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=env, stdout=log, stderr=log)
        _, status, usage = os.wait4(process.pid, 0)
    seconds = time.monotonic() - since_s
    if os.waitstatus_to_exitcode(status):
        raise SystemExit((root / "client.log").read_text())
    made = sum(json.loads(calls.read_text()).values())
    subprocess.run(
        [sys.executable, "-m", "hostbench", "fleet", "clean", name], cwd=ROOT, env=env, check=True
    )
    return Figure(size, "campaign", seconds, made, usage.ru_maxrss * 1024)


def save(found: Iterable[Figure]) -> None:
    """Write the raw figures."""
    RAW.parent.mkdir(parents=True, exist_ok=True)
    with RAW.open("w", newline="") as file:
        writer = csv.DictWriter(file, [one.name for one in dataclasses.fields(Figure)])
        writer.writeheader()
        writer.writerows(dataclasses.asdict(one) for one in found)


def table() -> Iterator[str]:
    """Yield the lines of the table in README."""
    with RAW.open(newline="") as file:
        rows = list(csv.DictReader(file))
    yield "| nodes | engine alone | campaign | difference | calls a node | client's memory |"
    yield "|---|---|---|---|---|---|"
    sides = {(int(row["nodes"]), row["side"]): row for row in rows}
    times: dict[int, tuple[float, float]] = {}
    memory = {}
    for nodes in sorted({size for size, _ in sides}):
        engine, own = sides[nodes, "alone"], sides[nodes, "campaign"]
        seconds = times[nodes] = float(engine["seconds"]), float(own["seconds"])
        memory[nodes] = int(own["peak_bytes"]) / 1e6
        yield (
            f"| {nodes:,} | {seconds[0]:.1f} s | {seconds[1]:.1f} s | "
            f"{seconds[1] - seconds[0]:+.1f} s | {int(own['calls']) / nodes:.2f} | "
            f"{memory[nodes]:.0f} MB |"
        )
    small, large = min(memory), max(memory)

    def far(at_small: float, at_large: float) -> float:
        return at_large + (at_large - at_small) / (large - small) * (FAR - large)

    engine_s, own_s = (far(*pair) for pair in zip(times[small], times[large], strict=True))
    calls = far(*(float(sides[size, "campaign"]["calls"]) for size in (small, large)))
    yield (
        f"| {FAR:,}, by these slopes | {engine_s:.0f} s | {own_s:.0f} s | "
        f"{own_s - engine_s:+.0f} s | {calls / FAR:.2f} | "
        f"{far(memory[small], memory[large]):.0f} MB |"
    )


def main() -> None:
    """Measure, or write the table."""
    if "--readme" in sys.argv:
        begin, end = f"<!-- {PLACE} -->\n", f"<!-- end of {PLACE} -->"
        before, _, rest = README.read_text().partition(begin)
        text = "".join(f"{line}\n" for line in table())
        README.write_text(before + begin + text + end + rest.partition(end)[2])
        return
    with tempfile.TemporaryDirectory() as directory:
        found = []
        for figure in measure(Path(directory)):
            print(figure, flush=True)
            found.append(figure)
        save(found)


if __name__ == "__main__":
    main()
