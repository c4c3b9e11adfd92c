"""Which of the embedded images a device gets."""

import ctypes
import subprocess
from pathlib import Path
from typing import Any

import pytest

from services.gpu.tests.compiler import compiler

GPU = Path(__file__).parents[1]
ROOT = GPU.parents[1]
CARRIER = ROOT / "build" / "gpu" / "kernels.c"


class Image(ctypes.Structure):
    """struct kernel_image."""

    _fields_ = (
        ("file", ctypes.c_char_p),
        ("cc_major", ctypes.c_int),
        ("cc_minor", ctypes.c_int),
        ("ptx", ctypes.c_bool),
        ("one_only", ctypes.c_bool),
        ("bytes", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("kernels", ctypes.POINTER(ctypes.c_char_p)),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    assert CARRIER.exists(), f"{CARRIER} is missing: make programs builds it"
    made = tmp_path_factory.mktemp("set") / "set.so"
    subprocess.run(
        f"{compiler()} -std=gnu17 -shared -fPIC -o {made} "
        f"{CARRIER} {GPU}/bench/kernel_set.c".split(),
        check=True,
        cwd=ROOT,
    )
    library = ctypes.CDLL(str(made))
    library.kernel_image.restype = library.kernel_ptx.restype = ctypes.POINTER(Image)
    library.kernel_exists.restype = ctypes.c_bool
    library.kernel_opencl_source.restype = ctypes.c_char_p
    return library


def file(image: Any) -> str | None:
    return str(image.contents.file.decode()) if image else None


@pytest.mark.parametrize(
    ("kernel", "capability", "expected"),
    [
        ("fma_fp32", (7, 0), "shared_sm_70.cubin"),
        ("fma_fp32", (7, 2), "shared_sm_70.cubin"),
        ("fma_fp32", (8, 0), "shared_sm_80.cubin"),
        ("fma_fp32", (8, 7), "shared_sm_86.cubin"),
        ("fma_fp32", (9, 0), "shared_sm_90.cubin"),
        ("fma_fp32", (10, 3), "shared_sm_100.cubin"),
        ("fma_fp32", (11, 0), "shared_compute_80.ptx"),
        ("fma_fp32", (12, 1), "shared_sm_120.cubin"),
        ("fma_fp32", (13, 0), "shared_compute_120.ptx"),
        ("fma_fp32", (6, 1), None),
        ("fma_bf16", (7, 5), None),
        ("fma_fp32x2", (10, 0), "shared_sm_100.cubin"),
        ("fma_fp32x2", (12, 0), None),
        ("fma_fp8", (9, 0), None),
    ],
)
def test_image(
    library: ctypes.CDLL, kernel: str, capability: tuple[int, int], expected: str | None
) -> None:
    assert file(library.kernel_image(kernel.encode(), *capability)) == expected


def test_ptx_instead(library: ctypes.CDLL) -> None:
    assert file(library.kernel_ptx(b"fma_fp32", 8, 9)) == "shared_compute_80.ptx"
    assert file(library.kernel_ptx(b"fma_fp32", 12, 0)) == "shared_compute_120.ptx"
    assert file(library.kernel_ptx(b"fma_fp32", 7, 5)) is None
    assert library.kernel_exists(b"fma_fp32") and not library.kernel_exists(b"fma_fp8")


def test_architecture_specific_code_runs_there_alone(library: ctypes.CDLL) -> None:
    found = library.kernel_image(b"fma_fp32", 9, 0).contents
    assert not found.one_only
    specific = [path.stem.split("_")[-1] for path in CARRIER.parent.glob("*a.cubin")]
    assert specific, "no set has an architecture-specific target"
    for path in CARRIER.parent.glob("*_sm_90a.cubin"):
        kernel = name_in(path)
        assert file(library.kernel_image(kernel, 9, 0)) == path.name
        assert library.kernel_image(kernel, 9, 0).contents.one_only
        assert file(library.kernel_image(kernel, 10, 0)) != path.name


def name_in(path: Path) -> bytes:
    code = path.read_bytes()
    start = code.index(b".text.") + len(b".text.")
    return code[start : code.index(b"\0", start)]


def test_images_are_the_files(library: ctypes.CDLL) -> None:
    for kernel, capability in ((b"fma_fp32", (9, 0)), (b"empty", (13, 0))):
        image = library.kernel_image(kernel, *capability).contents
        carried = ctypes.string_at(image.bytes, image.size)
        assert carried == (CARRIER.parent / image.file.decode()).read_bytes()
        assert carried.endswith(b"\0") or not image.ptx


def test_opencl_source_is_all_of_it(library: ctypes.CDLL) -> None:
    size = ctypes.c_size_t()
    source = library.kernel_opencl_source(ctypes.byref(size))
    assert len(source) == size.value
    for part in ("prelude_opencl.h", "vector.k", "memory.k", "chase.k"):
        assert (GPU / "kernels" / part).read_bytes() in source
