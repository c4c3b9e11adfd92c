"""Where the arrays lie: nodes by number, nodes that do not exist, and calls that are refused."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from services.mem.tests.program import MOMENT, call, measure, running
from tests.benchmark import MIB, RESOURCE, UNSUPPORTED, USAGE, refused
from tests.seccomp import NUMBERS, OF_NUMA, refusing

SIZE = f"--size-bytes={48 * MIB}"
NODES = Path("/sys/devices/system/node")
WORKLOADS = ("triad", "pointer_chase", "random_access", "read_write")


def nodes() -> list[int]:
    """The nodes that this process may have memory of."""
    status = Path("/proc/self/status").read_text()
    (text,) = re.findall(r"^Mems_allowed_list:\s*(\S+)$", status, re.MULTILINE)
    spans = [[int(end) for end in part.split("-")] for part in text.split(",")]
    return [node for span in spans for node in range(span[0], span[-1] + 1)]


def cpus_of(node: int) -> list[int]:
    """Those that this process may use."""
    return [
        cpu
        for cpu in sorted(os.sched_getaffinity(0))
        if (NODES.parent / "cpu" / f"cpu{cpu}" / f"node{node}").exists()
    ]


def pages_by_node(pid: int) -> dict[int, int]:
    """Pages of all large anonymous mappings, by the node that the kernel says they are on."""
    found: dict[int, int] = {}
    for line in Path(f"/proc/{pid}/numa_maps").read_text().splitlines():
        counts = [(int(n), int(pages)) for n, pages in re.findall(r"\bN(\d+)=(\d+)", line)]
        if " anon=" in line and sum(pages for _, pages in counts) >= 64:
            for node, pages in counts:
                found[node] = found.get(node, 0) + pages
    return found


@pytest.mark.parametrize("node", nodes())
def test_the_arrays_lie_on_the_node_that_was_requested(node: int) -> None:
    arguments = [SIZE, f"--memory-node={node}", "--threads=1", "--pages=4k"]
    with running("triad", *arguments) as (process, start):
        found = pages_by_node(process.pid)
    assert start["params"]["memory_node"] == node
    if not found:
        pytest.skip("this kernel does not tell where pages are")
    assert found[node] > 0.98 * sum(found.values())


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_node_by_its_number(workload: str) -> None:
    trial = measure(workload, SIZE, f"--memory-node={nodes()[0]}", *MOMENT)
    assert trial.params["memory_node"] == nodes()[0]
    assert not {"first_touch_only", "memory_elsewhere"} & set(trial.warnings)


def test_a_matrix_of_one_pair_of_nodes_is_a_skip() -> None:
    """In a guest it is measured: tests/guest."""
    if len(nodes()) > 1:
        pytest.skip("this host has several NUMA nodes")
    refused(call("numa"), UNSUPPORTED, "one NUMA node", "pointer_chase")
    refused(call("numa", "--pages=hugetlb"), USAGE, "hugetlb", "4k")


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_node_that_does_not_exist(workload: str) -> None:
    result = call(workload, SIZE, f"--memory-node={nodes()[-1] + 1}", *MOMENT)
    refused(result, USAGE, f"--memory-node {nodes()[-1] + 1}", f"{nodes()[0]}", "local")


def test_a_filter_refuses_what_it_lists() -> None:
    """The test's own tool: EPERM for one call, and nothing else changes."""
    script = (
        "import ctypes, os; libc = ctypes.CDLL(None, use_errno=True);"
        f"libc.syscall({NUMBERS[os.uname().machine]['mbind']}, 0, 0, 0, 0, 0, 0);"
        "print(ctypes.get_errno())"
    )
    answers = [
        subprocess.run(
            [sys.executable, "-c", script], capture_output=True, text=True, preexec_fn=before
        ).stdout
        for before in (None, refusing("mbind"))
    ]
    assert answers[0] != "1\n" and answers[1] == "1\n"


@pytest.mark.parametrize("workload", WORKLOADS)
def test_a_container_that_refuses_every_call_about_nodes(workload: str) -> None:
    trial = measure(workload, SIZE, *MOMENT, preexec_fn=refusing(*OF_NUMA))
    assert trial.params["memory_node"] is None or trial.params["memory_node"] == "local"
    assert "first_touch_only" not in trial.warnings, "no node was requested"


def test_a_node_of_its_own_threads_where_binding_is_refused() -> None:
    node = next(node for node in nodes() if cpus_of(node))
    cpu = f"--cpus={cpus_of(node)[0]}"
    arguments = [SIZE, f"--memory-node={node}", cpu, *MOMENT]
    trial = measure("triad", *arguments, preexec_fn=refusing("mbind", "set_mempolicy"))
    assert "Operation not permitted" in trial.warnings["first_touch_only"]


def test_a_node_of_other_cpus_where_binding_is_refused() -> None:
    remote = [(a, b) for a in nodes() for b in nodes() if a != b and cpus_of(b)]
    if not remote:
        pytest.skip("this host has one NUMA node only")
    node, other = remote[0]
    arguments = [SIZE, f"--memory-node={node}", f"--cpus={cpus_of(other)[0]}", *MOMENT]
    result = call("triad", *arguments, preexec_fn=refusing("mbind", "set_mempolicy"))
    refused(result, RESOURCE, f"--memory-node {node}", "CAP_SYS_NICE")


# Says of every page that it is on node 7, or nothing at all.
MISPLACED = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>

long syscall(long number, ...)
{
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    long given[6];
    va_list arguments;
    va_start(arguments, number);
    for (int i = 0; i < 6; i++)
        given[i] = va_arg(arguments, long);
    va_end(arguments);
    if (number == SYS_mbind)
        return 0;
    if (number != SYS_move_pages)
        return real(number, given[0], given[1], given[2], given[3], given[4], given[5]);
    for (long i = 0; i < given[1]; i++)
        ((int *)given[4])[i] = ANSWER;
    return 0;
}
"""


def misplaced(folder: Path, answer: int) -> dict[str, str]:
    """The environment with a C library that says so."""
    source = folder / "numa.c"
    source.write_text(MISPLACED)
    library = folder / "numa.so"
    options = ["-shared", "-fPIC", f"-DANSWER={answer}", "-o", str(library)]
    subprocess.run(["gcc", *options, source], check=True)
    return {**os.environ, "LD_PRELOAD": str(library)}


@pytest.mark.parametrize("workload", WORKLOADS)
def test_local_memory_that_is_elsewhere(workload: str, tmp_path: Path) -> None:
    assert 7 not in nodes()
    found = measure(workload, SIZE, *MOMENT, env=misplaced(tmp_path, 7))
    assert "64 of 64 pages" in found.warnings["memory_elsewhere"]
    assert "node of the thread" in found.warnings["memory_elsewhere"]


def test_memory_of_a_node_that_is_elsewhere(tmp_path: Path) -> None:
    node = f"--memory-node={nodes()[0]}"
    found = measure("triad", SIZE, node, *MOMENT, env=misplaced(tmp_path, 7))
    assert f"NUMA node {nodes()[0]}, where" in found.warnings["memory_elsewhere"]


def test_a_kernel_that_does_not_tell_where_pages_are(tmp_path: Path) -> None:
    """Which matters where there is a choice."""
    no_such_page = -2
    found = measure("triad", SIZE, *MOMENT, env=misplaced(tmp_path, no_such_page))
    several = not (NODES / "has_memory").read_text().strip().isdigit()
    assert ("nodes_unknown" in found.warnings) == several
    assert "memory_elsewhere" not in found.warnings
