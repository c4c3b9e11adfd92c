"""The shared kernels, run on the host, against the closed forms of what they must leave."""

import ctypes
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from services.gpu.tests.compiler import compiler
from tests.compiled import compiled

GPU = Path(__file__).parents[1]
GROUP_SIZE = 256
TILE_BYTES = 32768
GROUPS = 8  # of copy and triad, a tile
VECTOR = [
    ("fma", "fp64"),
    ("fma", "fp32"),
    ("fma", "fp16"),
    ("fma", "bf16"),
    ("fma", "fp32x2"),
    ("int_add", "int32"),
    ("int_add", "int64"),
    ("int_mul_add", "int32"),
    ("int_mul_add", "int64"),
    ("dp4a", "int8"),
]
STEP = 2654435761


class VectorKernel(ctypes.Structure):
    """struct vector_kernel."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("workload", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("results", ctypes.c_uint),
        ("result_bytes", ctypes.c_uint),
        ("operations", ctypes.c_double),
        ("most_iterations", ctypes.c_uint32),
    )


class Mismatch(ctypes.Structure):
    """struct vector_mismatch."""

    _fields_ = (
        ("work_item", ctypes.c_size_t),
        ("result", ctypes.c_uint),
        ("expected", ctypes.c_char * 32),
        ("found", ctypes.c_char * 32),
    )


Array = np.ndarray[tuple[int], np.dtype[np.uint8]]


@pytest.fixture(scope="module")
def library() -> ctypes.CDLL:
    sources = (GPU / "kernels" / "emulation.c", GPU / "bench" / "vector_check.c")
    options = ("-std=gnu17", "-O2", "-Wall", "-Wextra", "-Werror", "-ffp-contract=off")
    made = compiled("kernels.so", sources, [*options, "-shared", "-fPIC"], compiler=compiler())
    library = ctypes.CDLL(str(made))
    library.vector_kernel.restype = ctypes.POINTER(VectorKernel)
    library.vector_result_bytes.restype = ctypes.c_size_t
    library.vector_check.restype = ctypes.c_bool
    return library


@pytest.fixture
def run(library: ctypes.CDLL) -> Callable[..., None]:
    """Run a kernel: arrays are memory, whole numbers are u32."""

    def run(name: str, groups: int, *arguments: Array | int, group_size: int = GROUP_SIZE) -> None:
        holders = [
            ctypes.c_uint32(a) if isinstance(a, int) else ctypes.c_void_p(a.ctypes.data)
            for a in arguments
        ]
        array = (ctypes.c_void_p * max(len(holders), 1))(
            *(ctypes.cast(ctypes.pointer(h), ctypes.c_void_p) for h in holders)
        )
        assert library.kernel_emulate(name.encode(), groups, group_size, array) == 0

    return run


class Vectors:
    """One vector kernel with its buffers for two groups."""

    def __init__(self, library: ctypes.CDLL, workload: str, dtype: str) -> None:
        self.library = library
        self.row = library.vector_kernel(workload.encode(), dtype.encode())
        self.name = self.row.contents.name.decode()
        self.work_items = 2 * GROUP_SIZE
        self.operands = np.zeros(1024, np.uint8)
        size = library.vector_result_bytes(self.row, ctypes.c_size_t(self.work_items))
        self.results = np.zeros(size, np.uint8)
        self.record = np.zeros(64, np.uint8)
        library.vector_operands(self.row, ctypes.c_void_p(self.operands.ctypes.data))

    def check(self, iterations: int) -> Mismatch | None:
        first = Mismatch()
        return (
            None
            if self.library.vector_check(
                self.row,
                ctypes.c_void_p(self.results.ctypes.data),
                ctypes.c_size_t(self.work_items),
                ctypes.c_uint32(iterations),
                ctypes.byref(first),
            )
            else first
        )


@pytest.mark.parametrize(("workload", "dtype"), VECTOR)
@pytest.mark.parametrize("iterations", [0, 1, 2, 7, 128, 129])
@pytest.mark.sampled(7)
def test_closed_form(
    library: ctypes.CDLL, run: Callable[..., None], workload: str, dtype: str, iterations: int
) -> None:
    vectors = Vectors(library, workload, dtype)
    run(vectors.name, 2, vectors.operands, vectors.results, iterations, vectors.record, 1)
    assert vectors.check(iterations) is None
    if iterations:
        assert vectors.check(iterations - 1) and vectors.check(iterations + 1)
    begin, _, end, _ = (int(word) for word in vectors.record.view(np.uint64)[4:])
    assert (~begin & (2**64 - 1)) <= end


@pytest.mark.parametrize(("workload", "dtype"), VECTOR)
def test_one_wrong_bit_is_found(
    library: ctypes.CDLL, run: Callable[..., None], workload: str, dtype: str
) -> None:
    vectors = Vectors(library, workload, dtype)
    run(vectors.name, 2, vectors.operands, vectors.results, 5, vectors.record, 0)
    chooser = random.Random(dtype)
    width = vectors.row.contents.result_bytes
    for _ in range(50):
        at = chooser.randrange(len(vectors.results))
        bit = 1 << chooser.randrange(8)
        vectors.results[at] ^= bit
        first = vectors.check(5)
        assert first is not None
        index = at // width
        assert (first.result, first.work_item) == divmod(index, vectors.work_items)
        assert first.expected != first.found
        vectors.results[at] ^= bit
    assert vectors.check(5) is None


def test_every_chain_begins_differently(library: ctypes.CDLL, run: Callable[..., None]) -> None:
    for workload, dtype in VECTOR:
        vectors = Vectors(library, workload, dtype)
        run(vectors.name, 2, vectors.operands, vectors.results, 0, vectors.record, 0)
        width = vectors.row.contents.result_bytes
        words = vectors.results.view(np.uint64 if width == 8 else np.uint32)
        chains = words.reshape(vectors.row.contents.results, vectors.work_items)
        for item in (0, 1, 511):
            assert len(set(chains[:, item].tolist())) == len(chains), vectors.name


def memory(tiles: int) -> Array:
    return np.zeros(tiles * TILE_BYTES, np.uint8)


def pattern(seed: int, words: int) -> np.ndarray[tuple[int], np.dtype[np.uint32]]:
    return (np.arange(words, dtype=np.uint64) * STEP + seed).astype(np.uint32)


@pytest.mark.parametrize("kernel", ["fill", "write"])
def test_fill_and_write(run: Callable[..., None], kernel: str) -> None:
    to, record, sums = memory(3), np.zeros(32, np.uint8), np.zeros(12, np.uint8)
    run(kernel, 3, to, 77, *([record, 0] if kernel == "write" else []))
    assert (to.view(np.uint32) == pattern(77, len(to) // 4)).all()
    run("check", 3, to, 77, sums)
    assert sums.view(np.uint32).tolist() == [0, 0, 0]
    to[TILE_BYTES + 5] ^= 1
    to[TILE_BYTES + 9] ^= 1
    run("check", 3, to, 77, sums)
    assert sums.view(np.uint32).tolist() == [0, 2, 0]


def test_read_sums_every_group(run: Callable[..., None]) -> None:
    source, record, sums = memory(2), np.zeros(32, np.uint8), np.zeros(8, np.uint8)
    run("fill", 2, source, 5)
    run("read", 2, source, sums, record, 0)
    expected = source.view(np.uint32).reshape(2, -1).astype(np.uint64).sum(axis=1) % 2**32
    assert sums.view(np.uint32).tolist() == expected.tolist()


def test_copy(run: Callable[..., None]) -> None:
    source, to, record = memory(2), memory(2), np.zeros(32, np.uint8)
    run("fill", 2, source, 9)
    run("copy", 2 * GROUPS, source, to, record, 0)
    assert (to == source).all()


def test_triad(run: Callable[..., None]) -> None:
    a, b, c = memory(2), memory(2), memory(2)
    record, sums = np.zeros(32, np.uint8), np.zeros(8, np.uint8)
    run("fill_float", 2, b, 1)
    run("fill_float", 2, c, 2)
    run("triad", 2 * GROUPS, a, b, c, 255, record, 0)
    expected = b.view(np.float32).astype(float) + 255 * c.view(np.float32).astype(float)
    assert (a.view(np.float32) == expected).all()
    run("check_triad", 2, a, 1, 2, 255, sums)
    assert sums.view(np.uint32).tolist() == [0, 0]
    a[40000] ^= 1
    run("check_triad", 2, a, 1, 2, 255, sums)
    assert sums.view(np.uint32).tolist() == [0, 1]


@pytest.mark.parametrize("kernel", ["pointer_chase_ca", "pointer_chase_cg"])
def test_chase_goes_on_along_the_cycle(run: Callable[..., None], kernel: str) -> None:
    count, node_bytes = 300, 128
    order = list(range(count))
    random.Random(1).shuffle(order)
    following = np.zeros(count, np.uint32)
    for here, then in zip(order, order[1:] + order[:1], strict=True):
        following[here] = then
    nodes = np.zeros(count * node_bytes, np.uint8)
    cursor, record = np.zeros(8, np.uint8), np.zeros(32, np.uint8)
    run("chase_link", 2, nodes, following.view(np.uint8), node_bytes, count)
    start = order.index(0)
    for launch in range(1, 4):
        run(kernel, 1, nodes, cursor, 10, record, 0, group_size=1)
        expected = order[(start + launch * 640) % count]
        assert int(cursor.view(np.uint64)[0]) == expected * node_bytes


def test_unknown_kernel(library: ctypes.CDLL) -> None:
    assert library.kernel_emulate(b"fma_fp8", 1, 1, None) == -1
    assert not library.vector_kernel(b"fma", b"fp8")
