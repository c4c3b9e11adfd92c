"""Lost, duplicated and reordered datagrams, against a model that remembers every number."""

import random
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.compiled import STRICT, compiled
from tests.machine_code import ROOT

PROBE = Path(__file__).with_name("sequence_probe.c")
BENCH = ROOT / "services" / "net" / "bench"
WINDOW, WORD = 1 << 18, 64
NEW, AGAIN, TOO_LATE = range(3)
Count = Callable[[Sequence[int]], tuple[list[int], list[int]]]


@pytest.fixture(scope="module")
def count() -> Iterator[Count]:
    """What the program says of each arrival, and its counts."""
    checks = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
    sources = (PROBE, BENCH / "sequence.c")
    probe = compiled("sequence_probe", sources, [*STRICT, *checks, f"-I{BENCH}"])

    with subprocess.Popen(
        [probe], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        flows, answers = process.stdin, process.stdout
        assert flows is not None and answers is not None

        def counted(numbers: Sequence[int]) -> tuple[list[int], list[int]]:
            print(len(numbers), *numbers, file=flows, flush=True)
            arrivals, counts = answers.readline().strip(), answers.readline()
            return [int(one) for one in arrivals], [int(one) for one in counts.split()]

        yield counted
        flows.close()
    assert process.returncode == 0, "a sanitizer found an error"


def model(numbers: Sequence[int]) -> tuple[list[int], list[int]]:
    """The same, from a set of all numbers. Only how far back it may look is the program's."""
    seen: set[int] = set()
    arrivals = []
    highest = -1
    reordered = 0
    for number in numbers:
        if number < highest and highest // WORD - number // WORD >= WINDOW // WORD:
            arrivals.append(TOO_LATE)
            continue
        arrivals.append(AGAIN if number in seen else NEW)
        reordered += number not in seen and number < highest
        seen.add(number)
        highest = max(highest, number)
    return arrivals, [
        highest + 1,
        arrivals.count(NEW),
        arrivals.count(AGAIN),
        reordered,
        arrivals.count(TOO_LATE),
    ]


# Steps between arrivals: near, by words, around the window's length, and far beyond it.
steps = st.one_of(
    st.integers(-3, 5),
    st.integers(-200, 200),
    st.integers(-WINDOW - 130, WINDOW + 130),
    st.sampled_from([-WINDOW, WINDOW, -WINDOW + WORD, WINDOW - WORD, 10 * WINDOW, 1 << 40]),
)


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 62), st.lists(steps, max_size=80))
def test_counts_are_those_of_a_model_that_remembers_all(
    count: Count, start: int, walk: list[int]
) -> None:
    numbers = [start]
    for step in walk:
        numbers.append(max(0, numbers[-1] + step))
    assert count(numbers) == model(numbers)


def test_a_long_flow_with_every_kind_of_trouble(count: Count) -> None:
    draw = random.Random(7)
    sent = range(2 * WINDOW)
    numbers = [number for number in sent if draw.random() > 0.01]  # lost
    kept = len(numbers)
    again = [draw.randrange(kept) for _ in range(500)]
    for at in again:
        numbers.insert(at + draw.randrange(2000), numbers[at])
    for _ in range(2000):  # late by up to a thousand
        at = draw.randrange(len(numbers) - 1000)
        numbers.insert(at + draw.randrange(1000), numbers.pop(at))
    arrivals, counts = count(numbers)
    assert (arrivals, counts) == model(numbers)
    assert counts[1] == kept and counts[2] == len(again) and counts[3] > 1000


def test_nothing_lost_nothing_reported(count: Count) -> None:
    assert count(range(1000)) == ([NEW] * 1000, [1000, 1000, 0, 0, 0])


def test_nothing_came(count: Count) -> None:
    assert count([]) == ([], [0, 0, 0, 0, 0])


def test_the_end_of_the_window(count: Count) -> None:
    """The last number it remembers, and the first that it does not."""
    highest = 10 * WINDOW
    oldest = highest - WINDOW + WORD
    assert count([oldest, highest, oldest])[0] == [NEW, NEW, AGAIN]
    assert count([highest, oldest, oldest - 1])[0] == [NEW, NEW, TOO_LATE]
