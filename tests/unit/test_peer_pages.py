"""A command gets the pages that a peer's trial asks for: looked at in a process that has them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from hostbench.model.peer import PeerStartEvent
from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Peer, Survey
from hostbench.programs.peer_trial import _start
from hostbench.programs.tools.pages import Pages, _knows_tunable

SETTING = Path("/sys/kernel/mm/transparent_hugepage/enabled")
MIB = 1 << 20
# Its array comes from malloc, as those of the peers do.
TOUCH = """
import re
array = bytearray(b"x") * (64 << 20)
text = open("/proc/self/smaps_rollup").read()
print(re.search(r"AnonHugePages: +([0-9]+) kB", text)[1])
"""


def huge_bytes(pages: str) -> int:
    command = Pages(pages).command((sys.executable, "-I", "-S", "-c", TOUCH))
    return int(subprocess.check_output(command, text=True)) * 1024


def test_small_pages_whatever_the_host_gives_unasked() -> None:
    assert huge_bytes("4k") == 0


@pytest.mark.skipif(
    not SETTING.exists() or "[never]" in SETTING.read_text(), reason="this host gives no huge pages"
)
@pytest.mark.skipif(
    not _knows_tunable(os.confstr("CS_GNU_LIBC_VERSION") or ""),
    reason="this C library does not ask for huge pages",
)
def test_huge_pages() -> None:
    assert huge_bytes("huge") >= 56 * MIB


def test_a_command_that_is_not_there() -> None:
    command = Pages("4k").command(("no-such-command",))
    ended = subprocess.run(command, capture_output=True, text=True)
    assert ended.returncode == 1
    assert "No such file" in ended.stderr


class Stand(Peer):
    tool, package, title, unit = "a-tool", "a-package", "a test", "byte/s"
    measures, metric = "bytes per second", "bytes_per_second"

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        return Survey("1")

    def command(self, beside: Beside) -> Command:
        return Command((self.tool,))

    def parse(self, output: str, beside: Beside) -> float:
        return float(output)


def started(survey: Survey) -> PeerStartEvent:
    return _start(Stand(), survey, ("a-tool",))


def test_what_differs_here_is_context() -> None:
    ours = started(Survey("1", conditions="in 4 KiB pages"))
    assert (ours.metric, ours.measures) == ("bytes_per_second", "bytes per second; in 4 KiB pages")
    assert ours.differs == ()
    small = "4 KiB pages; ours huge"
    other = started(Survey("1", conditions="in 4 KiB pages", differs=(small,)))
    assert (other.metric, other.measures) == (None, "bytes per second; in 4 KiB pages")
    assert other.differs == (small,)
    assert started(Survey("1")).measures == "bytes per second"
