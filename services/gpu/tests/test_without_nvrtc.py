"""Where NVRTC cannot be had: what the build says, and a program with kernels for OpenCL alone."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from services.gpu.tests import cuda_stub
from services.gpu.tests.program import PROGRAM, call
from tests.benchmark import OK, UNSUPPORTED, objects_of
from tests.machine_code import ROOT

BUILD = ROOT / "services" / "gpu" / "kernels" / "build.py"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The release build with other kernels."""
    made = tmp_path_factory.mktemp("opencl-alone")
    subprocess.run([sys.executable, BUILD, "none", made], check=True)
    command = ["gcc", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-pthread"]
    command += [
        "-o",
        str(made / PROGRAM.name),
        str(made / "kernels.c"),
        *map(str, objects_of("gpu")),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return made / PROGRAM.name


def test_it_has_the_source_for_opencl(program: Path) -> None:
    made = program.with_name("kernels.c").read_text()
    assert "pointer_chase" in made and ".incbin" not in made
    full = PROGRAM.stat().st_size
    assert program.stat().st_size < full / 2
    assert call("--list", program=program).returncode == OK


@pytest.mark.parametrize(
    ("workload", "reason"),
    [
        ("fma", "built without CUDA kernels (NVRTC=none)"),
        ("copy", "built without CUDA kernels (NVRTC=none)"),
        ("tensor", "no tensor kernel for"),
    ],
)
def test_a_card_of_nvidias_is_skipped_with_the_reason(
    program: Path, workload: str, reason: str
) -> None:
    result = call(workload, program=program, env=cuda_stub.environment())
    assert result.returncode == UNSUPPORTED, result.stderr
    assert reason in result.stdout and '"event":"skip"' in result.stdout.replace(" ", "")


def test_without_the_wheel_one_line_says_what_to_call(tmp_path: Path) -> None:
    result = subprocess.run(
        [ROOT / "scripts" / "nvrtc.sh", tmp_path / "nvrtc"],
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": ""},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1
    last = result.stderr.splitlines()[-1]
    assert "make run NVRTC=none" in last and "OpenCL alone" in last


def test_make_with_nvrtc_none_fetches_no_wheel() -> None:
    def commands(*words: str) -> str:
        call = ["make", "--dry-run", "--always-make", *words, "build/gpu/kernels.c"]
        return subprocess.check_output(call, cwd=ROOT, text=True)

    assert "scripts/nvrtc.sh" in commands()
    assert "scripts/nvrtc.sh" not in (none := commands("NVRTC=none"))
    assert "build.py none build/gpu" in none
