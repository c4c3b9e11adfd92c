"""The orders of blocks: nothing left out, nothing twice in a pass, and Zipf as often as it says."""

import math
import subprocess
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from tests.compiled import STRICT, compiled
from tests.machine_code import ROOT

PROBE = Path(__file__).with_name("pattern_probe.c")
BENCH = ROOT / "services" / "disk" / "bench"
Blocks = Callable[..., list[int]]


@pytest.fixture(scope="module")
def blocks() -> Blocks:
    """The first `count` blocks that a thread's pattern gives."""
    checks = ("-fsanitize=undefined", "-fno-sanitize-recover=all")
    folders = (f"-I{ROOT / 'harness'}", f"-I{BENCH}")
    sources = (PROBE, BENCH / "pattern.c")
    probe = compiled("pattern_probe", sources, [*STRICT, *checks, *folders, "-lm"])

    def first(
        kind: str, of: int, count: int, threads: int = 1, index: int = 0, theta: float = 1.2
    ) -> list[int]:
        arguments = [kind, of, threads, index, theta, count]
        output = subprocess.check_output([str(probe), *map(str, arguments)], text=True)
        return [int(line) for line in output.split()]

    return first


def test_sequential_wraps_in_its_own_region(blocks: Blocks) -> None:
    # 10 blocks, 3 threads: regions of 3, and the last block belongs to none.
    assert blocks("sequential", 10, 7, threads=3, index=2) == [6, 7, 8, 6, 7, 8, 6]


@pytest.mark.parametrize("of", [1, 2, 3, 5, 8, 9, 1000, 4096, 4097])
def test_a_pass_has_every_block_once(blocks: Blocks, of: int) -> None:
    three = blocks("uniform", of, 3 * of)
    for start in range(0, 3 * of, of):
        assert sorted(three[start : start + of]) == list(range(of))


def test_passes_threads_and_processes_have_orders_of_their_own(blocks: Blocks) -> None:
    of = 1000
    first = blocks("uniform", of, 2 * of)
    others = [first[of:], blocks("uniform", of, of), blocks("uniform", of, of, index=1, threads=2)]
    for other in others:
        same = sum(a == b for a, b in zip(first, other, strict=False))
        assert same < 15  # 1 expected; 15 have a probability below 1e-12


def test_uniform_order_has_no_stride(blocks: Blocks) -> None:
    """What a device, or a cache behind it, could foresee: neighbours, or one distance again and
    again."""
    of = 65536
    order = blocks("uniform", of, of)
    steps = Counter((b - a) % of for a, b in pairwise(order))
    assert steps.most_common(1)[0][1] < 20  # 1 expected of each
    assert abs(sum(order[: of // 8]) / (of // 8) - of / 2) < 6 * of / math.sqrt(12 * of / 8)


@pytest.mark.parametrize("theta", [0.5, 0.99, 1.0, 1.2, 2.5])
def test_zipf_draws_ranks_as_often_as_it_says(blocks: Blocks, theta: float) -> None:
    of, draws = 1000, 200_000
    seen = Counter(blocks("zipf", of, draws, theta=theta))
    assert set(seen) <= set(range(of))
    total = sum(rank**-theta for rank in range(1, of + 1))
    # The most frequent blocks are the first ranks: neighbours may swap, their sums hardly differ.
    counts = sorted(seen.values(), reverse=True)
    for top in (1, 3, 10, 100):
        share = sum(rank**-theta for rank in range(1, top + 1)) / total
        spread = 6 * math.sqrt(draws * share)
        assert abs(sum(counts[:top]) - draws * share) < spread + 0.05 * draws * share, top


def test_zipf_scatters_what_is_frequent(blocks: Blocks) -> None:
    of = 100_000
    seen = Counter(blocks("zipf", of, 100_000))
    frequent = sorted(block for block, _ in seen.most_common(20))
    assert frequent[-1] - frequent[0] > of / 4
    assert sum(b - a == 1 for a, b in pairwise(frequent)) <= 2


def test_zipf_of_one_block(blocks: Blocks) -> None:
    assert blocks("zipf", 1, 3) == [0, 0, 0]
