"""Every bandwidth kernel moves what its figure counts, by the instructions that its name claims."""

import re
from itertools import product

import pytest
from _pytest.mark.structures import ParameterSet

from services.mem.tests.loops import CALLS, Traffic, innermost_loops, traffic
from services.mem.tests.program import ARRAYS, NAME, STREAM, measure
from tests.benchmark import MIB
from tests.builds import builds
from tests.machine_code import Instruction, functions

MACHINES = {"release": "x86_64", "clang": "x86_64", "aarch64": "aarch64"}
REGISTERS = {
    ("x86_64", "scalar"): {"%xmm", "%r"},
    ("x86_64", "sse2"): {"%xmm"},
    ("x86_64", "avx2"): {"%ymm"},
    ("x86_64", "avx512"): {"%zmm"},
    ("aarch64", "scalar"): {"d", "x"},
    ("aarch64", "neon"): {"q"},
}
# How a store tells the caches that it need not come through them.
BYPASSING = {
    ("x86_64", "scalar"): {"movnti"},
    ("x86_64", "sse2"): {"movntps"},
    ("x86_64", "avx2"): {"vmovntps"},
    ("x86_64", "avx512"): {"vmovntps"},
    ("aarch64", "scalar"): {"stnp"},
    ("aarch64", "neon"): {"stnp"},
}
STORES = ("plain", "nt")
ONE_UNIT = (f"--size-bytes={MIB}", "--work=1", "--threads=1", "--warmup-s=0")
FENCE = {"x86_64": "sfence", "aarch64": "dmb"}


def kernels() -> list[ParameterSet]:
    """Variant, operation, isa, store of every kernel; a read stores nothing."""
    found = []
    for build in builds(*MACHINES):
        (variant,) = build.values
        isas = [isa for machine, isa in REGISTERS if machine == MACHINES[str(variant)]]
        for operation, isa in product(STREAM, isas):
            stores = ("",) if operation == "read" else STORES
            found += [
                pytest.param(variant, operation, isa, store, marks=build.marks) for store in stores
            ]
    return found


def vector_loops(variant: str, operation: str, isa: str, store: str) -> list[Traffic]:
    """The loops over whole cache lines of a kernel, in all of its forms. Those over what is left
    behind the last line move no line in an iteration."""
    stem = "_".join(word for word in (operation, isa, store) if word)
    named = {name: body for name, body in functions(variant, NAME).items()
             if name.partition(".")[0].startswith(f"{stem}_")}  # fmt: skip
    assert named, f"{NAME} has no kernel {stem}"
    found = []
    for name, body in named.items():
        calls = [one for one in body if one.mnemonic in CALLS]
        assert all(stem in one.operands for one in calls), f"{name} calls something else"
        loops = [
            traffic(one, MACHINES[variant]) for one in innermost_loops(body, MACHINES[variant])
        ]
        found += [one for one in loops if max(one.loaded, one.stored) >= 64]
    assert found, f"{stem} has no loop over cache lines"
    return found


@pytest.mark.parametrize(("variant", "operation", "isa", "store"), kernels())
def test_a_kernel_moves_what_it_counts(variant: str, operation: str, isa: str, store: str) -> None:
    written = 0 if operation == "read" else 1
    for loop in vector_loops(variant, operation, isa, store):
        line = loop.loaded if operation == "read" else loop.stored
        assert loop.stored == written * line
        assert loop.loaded == (ARRAYS[operation] - written) * line
        # Side by side in several pages, the counter grows by what is done in each of them.
        streams, rest = divmod(line, loop.step)
        assert rest == 0 and streams in (1, 2, 4, 8)


@pytest.mark.parametrize(("variant", "operation", "isa", "store"), kernels())
def test_a_kernel_uses_what_it_is_called_after(
    variant: str, operation: str, isa: str, store: str
) -> None:
    machine = MACHINES[variant]
    bypassing = BYPASSING[machine, isa]
    for loop in vector_loops(variant, operation, isa, store):
        assert loop.registers <= REGISTERS[machine, isa]
        if store == "nt":
            assert set(loop.stores) <= bypassing
        else:
            assert not any("nt" in name or name == "stnp" for name in loop.stores)
        assert not any(one.mnemonic.startswith("rep") for one in loop.body)


