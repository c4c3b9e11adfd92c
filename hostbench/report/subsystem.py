"""What a subsystem that has more to say than the plain section (subsystems.py) gives the report.

A section is content (content.py), never HTML or Markdown: tables, charts and paragraphs, most of
which figures.py builds from cases. What it says must hold for any document of the schema: cases
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
    """What a subsystem with a section of its own has beside hostbench.model.subsystem.Subsystem."""

    @abstractmethod
    def report(self, cases: "Sequence[CaseResult]", document: "ResultDocument") -> SubsystemReport:
        """Return the section. `cases` are the document's cases of this subsystem, in its order,
        without those of naive workloads: these have a part of their own at the end, the same in all
        subsystems, and are never a headline. There are no cases where only naive ones were
        measured. `document` is for what else the section needs, such as the metrics."""

    def naive_blocks(
        self, cases: "Sequence[CaseResult]", document: "ResultDocument"
    ) -> "Iterable[Block]":
        """Return what stands below the figures of its naive workloads, such as what a method
        leaves out."""
        del cases, document
        return ()
