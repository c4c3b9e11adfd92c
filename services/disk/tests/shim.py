"""The stand-in for calls of the C library (file_shim.c), for tests that want a bad disk."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SHIM = Path(__file__).with_name("file_shim.c")


@pytest.fixture(scope="module")
def shim(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The library that stands in for the C library's calls."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no compiler to make the stand-in with")
    library = tmp_path_factory.mktemp("shim") / "file_shim.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
    return str(library)


def shimmed(shim: str, **variables: int) -> dict[str, str]:
    """The environment in which the stand-in does that."""
    given = {f"SHIM_{name.upper()}": str(value) for name, value in variables.items()}
    return os.environ | {"LD_PRELOAD": shim} | given
