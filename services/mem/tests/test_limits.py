"""The bandwidth limit: its value, its sources, and when there is none."""

from pathlib import Path
from typing import Any

import pytest

from hostbench.host.memory import memory as memory_of
from hostbench.host.memory_limit import cache_bytes
from hostbench.judge.trial import above_limit
from hostbench.model.host import Cache, Channels, HostInventory, Memory, Virtualisation
from hostbench.model.limit import NAIVE_REASON
from services.mem.limits import WORKLOADS, limits
from services.mem.params import NAIVE
from tests.unit import smbios_tables as tables
from tests.unit.records import end, host, placement, start

MIB = 1 << 20
LLC = 32 * MIB
METAL = Virtualisation(hypervisor=False)
EIGHT = Channels(count=8, transfers_per_second=4.8e9, width_bits=64)
KNOWN = Memory(channels=(EIGHT,), channels_source="SMBIOS type 17: 8 of 8")
CACHES = (
    Cache(level=1, type="Instruction", size_bytes=1 << 40, shared_by_cpus=1, instances=16),
    Cache(level=3, type="Unified", size_bytes=LLC, shared_by_cpus=8, instances=2,
          cpu_lists=("0-7", "8-15")),
)  # fmt: skip


def inventory(memory: Memory | None, **changes: Any) -> HostInventory:
    return host(**{"memory": memory, "caches": CACHES} | changes)


def limit(
    workload: str = "triad",
    size: object = 512 * MIB,
    memory: Memory | None = KNOWN,
    cpus: tuple[int, ...] = (0, 1),
    **changes: Any,
) -> Any:
    trial = start(
        workload=workload,
        params={"size_bytes": size, "threads": len(cpus)},
        placement=placement(cpus=cpus, sockets=1),
    )
    return limits(inventory(memory, **changes), trial, end()).get("bytes_per_second")


@pytest.mark.parametrize("workload", sorted(WORKLOADS))
def test_channels_times_speed_times_width(workload: str) -> None:
    found = limit(workload)
    assert (found.value, found.unit, found.reason) == (307.2e9, "byte/s", None)
    assert [(one.name, one.value) for one in found.factors] == [
        ("channels", 8),
        ("transfers_per_second", 4.8e9),
        ("width", 8),
    ]
    assert all(one.source for one in found.factors)


@pytest.mark.parametrize("workload", ["pointer_chase", "loaded_latency", "random_access", "no"])
def test_times_have_no_limit(workload: str) -> None:
    assert limits(inventory(KNOWN), start(workload=workload), end()) == {}


def test_a_jump_has_none_and_says_why() -> None:
    (found,) = limits(inventory(KNOWN), start(workload="code_chase"), end()).values()
    assert (found.value, found.unit) == (None, "s")
    assert found.reason and "branch predictor" in found.reason


@pytest.mark.parametrize("workload", NAIVE)
def test_a_naive_figure_is_held_against_none(workload: str) -> None:
    found = limit(workload)
    assert found.value is None and not found.factors
    assert found.reason == NAIVE_REASON


def test_what_the_user_tells_comes_first() -> None:
    found = limit(memory=KNOWN.model_copy(update={"user_bytes_per_second": 250e9}))
    assert found.value == 250e9
    (factor,) = found.factors
    assert factor.source == "set by HOSTBENCH_MEMORY_BANDWIDTH"


def test_unlike_channels_are_added_up() -> None:
    slower = EIGHT.model_copy(update={"count": 4, "transfers_per_second": 2.4e9})
    found = limit(memory=KNOWN.model_copy(update={"channels": (EIGHT, slower)}))
    assert found.value == 307.2e9 + 76.8e9
    assert len(found.factors) == 1


@pytest.mark.parametrize(
    ("memory", "part"),
    [
        (None, "before hostbench looked"),
        (Memory(channels_reason="this is a virtual machine; tell"), "this is a virtual machine"),
        (Memory(), "before hostbench looked"),
    ],
)
def test_unknown_channels(memory: Memory | None, part: str) -> None:
    found = limit(memory=memory)
    assert found.value is None and part in found.reason


def test_the_limit_binds_what_does_not_fit_the_cache() -> None:
    assert limit(size=4 * LLC).value is not None
    # Whole pages of whole threads: a little less than four times.
    assert limit(size=4 * LLC - 2 * MIB // 2).value is not None
    small = limit(size=2 * LLC)
    assert small.value is None
    assert "64 MiB is less than 4 times the last-level cache (32 MiB)" in small.reason
    # Two caches are used by threads on both.
    assert limit(size=4 * LLC, cpus=(0, 8)).value is None
    assert limit(size=8 * LLC, cpus=(0, 8)).value is not None
    assert limit(size=4 * LLC, cpus=(8, 9, 10)).value is not None


@pytest.mark.parametrize("size", [None, "auto", 0])
def test_a_size_that_is_not_reported(size: object) -> None:
    found = limit(size=size)
    assert found.value is None and "size_bytes" in found.reason


def test_caches_that_are_not_reported() -> None:
    found = limit(caches=())
    assert found.value is None and "last-level cache is not known" in found.reason


def test_the_larger_of_two_sources_counts_as_the_cache() -> None:
    from_both = KNOWN.model_copy(update={"library_cache_bytes": 320 * MIB})
    assert cache_bytes(inventory(from_both), (0,), 1) == 320 * MIB
    assert cache_bytes(inventory(from_both), (0,), 2) == 640 * MIB
    assert cache_bytes(inventory(KNOWN), (0,), 2) == LLC
    assert cache_bytes(inventory(None), (0, 8), 2) == 2 * LLC
    assert limit(memory=from_both).value is None
    # Documents from before have no lists.
    old = (CACHES[1].model_copy(update={"cpu_lists": ()}),)
    assert cache_bytes(inventory(KNOWN, caches=old), (0,), 1) == 2 * LLC


def test_what_a_cache_may_serve_is_never_invalid() -> None:
    """Of a working set of four caches a quarter may stay: a third more than DRAM gives."""
    found = limit(size=4 * LLC)
    assert found.tolerance == pytest.approx(0.02 + 1 / 3, abs=1e-3)
    assert limit(size=400 * LLC).tolerance == pytest.approx(0.0225, abs=1e-3)
    names = {"bytes_per_second": found}
    most = found.value * 4 / 3
    assert above_limit({"bytes_per_second": most}, names, ()) == ()
    (reason,) = above_limit({"bytes_per_second": most * 1.05}, names, ())
    assert reason.code == "above_limit"


@pytest.mark.parametrize(
    ("content", "value"),
    [
        (tables.supermicro_12_channels(), 12 * 4.8e9 * 8),
        (tables.eight_channels_full(), 8 * 2.933e9 * 8),
        (tables.qemu(), None),
        (tables.eight_channels_full()[:200], None),
    ],
    ids=["12 channels", "8 channels", "QEMU", "cut off"],
)
def test_from_the_table_to_the_limit(tmp_path: Path, content: bytes, value: float | None) -> None:
    memory = memory_of(tables.written(tmp_path, content), METAL)
    found = limit(size=1 << 40, memory=memory)
    assert found.value == value
    assert (found.reason is None) == (value is not None)
