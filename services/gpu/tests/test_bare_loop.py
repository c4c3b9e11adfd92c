"""The bare loop that benchmarks/gpu compares copies with, against the stand-in for the driver."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from services.gpu.tests import cuda_stub
from services.gpu.tests.compiler import compiler
from tests.compiled import compiled
from tests.machine_code import ROOT

SOURCE = ROOT / "benchmarks" / "gpu" / "memcpy_loop.c"
FLAGS = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror")
MIB = 1 << 20
Loop = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def program() -> Path:
    return compiled("memcpy_loop", [SOURCE], [*FLAGS, "-ldl"], compiler=compiler())


@pytest.fixture
def loop(program: Path, tmp_path: Path) -> Loop:
    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [program, *arguments],
            capture_output=True,
            text=True,
            env=cuda_stub.environment(report=str(tmp_path / "report")),
            timeout=60,
        )

    return run


@pytest.mark.parametrize(
    ("way", "call"),
    [("h2d", "cuMemcpyHtoDAsync"), ("d2h", "cuMemcpyDtoHAsync"), ("d2d", "cuMemcpyDtoDAsync")],
)
@pytest.mark.sampled(2)
def test_it_copies_the_way_that_is_requested(
    loop: Loop, tmp_path: Path, way: str, call: str
) -> None:
    ran = loop(way, str(MIB), "0.05")
    assert ran.returncode == 0, ran.stderr
    assert float(ran.stdout) > 0
    calls = cuda_stub.read_report(tmp_path / "report").calls
    copies = {name: count for name, count in calls.items() if name.startswith("cuMemcpy")}
    assert len(copies) == 1, copies
    ((name, count),) = copies.items()
    assert name.removesuffix("_v2") == call
    # Two loops to warm up, three at the least, of eight copies each.
    assert count >= 40 and count % 8 == 0


@pytest.mark.parametrize(
    "arguments", [(), ("h2d",), ("up", "1", "1"), ("h2d", "1", "1", "1")], ids=str
)
def test_bad_arguments(loop: Loop, arguments: tuple[str, ...]) -> None:
    ran = loop(*arguments)
    assert ran.returncode == 2 and ran.stderr.startswith("usage: memcpy_loop")


def test_without_a_driver_it_says_so(program: Path) -> None:
    if any(Path(directory, cuda_stub.CUDA).exists() for directory in ("/usr/lib", "/lib")):
        pytest.skip("there is a driver here")
    ran = subprocess.run([program, "h2d", "1", "1"], capture_output=True, text=True, env={})
    assert ran.returncode == 1 and "libcuda.so.1" in ran.stderr
