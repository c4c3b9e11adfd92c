"""The stand-in for OpenCL's loader (opencl_shim.c), built and put before the real one."""

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from services.gpu.tests.compiler import compiler
from tests.machine_code import ROOT

SOURCE = Path(__file__).with_name("opencl_shim.c")
LOADER = "libOpenCL.so.1"


def build(directory: Path, source: Path = SOURCE) -> None:
    """Make a libOpenCL.so.1 in the directory."""
    include = ROOT / "services" / "gpu" / "bench"
    output = str(directory / LOADER)
    command = [compiler(), "-shared", "-fPIC", "-O1", f"-I{include}", "-o", output, str(source)]
    subprocess.run(command, check=True)


def real_loader() -> str:
    """Where the host's own is; skips where there is none."""
    ldconfig = shutil.which("ldconfig") or "/sbin/ldconfig"
    known = subprocess.run([ldconfig, "-p"], capture_output=True, text=True, check=False).stdout
    found = re.search(rf"{re.escape(LOADER)} .*x86-64.* => (\S+)", known) or re.search(
        rf"{re.escape(LOADER)} .* => (\S+)", known
    )
    if found is None:
        pytest.skip(f"{LOADER} is not installed")
    return found[1]


def shimmed(directory: Path) -> Callable[..., Mapping[str, str]]:
    """Give the environment in which the stand-in does what its variables say."""
    build(directory)
    loader = real_loader()

    def environment(**variables: object) -> Mapping[str, str]:
        given = {f"SHIM_{name.upper()}": str(value) for name, value in variables.items()}
        return {"LD_LIBRARY_PATH": str(directory), "SHIM_REAL": loader, **given}

    return environment
