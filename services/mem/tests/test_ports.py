"""What load and store ports let a kernel move in a cycle, and when that is unknown."""

from typing import Any

import pytest

from hostbench.host.microarchitecture import Unknown, table
from hostbench.model.host import Cpu
from services.mem.params import ACCESSES
from services.mem.ports import PortBound, port_bound
from tests.each import each
from tests.unit.records import host, start

ZEN = ("fma", "avx2", "adx", "clflushopt", "sha_ni", "clwb", "rdpid", "wbnoinvd", "vaes")
ZEN4 = (*ZEN, "avx512f", "avx512bw", "avx512vl", "avx512_bf16", "gfni")
ICE_LAKE = ("fma", "avx2", "avx512f", "gfni", "vaes", "sha_ni")


def cpu(vendor: str, family: int, model: int, flags: tuple[str, ...]) -> Cpu:
    return Cpu(
        architecture="x86_64",
        model_name="A CPU",
        vendor=vendor,
        family=family,
        model=model,
        flags=flags,
    )


GRACE = Cpu(architecture="aarch64", implementer=0x41, part=0xD4F)
GENOA = cpu("AuthenticAMD", 0x19, 0x11, ZEN4)
MILAN = cpu("AuthenticAMD", 0x19, 0x01, ZEN)
ICE_LAKE_SERVER = cpu("GenuineIntel", 6, 0x6A, ICE_LAKE)
OTHER = cpu("GenuineIntel", 6, 0xFFF, ICE_LAKE)


def bound(of: Cpu, workload: str, isa: str, **params: Any) -> PortBound | Unknown:
    trial = start(workload=workload, params={"isa": isa, "store": "plain", **params})
    return port_bound(host(cpu=of), trial)


@each("isa", ["avx2", "avx512"])
def test_zen_4_moves_as_much_with_vectors_of_either_width(isa: str) -> None:
    """Two loads and a store of 256 bits; one of 512 bits takes as long as two of these."""
    found = {workload: bound(GENOA, workload, isa) for workload in ACCESSES}
    most = {name: one.bytes_per_cycle for name, one in found.items() if isinstance(one, PortBound)}
    assert most == {"read": 64, "write": 32, "copy": 64, "scale": 64, "add": 96, "triad": 96}


def test_the_bound_names_what_the_ports_do_and_the_source() -> None:
    found = bound(GENOA, "triad", "avx512")
    assert isinstance(found, PortBound)
    assert found.because == (
        "AMD Zen 4 and Zen 4c: 1 load a cycle and one store every 2 cycles, of 512 bits "
        "(OSACA zen4.yml)"
    )
    found = bound(MILAN, "read", "avx2")
    assert isinstance(found, PortBound)
    assert found.because == (
        "AMD Zen 3: 2 loads a cycle and 1 store a cycle, of 256 bits (OSACA zen3.yml)"
    )


def test_arm_cores_have_vectors_of_128_bits() -> None:
    found = [bound(GRACE, workload, "neon") for workload in ("read", "write", "triad")]
    assert [one.bytes_per_cycle for one in found if isinstance(one, PortBound)] == [48, 32, 72]


def test_a_kernel_that_only_loads_needs_no_figure_of_stores() -> None:
    found = bound(ICE_LAKE_SERVER, "read", "avx512")
    assert isinstance(found, PortBound)
    assert found.bytes_per_cycle == 128
    assert found.because == "Intel Ice Lake server: 2 loads a cycle, of 512 bits (OSACA icx.yml)"


@each(
    ("of", "arguments", "reason"),
    [
        (GENOA, {"isa": "avx2", "store": "libc"}, "the C library chooses the instructions"),
        (GENOA, {"isa": "scalar"}, "no loads and stores of scalar"),
        (MILAN, {"isa": "avx512"}, "AMD Zen 3 has no 512-bit load"),
        (ICE_LAKE_SERVER, {"isa": "avx512"}, "Intel Ice Lake server, 512-bit store: OSACA has"),
        (OTHER, {"isa": "avx2"}, "unknown micro-architecture"),
    ],
)
def test_what_is_unknown_says_why(of: Cpu, arguments: dict[str, Any], reason: str) -> None:
    found = bound(of, "copy", **arguments)
    assert isinstance(found, Unknown)
    assert reason in found.reason


@pytest.mark.parametrize("row", table().microarchitectures, ids=lambda row: row.name)
def test_a_core_with_loads_has_stores_of_the_same_widths(row: Any) -> None:
    load, store = (row.instructions.get(name) for name in ("load", "store"))
    assert (load is None) == (store is None)
    assert load is None or load.per_cycle.keys() == store.per_cycle.keys()


def test_each_kernel_loads_or_stores() -> None:
    assert all(sum(accesses.values()) for accesses in ACCESSES.values())
