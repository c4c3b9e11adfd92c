"""The OpenCL kernels: whether they are plain OpenCL C, and what AMD's compiler makes of them. clang
has it built in, and no card is needed."""

import re
import shutil
import subprocess
from functools import cache

import pytest

from services.gpu.kernels.build import opencl_source

# GCN with a cache for each level, and RDNA, which has one level more.
ARCHS = ["gfx900", "gfx90a", "gfx1030"]


def clang() -> str:
    """Skip where it is not installed."""
    found = shutil.which("clang")
    if found is None:
        pytest.skip("clang is not installed")
    return found


OPENCL = ("-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header")


def test_no_compiler_finds_fault_with_a_kernel() -> None:
    """What clang takes as an extension NVIDIA's driver refuses, such as variadic macros; and no
    device of these tests has cl_khr_fp16, which this target has."""
    source = opencl_source()
    kernels = set(re.findall(r"^#ifdef WANT_(\w+)$", source, re.MULTILINE))
    assert {"copy", "fma_fp16", "fma_fp64", "pointer_chase_cg"} <= kernels
    pedantic = ("-Wall", "-Wpedantic", "-Werror", "-Wno-unused-function", "-fsyntax-only")
    for kernel in kernels:
        command = [clang(), *OPENCL, "-target", "spir64", *pedantic, f"-DWANT_{kernel}", "-"]
        made = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
        assert made.returncode == 0, (kernel, made.stderr)


@cache
def instructions(arch: str, kernel: str, level: str) -> tuple[tuple[str, ...], ...]:
    """The words of each instruction; skips where this compiler cannot make them."""
    targets = subprocess.run(
        [clang(), "-print-targets"], capture_output=True, text=True, check=True
    )
    if "amdgcn" not in targets.stdout:
        pytest.skip("this clang compiles nothing for AMD's cards")
    command = [
        *(clang(), *OPENCL),
        *("-target", "amdgcn-amd-amdhsa", f"-mcpu={arch}", "-nogpulib"),
        *("-S", level, f"-DWANT_{kernel}", "-o", "-", "-"),
    ]
    made = subprocess.run(
        command, input=opencl_source(), capture_output=True, text=True, check=True
    ).stdout
    lines = (line.split(";")[0].split() for line in made.splitlines() if line.startswith("\t"))
    return tuple(tuple(words) for words in lines if words and not words[0].startswith("."))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(("kernel", "passes_by"), [("ca", False), ("cg", True)])
def test_in_which_cache_a_chase_looks(arch: str, kernel: str, passes_by: bool) -> None:
    """The L1 cache of vectors, and not that of scalars; or none before the L2."""
    found = instructions(arch, f"pointer_chase_{kernel}", "-O3")
    chased = [words for words in found if words[0] == "global_load_dwordx2"]
    assert len([words for words in chased if ("glc" in words) == passes_by]) >= 64
    assert len(chased) == 65  # and where it begins
    assert not any(words[0] == "s_load_dwordx2" for words in found)


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    ("kernel", "loads", "stores"), [("read", 8, 0), ("copy", 1, 1), ("triad", 2, 1)]
)
@pytest.mark.sampled(7)
def test_arrays_are_in_registers(arch: str, kernel: str, loads: int, stores: int) -> None:
    """Also of a compiler that unrolls no loop unasked."""
    found = [words[0] for words in instructions(arch, kernel, "-O1")]
    assert found.count("global_load_dwordx4") == loads
    assert found.count("global_store_dwordx4") == stores
    assert not [name for name in found if name.startswith(("scratch_", "buffer_load", "buffer_st"))]
