"""Memory that does not hold what it should is an error, never a figure.

Instructions are taken out of a copy of the real program, the C library's functions are replaced by
ones that spoil a bit, and memory is overwritten from outside while the program runs.
"""

import json
import os
import platform
import re
import signal
import subprocess
import time
from itertools import product
from pathlib import Path

import pytest

from services.mem.tests.loops import Traffic, innermost_loops
from services.mem.tests.program import NAME, PROGRAM, STREAM, call, running, threads_of
from services.mem.tests.test_disassembly import accesses, vector_loops
from tests.benchmark import MIB, OK, UNSUPPORTED, WRONG, objects_of, refused
from tests.machine_code import NOP, ROOT, Instruction, functions, without

ISAS = ("scalar", "sse2", "avx2", "avx512")
KERNELS = [
    (operation, isa, store)
    for operation, isa, store in product(STREAM, ISAS, ("plain", "nt"))
    if operation != "read" or store == "plain"
]
SHIM = Path(__file__).with_name("libc_shim.c")
SIZE = f"--size-bytes={3 * MIB}"
BRIEF = (SIZE, "--threads=1", "--duration-s=0.01", "--warmup-s=0")
x86_only = pytest.mark.skipif(platform.machine() != "x86_64", reason="changes the x86-64 program")


def is_memory(operand: str) -> bool:
    return operand.endswith(")")


