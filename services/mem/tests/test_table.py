"""The table of mem-bench: names that suites, reports and boards rely on, written down once more."""

from typing import Any

import pytest

from services.mem.tests.program import (
    CHECKS,
    CODE,
    LIBRARY,
    NAIVE,
    NODES,
    STREAM,
    TIMES,
    table,
)
from tests.benchmark import MIB
from tests.machine_code import ROOT

WORKLOADS = (*STREAM, *TIMES, *CODE, *LIBRARY, *NAIVE, *NODES, *CHECKS)
COMMON = {
    *("threads", "cpus", "duration_s", "work", "warmup_s", "slice_s", "sample_interval_s"),
    "lifeline_fd",
}
SHARED = {"pages", "size_bytes", "size_share", "memory_node"}
BLOCKS = {"pattern", "block_bytes"}
KERNEL = {"isa", "streams", "prefetch"}
OWN = {
    "read": KERNEL | BLOCKS,
    **{name: KERNEL | BLOCKS | {"store"} for name in STREAM if name != "read"},
    "pointer_chase": {"chains", "stride_bytes"},
    "loaded_latency": {"isa", "load", "intensity"},
    "random_access": {"operation", "block_bytes", "index"},
    "code_chase": {"pattern", "stride_bytes"},
    "read_write": BLOCKS,
    "memset_write": BLOCKS,
    **{name: BLOCKS | {"clock", "lock"} for name in NAIVE},
    "numa": {"isa"},
    "patterns": {"seed"},
}
# It has memory on every node, and a round over them as its least work.
LACKING = {"numa": {"work", "size_share", "memory_node"}}
PLAIN_AND_NT = ["best", "plain", "nt"]
CHOICES = {
    "isa": ["best", "scalar", "sse2", "avx2", "avx512", "neon"],
    "pages": ["4k", "huge", "hugetlb"],
    "pattern": ["sequential", "random"],
    "operation": ["read", "write", "update"],
    "index": ["precomputed", "lcg"],
    "load": ["read", "write", "copy", "triad"],
}
# A node's part of the pool is not what is free there.
OWN_CHOICES = {name: {"pages": ["4k", "huge"]} for name in NODES}
DEFAULTS = {
    "isa": "best",
    "pages": "huge",
    "size_bytes": "auto",
    "size_share": None,
    "memory_node": "local",
    "store": "best",
    "pattern": "sequential",
    "operation": "read",
    "index": "precomputed",
    "load": "read",
}
# The reports ran on small pages.
OWN_DEFAULTS = {
    **{name: {"pages": "4k"} for name in NAIVE},
    "code_chase": {"pattern": "random"},
}
BLOCK_TIMES = {f"block_time_s_{which}" for which in ("median", "p99", "p999", "max")}
ALWAYS = {"huge_page_ratio", "overlap_ratio", "clean_slice_ratio"}
BYTES = {f"bytes_per_second{which}" for which in ("", "_makespan", "_sum", "_best")} | {
    "work_bytes"
}
TIME = {f"access_time_s{which}" for which in ("", "_mean", "_best")} | {"work_operations"}
LABEL = "Based on a variant of the STREAM benchmark"


@pytest.fixture(scope="module")
def workloads() -> dict[str, Any]:
    return table()


def params(workload: dict[str, Any]) -> dict[str, Any]:
    return {param["name"]: param for param in workload["params"]}


def metrics(workload: dict[str, Any]) -> dict[str, Any]:
    return {metric["name"]: metric for metric in workload["metrics"]}


def test_the_workloads(workloads: dict[str, Any]) -> None:
    assert list(workloads) == list(WORKLOADS)
    able = (one["unsupported"] is None for name, one in workloads.items() if name not in NODES)
    assert all(able)


@pytest.mark.parametrize("name", WORKLOADS)
def test_parameters(workloads: dict[str, Any], name: str) -> None:
    found = params(workloads[name])
    # A loop has no slices.
    common = COMMON - {"slice_s"} if name in (*NAIVE, *NODES) else COMMON
    assert set(found) == (common | SHARED | OWN[name]) - LACKING.get(name, set())
    for param, choices in CHOICES.items():
        if param in found:
            assert found[param]["choices"] == OWN_CHOICES.get(name, {}).get(param, choices)
    for param, default in DEFAULTS.items():
        if param in found:
            own = OWN_DEFAULTS.get(name, {}).get(param, default)
            assert found[param]["default"] == own
    assert found["size_bytes"]["choices"] == ["auto"]
    if name not in NODES:
        assert found["memory_node"]["choices"] == ["local"]
        assert found["size_share"]["max"] == 0.9


