"""The pages that a peer measures in, which are made those of our case where possible.

A tool that gets its arrays from malloc gets transparent huge pages when glibc requests them
(tunable glibc.malloc.hugetlb, from 2.35 on, for allocations of 2 MiB and more), and none when its
process is forbidden them. So beside our `pages=4k` and `pages=huge`, peers use the same pages.
Nothing reliably gives them pages of a hugetlb pool: beside `pages=hugetlb` they are context.
"""

import re
import sys
from dataclasses import dataclass, replace
from pathlib import Path

from hostbench.programs.peer import Ask, Survey

SETTING = ("cat", "/sys/kernel/mm/transparent_hugepage/enabled")
GLIBC = ("getconf", "GNU_LIBC_VERSION")
SMALL_PAGES = Path(__file__).with_name("small_pages.py")
TUNABLE = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"
GLIBC_LEAST = (2, 35)
SMALL, HUGE, POOL = "4k", "huge", "hugetlb"
_IN_SMALL, _IN_HUGE = "in 4 KiB pages", "in transparent huge pages"


@dataclass(frozen=True)
class Pages:
    """How a tool gets the pages of our case. `requested`: the case's parameter `pages`."""

    requested: str

    def command(self, arguments: tuple[str, ...]) -> tuple[str, ...]:
        """Return `arguments`, run with such pages if possible."""
        if self.requested == SMALL:
            return (sys.executable, "-I", "-S", str(SMALL_PAGES), *arguments)
        return ("env", TUNABLE, *arguments)

    def with_conditions(self, survey: Survey, ask: Ask) -> Survey:
        """Return `survey` with the pages that the tool gets here, and whether ours differ."""
        conditions, differs = self._on_this_host(ask)
        return replace(survey, conditions=conditions, differs=(*differs, *survey.differs))

    def _on_this_host(self, ask: Ask) -> tuple[str, tuple[str, ...]]:
        if self.requested == SMALL:
            return _IN_SMALL, ()
        ours = "of the hugetlb pool" if self.requested == POOL else "huge"
        setting = re.search(r"\[(\w+)\]", ask(SETTING))
        if setting is None or setting[1] == "never":
            why = f"{_IN_SMALL}, as transparent huge pages are off"
            # Ours did not get any, either.
            return why, () if self.requested == HUGE else (f"4 KiB pages; ours {ours}",)
        if setting[1] == "madvise" and not _knows_tunable(ask(GLIBC)):
            why = f"{_IN_SMALL}, as this C library does not ask for huge ones"
            return why, (f"4 KiB pages; ours {ours}",)
        return _IN_HUGE, () if self.requested == HUGE else (f"transparent huge pages; ours {ours}",)


def _knows_tunable(glibc: str) -> bool:
    """Whether the C library knows the tunable. `glibc`: what `getconf GNU_LIBC_VERSION` prints."""
    version = re.fullmatch(r"glibc (\d+)\.(\d+)\s*", glibc)
    return version is not None and (int(version[1]), int(version[2])) >= GLIBC_LEAST