def victims(loops: list[Traffic], what: str) -> list[Instruction]:
    """One instruction of this kind in each loop; none where a kernel has no such instruction."""
    found = []
    for loop in loops:
        moving = [one for one in loop.body if "(" in one.operands]
        stores = [one for one in moving if is_memory(one.operands)]
        loads = [one for one in moving if not is_memory(one.operands)]
        vectors = [one for one in loop.body if "mm" in one.operands]
        sums = [one for one in vectors if re.search("add|mul", one.mnemonic)]
        kinds = {
            "first load": loads[:1],
            "last load": loads[-1:],
            "first store": stores[:1],
            "last store": stores[-1:],
            "arithmetic": sums[len(sums) // 2 :][:1],
        }
        found += kinds[what]
    return found


@x86_only
@pytest.mark.parametrize(("operation", "isa", "store"), KERNELS)
@pytest.mark.sampled(5)
def test_missing_instruction_exits_5(operation: str, isa: str, store: str, tmp_path: Path) -> None:
    kind = [] if operation == "read" else [f"--store={store}"]
    arguments = [operation, f"--isa={isa}", *kind, *BRIEF]
    healthy = call(*arguments)
    if healthy.returncode == UNSUPPORTED:
        pytest.skip(f"not on this CPU: {healthy.stderr.strip()}")
    assert healthy.returncode == OK, healthy.stderr
    loops = vector_loops("release", operation, isa, "" if operation == "read" else store)
    tried = 0
    for what in ("first load", "last load", "first store", "last store", "arithmetic"):
        if out := victims(loops, what):
            broken = tmp_path / "mem-bench"
            without(out, PROGRAM, broken)
            result = call(*arguments, program=broken)
            assert result.returncode == WRONG, f"the {what} is not missed: {result.stdout}"
            refused(result, WRONG, "do not trust")
            tried += 1
    assert tried >= 2


@x86_only
@pytest.mark.parametrize("operation", ["read", "write", "update"])
@pytest.mark.parametrize(
    ("index", "order", "size_bytes"),
    # Over a power of two of blocks the generator has a loop of its own, and comes to no place twice
    # in a round.
    [
        ("precomputed", "index", 2 * MIB),
        ("lcg", "power", 2 * MIB),
        ("lcg", "generator", 3 * MIB),
    ],
)
@pytest.mark.sampled(5)
def test_a_missing_access_exits_5(
    index: str, order: str, size_bytes: int, operation: str, tmp_path: Path
) -> None:
    found = accesses(order, operation.upper())
    for victim in (found[0], found[-1]):
        broken = tmp_path / "mem-bench"
        without([victim], PROGRAM, broken)
        arguments = [f"--index={index}", f"--operation={operation}", f"--size-bytes={size_bytes}"]
        arguments += BRIEF[1:]
        assert call("random_access", *arguments).returncode == OK
        refused(call("random_access", *arguments, program=broken), WRONG, "do not trust")


@x86_only
@pytest.mark.parametrize("index", ["precomputed", "lcg"])
def test_a_missing_access_of_the_first_round_exits_5(index: str, tmp_path: Path) -> None:
    """Before each place was visited once."""
    found = accesses("index" if index == "precomputed" else "power", "WRITE")
    without([found[3]], PROGRAM, tmp_path / "mem-bench")
    arguments = [f"--index={index}", "--operation=write", f"--size-bytes={16 * MIB}"]
    brief = ["--threads=1", "--work=1000", "--warmup-s=0"]
    result = call("random_access", *arguments, *brief, program=tmp_path / "mem-bench")
    refused(result, WRONG, "do not trust")


@x86_only
@pytest.mark.parametrize(("chains", "which"), [(1, 0), (1, 17), (1, -1), (8, 3), (8, -1)])
def test_a_missing_step_of_the_chase_exits_5(chains: int, which: int, tmp_path: Path) -> None:
    (body,) = innermost_loops(functions("release", NAME)[f"follow_{chains}"], "x86_64")
    steps = [one for one in body if "(" in one.operands]
    without([steps[which]], PROGRAM, tmp_path / "mem-bench")
    arguments = ["pointer_chase", f"--chains={chains}", *BRIEF]
    result = call(*arguments, program=tmp_path / "mem-bench")
    refused(result, WRONG, "do not trust")


# Each step does half of what it should.
SHORTENED = ("->step(&worker->thread, batch)", "->step(&worker->thread, (batch + 1) / 2)")


@pytest.fixture(scope="module")
def shortened(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program with a harness that shortens every batch and does not say so."""
    source = (ROOT / "harness" / "slices.c").read_text()
    assert source.count(SHORTENED[0]) == 1
    folder = tmp_path_factory.mktemp("shortened")
    changed, program = folder / "slices.c", folder / "mem-bench"
    changed.write_text(source.replace(*SHORTENED))
    others = set(objects_of("mem")) - {PROGRAM.parent / "harness" / "slices.o"}
    options = ["-std=gnu17", "-O2", "-pthread", f"-I{ROOT / 'harness'}"]
    subprocess.run(["gcc", *options, "-o", program, changed, *others, "-lm"], check=True)
    return program


@pytest.mark.parametrize(
    ("workload", "arguments"),
    [
        *((workload, ()) for workload in STREAM),
        ("copy", ("--store=libc", "--block-bytes=65536")),
        ("copy", ("--block-bytes=4096", "--pattern=random")),
        ("write", ("--block-bytes=131072",)),
        ("read_write", ("--block-bytes=1000",)),
        ("memset_write", ("--block-bytes=131072",)),
        ("pointer_chase", ()),
        ("pointer_chase", ("--chains=5", "--stride-bytes=4096")),
        ("code_chase", ()),
        ("code_chase", ("--pattern=sequential", "--stride-bytes=192")),
        ("random_access", ()),
        ("random_access", ("--operation=write", "--index=lcg")),
        ("random_access", ("--operation=update",)),
        ("loaded_latency", ()),
    ],
)
@pytest.mark.sampled(5)
def test_a_shortened_batch_exits_5(
    workload: str, arguments: tuple[str, ...], shortened: Path
) -> None:
    brief = [SIZE, threads_of(workload), *BRIEF[2:], *arguments]
    healthy = call(workload, *brief)
    assert healthy.returncode == OK, healthy.stderr
    result = call(workload, *brief, program=shortened)
    refused(result, WRONG, "units of work", "do not trust")


@x86_only
@pytest.mark.parametrize(("index", "order"), [("precomputed", "index"), ("lcg", "power")])
def test_a_write_that_is_lost_after_the_first_round_exits_5(index: str, order: str) -> None:
    """Places hold what earlier rounds wrote by then: the program is changed while it runs."""
    victim = accesses(order, "WRITE")[3]
    arguments = ["random_access", f"--index={index}", "--operation=write", "--threads=1"]
    with subprocess.Popen(
        [PROGRAM, *arguments, f"--size-bytes={2 * MIB}", "--duration-s=1.2"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "start"
        time.sleep(0.5)
        overwrite(process.pid, victim)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == WRONG, errors
    assert '"end"' not in output


def overwrite(pid: int, victim: Instruction) -> None:
    """By no-operations, in the code of a process."""
    lines = Path(f"/proc/{pid}/maps").read_text().splitlines()
    base = min(int(line.split("-")[0], 16) for line in lines if line.endswith(f"/{NAME}"))
    with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
        memory.seek(base + victim.address)
        assert memory.read(len(victim.code)) == victim.code
        memory.seek(base + victim.address)
        memory.write(NOP * len(victim.code))


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The environment in which the C library's functions spoil a bit."""
    library = tmp_path_factory.mktemp("shim") / "libc_shim.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-O1", "-fno-builtin", "-o", library, SHIM], check=True
    )
    return {**os.environ, "LD_PRELOAD": str(library)}


