"""Write the documents of a simulated campaign, to see what `hostbench fleet report` says of it.

usage: python -m benchmarks.fleet.documents DIRECTORY [HOSTS]

Each of HOSTS hosts (1,000) has one document, as `hostbench fleet run` collects it. It is the job of
a real run of the suite quick on a guest, judged as if nothing else had run there, without its raw
trials. Each figure is multiplied by what the host is (hosts differ by 1 %) and by what the job is:
a deviation that a real job had among some ninety of one guest (benchmarks.trust), of the same
workload or one of the same subsystem.

Planted are:

- 4 % of the hosts that are a tenth slower in one figure of the CPU, half of them with another
  kernel, which one in fifty of the others has, too;
- 10 % with another firmware, which makes cpu.fma 5 % slower;
- 2 % on which a process disturbed two cases;
- a document that is cut short, and two nodes without one. DIRECTORY/nodes names all nodes.
"""

import datetime
import math
import random
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

from benchmarks.arguments import given_number
from hostbench.model.result import (
    CampaignMember,
    CaseResult,
    Condition,
    ConditionState,
    ResultDocument,
)
from hostbench.model.summary import Verdict
from hostbench.results.sealed import sealed
from hostbench.results.store import DOCUMENT
from tests.unit.baseline_documents import scaled_case
from tests.unit.baseline_hosts import machine_of, residuals
from tests.unit.quick_documents import quiet

HOSTS = 1000
SPREAD = 0.01
SLOW_SHARE, SLOWER = 0.04, 0.1
FIRMWARE, FIRMWARE_SHARE, FIRMWARE_COST = "1.9 (2026-06-01)", 0.1, 0.05
KERNEL, KERNEL_SHARE = "6.8.0-31-generic", 0.02
DISTURBED_SHARE, DISTURBED_CASES = 0.02, 2
WITHOUT_DOCUMENT = 2
BEGAN_UNIX_S, APART_S = 1.79521e9, 20.0
CULPRIT = Condition(
    state=ConditionState.SHARED, share=0.3, culprit="node-exporter, pid 812", is_sure=True
)
# Whose deviations stand for those of workloads that the experiment did not measure.
MEASURED = frozenset(
    {
        *("cpu.fma", "cpu.add_sub", "mem.copy", "mem.pointer_chase"),
        *("disk.rand_read", "net.tcp_stream", "net.tcp_rr"),
    }
)
LIKE = {
    "cpu": "cpu.fma",
    "mem": "mem.copy",
    "disk": "disk.rand_read",
    "net": "net.tcp_stream",
}


class Campaign:
    """The hosts of a campaign, by their numbers."""

    def __init__(self, hosts: int) -> None:
        """Plant what is different."""
        self._rng = rng = random.Random(hosts)  # noqa: S311 - the same each time
        self._job = quiet()
        self._of_cpu = [
            case.case
            for case in self._job.cases
            if case.workload.startswith("cpu.") and case.figure is not None
        ]
        numbers = range(hosts)
        slow = rng.sample(numbers, round(SLOW_SHARE * hosts))
        self._slow = {number: rng.choice(self._of_cpu) for number in slow}
        self._other_firmware = set(rng.sample(numbers, round(FIRMWARE_SHARE * hosts)))
        self._other_kernel = set(slow[::2]) | set(rng.sample(numbers, round(KERNEL_SHARE * hosts)))
        self._disturbed = set(rng.sample(numbers, round(DISTURBED_SHARE * hosts)))

    def document(self, number: int) -> ResultDocument:
        """Return the document of a host."""
        name, job, host = name_of(number), self._job.job, self._job.host
        facts: dict[str, object] = {"machine": machine_of(number), "hostname": name}
        if number in self._other_firmware:
            facts["firmware"] = FIRMWARE
        if number in self._other_kernel:
            facts["kernel"] = KERNEL
        disturbed = set(
            self._rng.sample(self._of_cpu, DISTURBED_CASES) if number in self._disturbed else ()
        )
        cases = tuple(
            _disturbed(case) if case.case in disturbed else self._measured(case, number)
            for case in self._job.cases
        )
        began_unix_s = BEGAN_UNIX_S + APART_S * number
        moment = datetime.datetime.fromtimestamp(began_unix_s, datetime.UTC)
        return sealed(
            self._job.model_copy(
                update={
                    "digest": None,
                    "host": host.model_copy(update=facts),
                    "job": replace(
                        job,
                        id=f"{moment:%Y%m%dT%H%M%SZ}-quick-{number % 65536:04x}",
                        hostname=name,
                        created_unix_s=began_unix_s,
                        finished_unix_s=began_unix_s + (job.took_s or 0.0),
                        verdicts=Counter(case.verdict for case in cases if case.verdict),
                    ),
                    "cases": cases,
                    "member": CampaignMember(
                        campaign="october",
                        engine="kubernetes",
                        cluster="simulated",
                        node=name,
                        lock="host",
                    ),
                }
            )
        )

    def _measured(self, case: CaseResult, number: int) -> CaseResult:
        metric = case.metrics.get(case.primary)
        if metric is None or case.figure is None:
            return case.model_copy(update={"trials": ()})
        subsystem = case.workload.partition(".")[0]
        like = case.workload if case.workload in MEASURED else LIKE[subsystem]
        better = self._rng.gauss(0, SPREAD) + self._rng.choice(residuals(like))
        if self._slow.get(number) == case.case:
            better += math.log(1 - SLOWER)
        if number in self._other_firmware and case.workload == "cpu.fma":
            better += math.log(1 - FIRMWARE_COST)
        factor = math.exp(better if metric.direction == "higher" else -better)
        return scaled_case(case, factor).model_copy(update={"trials": ()})


def _disturbed(case: CaseResult) -> CaseResult:
    changes = {"verdict": Verdict.DISTURBED, "condition": CULPRIT, "trials": ()}
    return case.model_copy(update=changes)


def name_of(number: int) -> str:
    """Return the name of a host."""
    return f"node-{number:04}"


def main() -> None:
    """Write the documents and the names of all nodes, and print the command that reads them."""
    if len(sys.argv) < 2:
        raise SystemExit("a directory is missing: python -m benchmarks.fleet.documents DIRECTORY")
    root, hosts = Path(sys.argv[1]), given_number(HOSTS, place=2)
    campaign = Campaign(hosts)
    for number in range(hosts):
        document = campaign.document(number)
        directory = root / name_of(number) / document.job.id
        directory.mkdir(parents=True)
        content = document.model_dump_json().encode()
        is_cut = number == hosts // 2
        (directory / DOCUMENT).write_bytes(content[: len(content) // 2] if is_cut else content)
    names = [name_of(number) for number in range(hosts + WITHOUT_DOCUMENT)]
    (root / "nodes").write_text("".join(f"{name}\n" for name in names))
    print(f"hostbench fleet report {root} --nodes {root / 'nodes'} --html fleet.html")


if __name__ == "__main__":
    main()
