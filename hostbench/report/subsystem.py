"""What a subsystem adds to the report if the plain section (subsystems.py) is not enough.

A section is content (content.py), never HTML or Markdown: tables, charts and paragraphs, most of
which figures.py makes from cases. It must be correct for any document of the schema: for cases
without a figure, without a limit, without a trial, with peers and without. It reads nothing but its
arguments.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hostbench.model.result import CaseResult, ResultDocument
    from hostbench.report.content import Block


@dataclass(frozen=True)
class SubsystemReport:
    """A subsystem's part of the report. `headline`: the few cases that the summary shows."""

    title: str
    headline: "tuple[CaseResult, ...]"
    blocks: "tuple[Block, ...]"


class HasReport(ABC):
    """Base class of a subsystem with a section of its own, in addition to
    hostbench.model.subsystem.Subsystem."""

    @abstractmethod
    def report(self, cases: "Sequence[CaseResult]", document: "ResultDocument") -> SubsystemReport:
        """Return the section.

        `cases` are the document's cases of this subsystem, in order, without those of naive
        workloads. These have a part of their own at the end, the same in all subsystems, and are
        never a headline. If only naive workloads were measured, `cases` is empty. `document` is for
        what else the section needs, such as the metrics.
        """

    def least_instructions(self, case: "CaseResult", document: "ResultDocument") -> float | None:
        """Return how many instructions each operation of a case takes at least, from what its loop
        is known to execute. None: unknown."""
        del case, document
        return None

    def naive_blocks(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "Iterable[Block]":
        """Return the text below the figures of its naive workloads, such as what a method leaves
        out."""
        del cases, document
        return ()