@pytest.mark.parametrize(
    ("workload", "argument", "function"),
    [
        ("write", "--store=libc", "memset"),
        ("copy", "--store=libc", "memcpy"),
        ("read_write", "--block-bytes=4096", "memcpy"),
        ("memset_write", "--block-bytes=4096", "memset"),
        ("naive_copy", "--block-bytes=4096", "memcpy"),
        ("naive_copy", "--lock=each", "memcpy"),
        ("naive_set", "--block-bytes=4096", "memset"),
        ("naive_set", "--pattern=random", "memset"),
    ],
)
def test_a_wrong_bit_of_the_c_library_exits_5(
    shim: dict[str, str], workload: str, argument: str, function: str
) -> None:
    healthy = call(workload, argument, *BRIEF, env={**shim, "SHIM": "none"})
    assert healthy.returncode == OK, healthy.stderr
    spoilt = call(workload, argument, *BRIEF, env={**shim, "SHIM": function})
    refused(spoilt, WRONG, "do not trust")


def test_the_wrong_library_does_no_harm_to_our_own_kernels(shim: dict[str, str]) -> None:
    environment = {**shim, "SHIM": "memcpy"}
    assert call("copy", "--store=plain", *BRIEF, env=environment).returncode == OK


@pytest.mark.parametrize("workload", ["read", "copy", "triad", "pointer_chase", "naive_copy"])
def test_memory_that_changes_by_itself_is_no_figure(workload: str) -> None:
    """As a failing module does: single bits, in the middle of the arrays."""
    with subprocess.Popen(
        [PROGRAM, workload, f"--size-bytes={48 * MIB}", "--threads=1", "--duration-s=1"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "start"
        time.sleep(0.2)
        flip_bits(process.pid, 48 * MIB)
        output, _ = process.communicate(timeout=60)
    assert process.returncode != OK
    assert '"end"' not in output


@pytest.mark.parametrize("seed", range(5))
def test_a_changed_word_is_named_with_its_address_and_bits(seed: int) -> None:
    """In each pattern; in whatever the CPU of the other thread has written, too."""
    with running("patterns", f"--size-bytes={48 * MIB}", f"--seed={seed}") as (process, _):
        process.send_signal(signal.SIGSTOP)
        changed = flip_bits(process.pid, 48 * MIB)
        process.send_signal(signal.SIGCONT)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == WRONG
    wrong = json.loads(output.splitlines()[-1])["wrong"]
    assert int(wrong["expected"], 16) ^ int(wrong["value"], 16) == 4
    assert int(wrong["place"].removeprefix("address ").split(",")[0], 16) in changed


def flip_bits(pid: int, least: int) -> range:
    """One in every MiB of the mapping that holds the arrays. Returns their addresses."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        first, end = (int(word, 16) for word in line.split()[0].split("-"))
        if line.split()[1] == "rw-p" and least <= end - first < 2 * least:
            with Path(f"/proc/{pid}/mem").open("r+b", buffering=0) as memory:
                changed = range(first + MIB // 2 + 8, end - MIB, MIB)
                for at in changed:
                    memory.seek(at)
                    byte = memory.read(1)[0]
                    memory.seek(at)
                    memory.write(bytes([byte ^ 4]))
            return changed
    raise AssertionError("no mapping is as large as the arrays")