def test_kinds_of_store(workloads: dict[str, Any]) -> None:
    kinds = {name: params(workloads[name]).get("store", {}).get("choices") for name in STREAM}
    assert kinds == {
        "read": None,
        "write": [*PLAIN_AND_NT, "libc"],
        "copy": [*PLAIN_AND_NT, "libc"],
        "scale": PLAIN_AND_NT,
        "add": PLAIN_AND_NT,
        "triad": PLAIN_AND_NT,
    }


def test_blocks(workloads: dict[str, Any]) -> None:
    for name in (*STREAM, *LIBRARY):
        block = params(workloads[name])["block_bytes"]
        assert (block["min"], block["max"]) == (1, 1024 * MIB)
    block = params(workloads["random_access"])["block_bytes"]
    assert (block["min"], block["max"], block["default"]) == (1, 64, 8)


@pytest.mark.parametrize("name", [*STREAM, *LIBRARY])
def test_metrics_of_a_bandwidth(workloads: dict[str, Any], name: str) -> None:
    found = metrics(workloads[name])
    assert set(found) >= BYTES | ALWAYS | BLOCK_TIMES
    assert found["bytes_per_cycle"]["unit"] == "byte/cycle"
    primary = found["bytes_per_second"]
    assert (primary["unit"], primary["direction"], primary["primary"]) == ("byte/s", "higher", True)
    stores = set(params(workloads[name]).get("store", {}).get("choices", [])) - {"best"}
    by_store = {f"bytes_per_second_{store}" for store in ("plain", "nt", "libc")}
    assert by_store & set(found) == {f"bytes_per_second_{store}" for store in stores}
    assert all(found[one]["unit"] == "s" for one in BLOCK_TIMES)


@pytest.mark.parametrize("name", TIMES)
def test_metrics_of_a_time(workloads: dict[str, Any], name: str) -> None:
    found = metrics(workloads[name])
    assert set(found) >= TIME | ALWAYS
    primary = found["access_time_s"]
    assert (primary["unit"], primary["direction"], primary["primary"]) == ("s", "lower", True)
    assert found["access_time_s_best"]["direction"] == "lower"


def test_metrics_of_a_jump(workloads: dict[str, Any]) -> None:
    found = metrics(workloads["code_chase"])
    times = {f"jump_time_s{which}" for which in ("", "_mean", "_best")}
    assert set(found) >= times | {"jump_cycles", "work_operations"} | ALWAYS
    primary, cycles = found["jump_time_s"], found["jump_cycles"]
    assert (primary["unit"], primary["direction"], primary["primary"]) == ("s", "lower", True)
    assert (cycles["unit"], cycles["direction"]) == ("cycle", "lower")


def test_what_an_empty_loop_is_reported_of(workloads: dict[str, Any]) -> None:
    empty = {"access_time_s_empty", "access_time_s_net", "empty_loop_ratio"}
    assert empty | {"accesses_per_second"} <= set(metrics(workloads["random_access"]))
    assert "load_bytes_per_second" in metrics(workloads["loaded_latency"])


def test_nothing_of_a_cpu_is_measured(workloads: dict[str, Any]) -> None:
    for workload in workloads.values():
        assert not {"clock_hertz", "operations_per_cycle"} & set(metrics(workload))


@pytest.mark.parametrize("name", ["copy", "scale", "add", "triad"])
def test_results_of_a_changed_stream_are_labelled(workloads: dict[str, Any], name: str) -> None:
    """As STREAM's licence asks for."""
    assert LABEL in metrics(workloads[name])["bytes_per_second"]["description"]


@pytest.mark.exhaustive
def test_the_table_is_the_same_on_aarch64(workloads: dict[str, Any]) -> None:
    arm = table(prefix=["qemu-aarch64"], program=ROOT / "build" / "aarch64" / "mem-bench")
    for workload in (*workloads.values(), *arm.values()):
        for param in workload["params"]:
            param.pop("unsupported")
        workload.pop("unsupported")
    assert arm == workloads
