"""Code that a trial writes: no page of it is ever writable and executable at once, each block is
executed, and none of it is a figure where something else was executed."""

import ctypes
import json
import platform
import re
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from services.mem.tests.program import MOMENT, NAME, PROGRAM, call, measure, moment, running
from tests.benchmark import MIB, UNSUPPORTED, WRONG, refused
from tests.machine_code import ROOT

SIZE = 3 * MIB
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
# From the beginning of a block to a bit of the number that it adds: an immediate operand.
VALUE = {"x86_64": 3, "aarch64": 1}
KINDS = ("--pattern=random", "--pattern=sequential")


def mappings(pid: int) -> Iterator[tuple[range, str, str]]:
    """The addresses of each mapping of a process, what may be done with it, and its name."""
    for line in Path(f"/proc/{pid}/maps").read_text().splitlines():
        addresses, rights, *_, name = f"{line} ".split(" ", 5)
        first, end = (int(one, 16) for one in addresses.split("-"))
        yield range(first, end), rights, name.strip()


def code_of(pid: int) -> range:
    """Where the blocks are: the executable memory that is no file's."""
    found = [
        at for at, rights, name in mappings(pid) if rights == "r-xp" and not name and len(at) > MIB
    ]
    (code,) = found
    return code


def without_new_code() -> None:
    """What follows in this process, programs that it turns into included, executes only files."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_MDWE")


@pytest.mark.parametrize("pages", ["4k", "huge"])
def test_no_page_is_writable_and_executable(pages: str) -> None:
    with running("code_chase", f"--size-bytes={SIZE}", f"--pages={pages}", "--threads=2") as (
        process,
        _,
    ):
        assert not [rights for _, rights, _ in mappings(process.pid) if "wx" in rights]
        assert len(code_of(process.pid)) >= SIZE


def test_a_system_that_executes_nothing_new_is_a_skip() -> None:
    arguments = ["code_chase", f"--size-bytes={SIZE}", *MOMENT]
    try:
        result = call(*arguments, preexec_fn=without_new_code)
    except subprocess.SubprocessError:
        pytest.skip("this kernel does not know PR_SET_MDWE (Linux 6.3)")
    refused(result, UNSUPPORTED, "execute what it has written", "execmem")


@pytest.mark.parametrize("pattern", KINDS)
@pytest.mark.parametrize("stride", [64, 192, 4096])
def test_blocks_are_executed_at_any_stride(stride: int, pattern: str) -> None:
    """A trial that ends well has added up what all of them add."""
    arguments = (f"--stride-bytes={stride}", pattern, "--work=100000", *MOMENT[1:])
    found = measure("code_chase", f"--size-bytes={MIB}", *arguments)
    assert 100_000 <= found.metrics["work_operations"] < 100_000 + 32


@pytest.mark.exhaustive
@pytest.mark.parametrize("pattern", KINDS)
def test_several_regions_are_one_cycle_on_aarch64(pattern: str) -> None:
    """The way back from the last of them is further than a jump leads there. Others have no such
    regions below 512 MiB."""
    arguments = (f"--size-bytes={160 * MIB}", "--stride-bytes=4096", pattern, "--pages=4k")
    program = ROOT / "build" / "aarch64" / NAME
    measure(
        "code_chase",
        *(*arguments, "--work=200000", *MOMENT[1:]),
        prefix=["qemu-aarch64"],
        program=program,
    )


@pytest.mark.parametrize("restored", [False, True])
def test_a_block_that_adds_something_else_exits_5(restored: bool) -> None:
    """Even where the code is as it was when it is checked: then the sums are not."""
    arguments = (f"--size-bytes={SIZE}", "--threads=1", "--duration-s=1.2", "--warmup-s=0")
    with subprocess.Popen(
        [PROGRAM, "code_chase", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["event"] == "start"
        at = code_of(process.pid)[0] + VALUE[platform.machine()]
        with Path(f"/proc/{process.pid}/mem").open("r+b", buffering=0) as memory:
            memory.seek(at)
            byte = memory.read(1)[0]
            for one in (byte ^ 4, *([byte] if restored else [])):
                memory.seek(at)
                memory.write(bytes([one]))
                time.sleep(0.1)
        output, errors = process.communicate(timeout=60)
    assert process.returncode == WRONG, errors
    assert re.search("jumps of thread 0, CPU \\d+, did not lead", errors)
    assert '"end"' not in output


def test_code_in_the_first_cache_is_not_slower_than_in_memory() -> None:
    """The ladder, from its ends: others only lengthen a jump, so the least counts."""
    sizes = (8 << 10, 64 * MIB)
    least = dict.fromkeys(sizes, float("inf"))

    def is_longer() -> bool:
        for size in sizes:
            found = measure("code_chase", f"--size-bytes={size}", *moment("code_chase")).metrics
            time_s = found["jump_time_s_best"] or found["jump_time_s"]
            least[size] = min(least[size], time_s)
        return least[64 * MIB] > 3 * least[8 << 10]

    assert any(is_longer() for _ in range(6)), least
    # A jump takes a fraction of a nanosecond at least, and an access to memory at most.
    assert least[8 << 10] > 5e-11 and least[64 * MIB] < 2e-6, least


def test_cycles_of_a_jump_are_its_time_by_a_clock() -> None:
    found = measure("code_chase", f"--size-bytes={8 << 10}", *moment("code_chase"))
    if found.metrics["jump_cycles"] is None:
        assert "others took the CPU" in found.end["reasons"]["metrics.jump_cycles"]
    else:
        clock = found.metrics["jump_cycles"] / found.metrics["jump_time_s"]
        assert 0.3e9 < clock < 7e9
