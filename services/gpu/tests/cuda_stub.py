"""Stand-ins for libcuda.so.1 and libnvidia-ml.so.1: built here; the environment controls them
(stub/stub.h lists the variables)."""

import atexit
import shutil
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from services.gpu.tests.compiler import compiler
from tests.compiled import compiled
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
    ones of a group, by kernel, and of `memory` that was requested at once."""

    calls: dict[str, int]
    left: dict[str, int]
    most: dict[str, int]


@cache
def scratch() -> Path:
    """A directory that is there as long as this process."""
    directory = Path(mkdtemp(prefix="hostbench-stub-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return directory


@cache
def compiled_object(source: Path, *defines: str) -> Path:
    """One source as an object."""
    includes = [f"-I{include}" for include in INCLUDES]
    options = [*FLAGS, "-fPIC", "-fvisibility=hidden", "-pthread", *includes]
    names = [f"-D{define}" for define in defines]
    return compiled(f"{source.stem}.o", [source], [*options, *names, "-c"], compiler=compiler())


def build(directory: Path, library: str, *defines: str) -> Path:
    """Make one stand-in in the directory; skip where there is no compiler. `defines` are the
    compiler's -D options: NAME=other takes an entry point away."""
    own, *others = {
        CUDA: (
            SOURCES / "libcuda.c",
            SOURCES / "tensor_emulation.c",
            GPU / "kernels" / "emulation.c",
            GPU / "bench" / "element.c",
        ),
        NVML: (SOURCES / "libnvidia_ml.c",),
        CUBLASLT: (SOURCES / "libcublaslt.c", GPU / "bench" / "element.c"),
    }[library]
    others.append(SOURCES / "stub.c")
    objects = [compiled_object(own, *defines), *map(compiled_object, others)]
    linked: list[str | Path] = [
        compiler(),
        "-shared",
        "-pthread",
        "-o",
        directory / library,
        *objects,
        "-lm",
    ]
    subprocess.run(linked, check=True)
    return directory


@cache
def both() -> Path:
    """A directory with both stand-ins, for all tests of this process."""
    directory = scratch() / "both"
    directory.mkdir()
    build(directory, CUDA)
    return build(directory, NVML)


def link_both(directory: Path) -> Path:
    """Put both into another directory, to stand beside others there."""
    for library in (CUDA, NVML):
        (directory / library).symlink_to(both() / library)
    return directory


def environment(directory: Path | None = None, **settings: str | int) -> dict[str, str]:
    """Variables under which a program finds the stand-ins and no OpenCL; the settings without their
    STUB_, in small letters."""
    variables = {f"STUB_{name.upper()}": str(value) for name, value in settings.items()}
    return {
        "LD_LIBRARY_PATH": str(directory or both()),
        "OCL_ICD_VENDORS": "/nowhere",
        **variables,
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