def on_vectors(instruction: Instruction, machine: str) -> bool:
    """Whether it is no arithmetic of addresses."""
    vector = r"%[yz]mm" if machine == "x86_64" else r"^v\d"
    return re.search(vector, instruction.operands) is not None


@pytest.mark.parametrize("operation", ["scale", "add", "triad"])
@pytest.mark.parametrize("variant", builds(*MACHINES))
def test_the_arithmetic_is_done(variant: str, operation: str) -> None:
    """Once for each register of results."""
    machine = MACHINES[variant]
    words = {"scale": ("mul",), "add": ("add",), "triad": ("mul", "madd", "mla")}[operation]
    isa = "neon" if machine == "aarch64" else "avx2"
    register_bytes = 16 if machine == "aarch64" else 32
    for loop in vector_loops(variant, operation, isa, "plain"):
        arithmetic = [
            one
            for one in loop.body
            if any(word in one.mnemonic for word in words) and on_vectors(one, machine)
        ]
        assert len(arithmetic) == loop.stored / register_bytes


# A block of 8 bytes: by the index, at a scaled place; by the generator, also over a power of two of
# blocks, wherever its own state, which is on the stack, is not.
ANYWHERE = re.compile(r"\((?!%rsp)")
BLOCK = {
    "index": re.compile(r"\(%\w+,%\w+,8\)"),
    "generator": ANYWHERE,
    "power": ANYWHERE,
}
NO_ACCESS = ("lea", "prefetch", "nop")


def accesses(order: str, operation: str) -> list[Instruction]:
    """Those of one iteration of random_access to blocks of 8 bytes, on x86-64: what reads, or of
    what reads and writes again the writing."""
    body = functions("release", NAME)[f"{order}_{operation}_8"]
    found = [
        one
        for one in max(innermost_loops(body, "x86_64"), key=len)
        if BLOCK[order].search(one.operands) and not one.mnemonic.startswith(NO_ACCESS)
    ]
    stores = [one for one in found if one.operands.endswith(")")]
    return found if operation in ("NONE", "READ") else stores


@pytest.mark.parametrize("order", BLOCK)
def test_random_accesses_are_as_many_as_are_counted(order: str) -> None:
    counted = measure("random_access", *ONE_UNIT).metrics["work_operations"]
    found = {operation: accesses(order, operation) for operation in ("READ", "WRITE", "UPDATE")}
    assert {operation: len(those) for operation, those in found.items()} == dict.fromkeys(
        found, counted
    )
    assert not any(one.operands.endswith(")") for one in found["READ"])
    assert accesses(order, "NONE") == [], "the empty loop touches the memory"


def test_the_chase_is_nothing_but_dependent_loads() -> None:
    (loop,) = innermost_loops(functions("release", NAME)["follow_1"], "x86_64")
    loads = [one for one in loop if "(" in one.operands]
    assert {one.mnemonic for one in loads} == {"mov"}
    assert len({one.operands for one in loads}) == 1
    address, register = loads[0].operands.split(",")
    assert address == f"({register})", "a load does not wait for the one before"
    assert len(loads) == measure("pointer_chase", *ONE_UNIT).metrics["work_operations"]
    assert len(loop) - len(loads) <= 3


@pytest.mark.parametrize("chains", [2, 8, 32])
def test_each_chain_is_a_load_of_its_own(chains: int) -> None:
    """Those beyond the registers are kept on the stack in between."""
    (loop,) = innermost_loops(functions("release", NAME)[f"follow_{chains}"], "x86_64")
    operands = [one.operands for one in loop if one.mnemonic == "mov"]
    hops = [one for one in operands if re.fullmatch(r"(0x0)?\(%r(?!sp)\w+\),%r\w+", one)]
    assert len(hops) == chains
    if chains <= 8:
        assert len(loop) == chains + 3
    operations = measure("pointer_chase", *ONE_UNIT, f"--chains={chains}").metrics
    assert operations["work_operations"] == 64 * chains


@pytest.mark.parametrize("variant", builds(*MACHINES))
def test_stores_around_the_caches_are_waited_for(variant: str) -> None:
    fences = {
        name
        for name, body in functions(variant, NAME).items()
        if any(one.mnemonic == FENCE[MACHINES[variant]] for one in body)
    }
    assert fences, "nothing waits for them"
