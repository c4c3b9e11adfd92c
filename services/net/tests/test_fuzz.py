"""Broken control messages, tried at random with sanitizers: no crash, no leak, no caller let in."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.machine_code import ROOT

PROGRAM = ROOT / "build" / "fuzz" / "net-control"
SEEDS = ROOT / "services" / "net" / "fuzz" / "seeds"
SECONDS = int(os.environ.get("HOSTBENCH_FUZZ_SECONDS", "60"))
pytestmark = pytest.mark.exhaustive  # sanitizers and random input, for a minute
TARGETS = ("messages", "door", "far_end", "near_end", "grant")


@pytest.fixture(scope="module", autouse=True)
def program(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Build it where clang has libFuzzer."""
    empty = tmp_path_factory.mktemp("fuzz") / "empty.c"
    probe = "int LLVMFuzzerTestOneInput(const char *b, unsigned long n) { return !b && n; }"
    empty.write_text(probe)
    try:
        tried = ["clang", "-fsanitize=fuzzer,address", "-o", os.devnull, str(empty)]
        subprocess.run(tried, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("clang has no libFuzzer here: install libclang-rt-dev")
    make = ["make", "--no-print-directory", str(PROGRAM.relative_to(ROOT))]
    built = subprocess.run(make, cwd=ROOT, capture_output=True, text=True)
    assert built.returncode == 0, built.stderr


def fuzz(target: str, directory: Path, *arguments: str) -> str:
    """What libFuzzer printed; it must have found nothing."""
    result = subprocess.run(
        [str(PROGRAM), "-max_len=4096", "-timeout=5", *arguments],
        cwd=directory,
        env=os.environ | {"FUZZ_TARGET": target},
        capture_output=True,
        text=True,
        timeout=SECONDS + 120,
    )
    assert result.returncode == 0, result.stderr[-4000:]
    return result.stderr


def test_every_target_has_seeds() -> None:
    assert sorted(path.name for path in SEEDS.iterdir()) == sorted(TARGETS)


@pytest.mark.parametrize("target", TARGETS)
def test_the_seeds_do_no_harm(target: str, tmp_path: Path) -> None:
    fuzz(target, tmp_path, *map(str, sorted((SEEDS / target).iterdir())))


@pytest.mark.parametrize("target", TARGETS)
def test_nothing_is_found_at_random(target: str, tmp_path: Path) -> None:
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    seconds = max(1, SECONDS // len(TARGETS))
    options = (f"-max_total_time={seconds}", "-print_final_stats=1")
    output = fuzz(target, tmp_path, *options, str(corpus), str(SEEDS / target))
    (executed,) = (line for line in output.splitlines() if "number_of_executed_units" in line)
    assert int(executed.split()[-1]) > 100 * seconds
