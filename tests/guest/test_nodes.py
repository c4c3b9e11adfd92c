"""What numa of mem-bench says of a machine with several NUMA nodes: a guest, whose nodes qemu makes
up. All of them are equally far from this host's CPU, so nothing here is about a figure."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.benchmark import RESOURCE
from tests.guest import guest
from tests.guest.guest import Guest, missing

pytestmark = [
    pytest.mark.timeout(400),
    pytest.mark.exhaustive,
    pytest.mark.skipif(missing() is not None, reason=f"no guest: {missing()}"),
]

MIB = 1 << 20
NODE_MIB, SIZE_MIB, PAGES = 128, 16, 4096
# Two sockets, and a node of memory alone, as an expander of CXL is one.
DISTANCES = ((10, 21, 14), (21, 10, 24), (14, 24, 10))
MACHINE = (
    *("-smp", "4,sockets=2,cores=2", "-m", str(3 * NODE_MIB)),
    *(
        option
        for node in range(3)
        for option in ("-object", f"memory-backend-ram,id=m{node},size={NODE_MIB}M")
    ),
    *("-numa", "node,nodeid=0,cpus=0-1,memdev=m0", "-numa", "node,nodeid=1,cpus=2-3,memdev=m1"),
    *("-numa", "node,nodeid=2,memdev=m2"),
    *(
        option
        for one, row in enumerate(DISTANCES)
        for other, distance in enumerate(row)
        if one != other
        for option in ("-numa", f"dist,src={one},dst={other},val={distance}")
    ),
)
# Until everything is set up, then what is to happen meanwhile, then the end.
SCRIPT = """
{before}
/program numa --pages=4k --size-bytes={size} --warmup-s=0 --duration-s={seconds} >/out 2>/dev/null &
until /bin/busybox grep -q start /out; do /bin/busybox sleep 0.1; done
{meanwhile}
wait $!
echo exit code $?
/bin/busybox cat /out
"""
CPUSET = "/sys/fs/cgroup/some"
IN_A_CPUSET = f"""
/bin/busybox mount -t cgroup2 none /sys/fs/cgroup
echo +cpuset >/sys/fs/cgroup/cgroup.subtree_control
/bin/busybox mkdir {CPUSET}
echo 0-1 >{CPUSET}/cpuset.mems
echo $$ >{CPUSET}/cgroup.procs
"""


@dataclass(frozen=True)
class Output:
    """What a guest printed: events of the program by kind, the last of each, and all of it."""

    events: dict[str, Any]
    warnings: dict[str, str]
    exit_code: int
    text: str


@pytest.fixture(scope="module")
def accelerator(tmp_path_factory: pytest.TempPathFactory) -> str:
    return guest.accelerator(tmp_path_factory.mktemp("accelerator"))


def ran(
    directory: Path,
    accelerator: str,
    *,
    machine: Sequence[str] = MACHINE,
    before: str = "",
    meanwhile: str = "",
    size_mib: int = SIZE_MIB,
    duration_s: float = 3,
) -> Output:
    script = SCRIPT.format(
        before=before, meanwhile=meanwhile, size=size_mib * MIB, seconds=duration_s
    )
    directory = directory / "guest"
    directory.mkdir()
    with Guest(directory, script, accelerator, program="mem-bench", machine=machine) as one:
        text = one.last_words(300)
    events = [json.loads(line) for line in re.findall(r"^\{.*\}", text, re.MULTILINE)]
    warnings = {one["code"]: one["message"] for one in events if one["event"] == "warning"}
    (code,) = re.findall(r"^exit code (\d+)", text, re.MULTILINE)
    return Output({one["event"]: one for one in events}, warnings, int(code), text)


def figures(output: Output) -> dict[str, dict[tuple[int, int], float]]:
    """By metric and pair: the node of the CPUs, and that of the memory."""
    found: dict[str, dict[tuple[int, int], float]] = {}
    for one in output.events["end"]["node_figures"]:
        found.setdefault(one["metric"], {})[one["cpu_node"], one["memory_node"]] = one["value"]
    return found


def test_each_pair_of_nodes_has_its_figures_and_its_memory(
    tmp_path: Path, accelerator: str
) -> None:
    """The kernel's own table says, beside what the program looked up, where each page lies."""
    output = ran(tmp_path, accelerator, meanwhile="/bin/busybox cat /proc/$!/numa_maps")
    assert output.exit_code == 0, output.text
    found = figures(output)
    pairs = {(cpu, memory) for cpu in (0, 1) for memory in (0, 1, 2)}
    names = {"access_time_s", "loaded_access_time_s", "bytes_per_second", "load_bytes_per_second"}
    assert set(found) == names | {"distance"}
    assert all(set(matrix) == pairs for matrix in found.values())
    # An emulated CPU that is to make load may get none of the host's time.
    load = found["load_bytes_per_second"]
    assert all(
        value > 0 for matrix in found.values() if matrix is not load for value in matrix.values()
    )
    assert any(load.values())
    assert found["distance"] == {(cpu, memory): DISTANCES[cpu][memory] for cpu, memory in pairs}
    metrics = output.events["end"]["metrics"]
    assert metrics["node_pairs_measured"] == len(pairs)
    assert metrics["access_time_s_nearest"] == min(found["access_time_s"].values())
    assert metrics["access_time_s_farthest"] == max(found["access_time_s"].values())
    bound = re.findall(r"^\w+ bind:(\d) .*?((?: N\d+=\d+)+)", output.text, re.MULTILINE)
    assert sorted(bound) == [(str(node), f" N{node}={PAGES}") for node in range(3)]


def test_pairs_that_do_not_fit_into_the_time_are_left_out(tmp_path: Path, accelerator: str) -> None:
    """Each node with CPUs has its own memory first."""
    output = ran(tmp_path, accelerator, duration_s=0.04)
    assert output.exit_code == 0, output.text
    assert set(figures(output)["access_time_s"]) == {(0, 0), (1, 1)}
    assert output.events["end"]["metrics"]["node_pairs_measured"] == 2
    assert "2 of the 6 pairs" in output.warnings["pairs_sampled"]


def test_a_node_with_too_little_free_memory_is_left_out_by_name(
    tmp_path: Path, accelerator: str
) -> None:
    """At least the first one, which has the kernel."""
    output = ran(tmp_path, accelerator, size_mib=NODE_MIB - 16)
    assert output.exit_code == 0, output.text
    pairs = set(figures(output)["access_time_s"])
    homes = tuple(sorted({node for _, node in pairs}))
    assert pairs == {(cpu, node) for cpu in (0, 1) for node in homes}
    full = {(1, 2): "0", (1,): "0,2", (2,): "0-1"}[homes]
    assert f"nodes {full} " in output.warnings["nodes_full"]


def test_pages_that_are_moved_meanwhile_are_no_figure(tmp_path: Path, accelerator: str) -> None:
    """By a cpuset, which takes a node away from a process that is at work on it; and the node that
    it never allowed is left out by name."""
    output = ran(
        tmp_path,
        accelerator,
        before=IN_A_CPUSET,
        meanwhile=f"echo 0 >{CPUSET}/cpuset.mems",
    )
    assert output.exit_code == RESOURCE and "end" not in output.events, output.text
    assert "belongs on NUMA node 1 is on node 0" in output.events["error"]["message"]
    assert "nodes 2 " in output.warnings["nodes_barred"]
