"""Stand-ins for libcuda.so.1 and libnvidia-ml.so.1: built here, told by the environment what to do
(stub/stub.h lists the variables)."""

import atexit
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest

from tests.machine_code import ROOT

GPU = ROOT / "services" / "gpu"
SOURCES = GPU / "tests" / "stub"
CUDA, NVML = "libcuda.so.1", "libnvidia-ml.so.1"
CUBLASLT = "libcublasLt.so.12"
FLAGS = ("-std=gnu17", "-O2", "-g", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
INCLUDES = (GPU / "bench", GPU / "kernels", ROOT / "harness")


@dataclass(frozen=True)
class Report:
    """What a process has called, how often, what it has not released, and the most bytes: shared
    ones of a group, by kernel, and of `memory` that was asked for at once."""

    calls: dict[str, int]
    left: dict[str, int]
    most: dict[str, int]


def build(directory: Path, library: str, *defines: str) -> Path:
    """Compiles one stand-in into the directory; skips where there is no compiler. `defines` are the
    compiler's -D options: NAME=other takes an entry point away."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler to make the stand-in with")
    sources = {
        CUDA: (
            SOURCES / "libcuda.c",
            SOURCES / "tensor_emulation.c",
            GPU / "kernels" / "emulation.c",
            GPU / "bench" / "element.c",
        ),
        NVML: (SOURCES / "libnvidia_ml.c",),
        CUBLASLT: (SOURCES / "libcublaslt.c", GPU / "bench" / "element.c"),
    }[library]
    command = [
        compiler,
        *FLAGS,
        "-fPIC",
        "-shared",
        "-fvisibility=hidden",
        "-pthread",
        *(f"-I{include}" for include in INCLUDES),
        *(f"-D{define}" for define in defines),
        "-o",
        str(directory / library),
        *map(str, sources),
        str(SOURCES / "stub.c"),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return directory


@cache
def both() -> Path:
    """A directory with both stand-ins, for all tests of this process."""
    directory = Path(mkdtemp(prefix="hostbench-stub-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    build(directory, CUDA)
    return build(directory, NVML)


def environment(directory: Path | None = None, **settings: str | int) -> dict[str, str]:
    """Variables under which a program finds the stand-ins and no OpenCL; the settings without their
    STUB_, in small letters."""
    told = {f"STUB_{name.upper()}": str(value) for name, value in settings.items()}
    return {
        "LD_LIBRARY_PATH": str(directory or both()),
        "OCL_ICD_VENDORS": "/nowhere",
        **told,
    }


def read_report(file: Path) -> Report:
    """The report that STUB_REPORT names."""
    calls: dict[str, int] = {}
    left: dict[str, int] = {}
    most: dict[str, int] = {}
    kinds = {"call": calls, "left": left, "most": most}
    for line in file.read_text().splitlines():
        what, rest = line.split(" ", 1)
        name, count = rest.rsplit(" ", 1)
        kinds[what][name] = int(count)
    return Report(calls, left, most)
