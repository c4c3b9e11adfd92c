"""The pages that were requested are those that back the arrays, and what says so is true."""

import ctypes
from pathlib import Path

import pytest

from services.mem.tests.program import MOMENT, measure, moment, running, table
from tests.benchmark import MIB

SIZE = f"--size-bytes={96 * MIB}"
WORKLOADS = ("triad", "copy", "pointer_chase", "random_access", "loaded_latency", "read_write")
THP = Path("/sys/kernel/mm/transparent_hugepage/enabled")
PR_SET_THP_DISABLE = 41


def without_huge_pages() -> None:
    """What follows in this process, programs that it turns into included, gets none."""
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) == 0


@pytest.fixture
def huge_pages() -> None:
    """Skip where this kernel gives no huge page to anyone."""
    if not THP.is_file() or "[never]" in THP.read_text():
        pytest.skip("transparent huge pages are switched off here")


def backing(pid: int) -> tuple[int, int]:
    """Bytes of all large anonymous mappings that are there, and of those in huge pages."""
    resident = huge = 0
    size = 0
    for line in Path(f"/proc/{pid}/smaps").read_text().splitlines():
        key, _, rest = line.partition(":")
        if key == "Size":
            size = int(rest.split()[0]) * 1024
        elif size >= 4 * MIB and key == "Rss":
            resident += int(rest.split()[0]) * 1024
        elif size >= 4 * MIB and key == "AnonHugePages":
            huge += int(rest.split()[0]) * 1024
    return resident, huge


@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sampled(5)
def test_small_pages_are_small(workload: str) -> None:
    trial = measure(workload, SIZE, "--pages=4k", *moment(workload))
    assert trial.metrics["huge_page_ratio"] == 0
    assert "huge_pages_missing" not in trial.warnings


@pytest.mark.usefixtures("huge_pages")
@pytest.mark.parametrize("workload", WORKLOADS)
@pytest.mark.sampled(5)
def test_huge_pages_are_huge_or_missed(workload: str) -> None:
    trial = measure(workload, SIZE, *moment(workload))
    assert trial.params["pages"] == "huge"
    assert trial.metrics["huge_page_ratio"] > 0.9 or "huge_pages_missing" in trial.warnings


@pytest.mark.usefixtures("huge_pages")
def test_huge_pages_can_be_had_here() -> None:
    """Apart from what the program says: as much memory as is free holds 96 MiB of them."""
    trial = measure("triad", SIZE, *MOMENT)
    assert trial.metrics["huge_page_ratio"] > 0.9, trial.warnings


@pytest.mark.usefixtures("huge_pages")
@pytest.mark.parametrize(("pages", "share"), [("4k", 0.0), ("huge", 1.0)])
def test_the_kernel_says_so_too(pages: str, share: float) -> None:
    with running("triad", SIZE, f"--pages={pages}", "--threads=1") as (process, _):
        resident, huge = backing(process.pid)
    assert 96 * MIB <= resident < 112 * MIB
    assert huge / resident == pytest.approx(share, abs=0.1)


@pytest.mark.usefixtures("huge_pages")
@pytest.mark.parametrize("workload", ["triad", "pointer_chase", "random_access", "memset_write"])
def test_huge_pages_that_are_not_got_are_reported_as_missing(workload: str) -> None:
    trial = measure(workload, SIZE, *MOMENT, preexec_fn=without_huge_pages)
    assert trial.metrics["huge_page_ratio"] == 0
    message = trial.warnings["huge_pages_missing"]
    assert "0 %" in message or "0.0 %" in message or "none" in message


def test_reserved_pages_are_used_where_there_are_some() -> None:
    (pages,) = (one for one in table()["triad"]["params"] if one["name"] == "pages")
    if "hugetlb" in pages["unsupported"]:
        pytest.skip(pages["unsupported"]["hugetlb"])
    trial = measure("triad", f"--size-bytes={6 * MIB}", "--pages=hugetlb", *MOMENT)
    assert trial.metrics["huge_page_ratio"] == 1
