"""What arrays hold, where a walk leads, how near a card is: parts of the host's side by itself."""

import ctypes
import itertools
import random
import subprocess
from pathlib import Path

import pytest

from services.gpu.tests.compiler import compiler
from tests.machine_code import ROOT

BENCH = Path(__file__).parents[1] / "bench"
STEP = 2654435761
U32 = ctypes.c_uint32
U64 = ctypes.c_uint64


class Cycle(ctypes.Structure):
    """struct cycle."""

    _fields_ = (
        ("count", U32),
        ("order", ctypes.POINTER(U32)),
        ("next", ctypes.POINTER(U32)),
    )


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    directory = tmp_path_factory.mktemp("contents")
    made, stubs = directory / "contents.so", directory / "stubs.c"
    stubs.write_text("void run_fact(void) {}\nvoid run_warning(void) {}\n")
    sources = [BENCH / name for name in ("contents.c", "cycle.c", "nearness.c")]
    sources += [ROOT / "harness" / "textfile.c", stubs]
    options = ["-std=gnu17", "-O2", "-fPIC", "-shared", f"-I{ROOT / 'harness'}"]
    subprocess.run([compiler(), *options, "-o", made, *sources], check=True)
    loaded = ctypes.CDLL(str(made))
    loaded.nearness_node.argtypes = (ctypes.c_char_p, ctypes.c_char_p)
    loaded.contents_sum.argtypes = (U32, U64, U64)
    loaded.contents_sum.restype = U32
    loaded.contents_fill.argtypes = (ctypes.c_void_p, U64, U64, U32)
    loaded.contents_wrong.argtypes = (ctypes.c_void_p, U64, U64, U32)
    loaded.contents_wrong.restype = U64
    loaded.cycle_make.argtypes = (ctypes.POINTER(Cycle), U32, U64)
    loaded.cycle_at.argtypes = (ctypes.POINTER(Cycle), U64)
    loaded.cycle_at.restype = U32
    loaded.cycle_free.argtypes = (ctypes.POINTER(Cycle),)
    return loaded


def words_of(seed: int, place: int, count: int) -> list[int]:
    return [(seed + (place + i) * STEP) % 2**32 for i in range(count)]


def test_a_sum(library: ctypes.CDLL) -> None:
    places, counts = (0, 1, 8192, 2**32 - 5, 2**33 + 7), (1, 2, 3, 1000, 8191, 8192)
    for place, count, seed in itertools.product(places, counts, (0, 0x1B873593, 2**32 - 1)):
        expected = sum(words_of(seed, place, count)) % 2**32
        assert library.contents_sum(seed, place, count) == expected, (place, count, seed)


@pytest.mark.parametrize("place", [0, 2**32 - 5])
def test_what_is_filled_is_right(library: ctypes.CDLL, place: int) -> None:
    count = 10_000
    array = (U32 * count)()
    library.contents_fill(array, place, count, 77)
    assert list(array) == words_of(77, place, count)
    assert library.contents_wrong(array, place, count, 77) == count
    assert library.contents_wrong(array, place + 1, count, 77) == 0
    assert library.contents_wrong(array, place, count, 78) == 0


def test_any_wrong_word_is_found(library: ctypes.CDLL) -> None:
    count = 9000
    array = (U32 * count)()
    library.contents_fill(array, 5, count, 1)
    for at in (0, 1, 4095, 4096, 8191, 8192, count - 1):
        bit = 1 << random.randrange(32)
        array[at] ^= bit
        assert library.contents_wrong(array, 5, count, 1) == at
        array[at] ^= bit
    assert library.contents_wrong(array, 5, count, 1) == count


@pytest.mark.parametrize("count", [1, 2, 3, 4, 17, 4096, 100_003])
def test_a_cycle_goes_through_all(library: ctypes.CDLL, count: int) -> None:
    cycle = Cycle()
    assert library.cycle_make(ctypes.byref(cycle), count, 3) == 0
    at, seen = 0, set()
    for step in range(count):
        assert library.cycle_at(ctypes.byref(cycle), step) == at
        seen.add(at)
        at = cycle.next[at]
    assert at == 0 and len(seen) == count
    assert library.cycle_at(ctypes.byref(cycle), 7 * count + count // 2) == cycle.order[count // 2]
    library.cycle_free(ctypes.byref(cycle))


def test_cycles_are_equally_likely(library: ctypes.CDLL) -> None:
    """Of four nodes there are six; of 6000 draws each is near 1000 (five standard deviations)."""
    drawn: dict[tuple[int, ...], int] = {}
    for seed in range(6000):
        cycle = Cycle()
        library.cycle_make(ctypes.byref(cycle), 4, seed * 7919)
        key = tuple(cycle.next[i] for i in range(4))
        drawn[key] = drawn.get(key, 0) + 1
        library.cycle_free(ctypes.byref(cycle))
    assert len(drawn) == 6 and all(855 < often < 1145 for often in drawn.values()), drawn


def test_neighbours_in_time_are_none_in_space(library: ctypes.CDLL) -> None:
    """No prefetcher finds a pattern: of 100,000 steps few lead to a node close by."""
    count = 100_000
    cycle = Cycle()
    library.cycle_make(ctypes.byref(cycle), count, 11)
    near = sum(abs(cycle.next[i] - i) <= 8 for i in range(count))
    library.cycle_free(ctypes.byref(cycle))
    assert near < 4 * 16  # 16 are to be expected


# ---- how near --------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "node"), [("1\n", 1), ("0\n", 0), ("-1\n", -1)])
def test_the_node_of_a_card(library: ctypes.CDLL, tmp_path: Path, text: str, node: int) -> None:
    """Drivers write the address in capitals, the kernel does not."""
    card = tmp_path / "bus" / "pci" / "devices" / "0000:5a:00.0"
    card.mkdir(parents=True)
    (card / "numa_node").write_text(text)
    assert library.nearness_node(bytes(tmp_path), b"0000:5A:00.0") == node


@pytest.mark.parametrize("pci", ["", "0000:5b:00.0", "0" * 300])
def test_a_card_that_the_kernel_does_not_know(
    library: ctypes.CDLL, tmp_path: Path, pci: str
) -> None:
    assert library.nearness_node(bytes(tmp_path), pci.encode()) == -1
