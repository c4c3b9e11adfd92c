"""The report's section of what the CPUs counted."""

from typing import Any

import pytest

from hostbench.model.events import Counted, EndEvent, Energy
from hostbench.model.result import ResultDocument
from hostbench.report.content import Paragraph, Table
from hostbench.report.counted import counted_section
from tests.unit.report_documents import sampled_run

NO_COUNTER = "the kernel knows no cycle counter of this CPU, which is usual in a virtual machine"


def whose_ends_have(**changes: Any) -> ResultDocument:
    """A document of one case, with this in the end event of each trial."""
    document = sampled_run(samples=2, cases=1, trials=3)
    (case,) = document.cases
    trials = tuple(
        trial.model_copy(
            update={
                "events": tuple(
                    event.model_copy(update=changes) if isinstance(event, EndEvent) else event
                    for event in trial.events
                )
            }
        )
        for trial in case.trials
    )
    return document.model_copy(update={"cases": (case.model_copy(update={"trials": trials}),)})


def test_counts_and_energy_have_a_row_each_case() -> None:
    counted = Counted(cycles=6_000_000_000, instructions=12_000_000_000, cpu_s=2.0)
    energy = Energy(package_joules=100.0, memory_joules=None)
    reasons = {"energy.memory_joules": "the CPU packages have no energy counter of their memory"}
    document = whose_ends_have(counted=counted, energy=energy, elapsed_s=1.0, reasons=reasons)
    section = counted_section(document)
    assert section is not None
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    ((row,),) = [group.rows for group in table.groups]
    assert row[1] == "2.00" and row[2] == "3.000 GHz" and row[4] == "100.0 W"
    assert "per operation" in str(row[6])
    assert any("their memory" in str(block) for block in section.blocks)


@pytest.mark.parametrize("reasons", [{"counted": NO_COUNTER, "energy": "no counter"}, {}])
def test_what_is_missing_has_its_reason_once(reasons: dict[str, str]) -> None:
    section = counted_section(whose_ends_have(reasons=reasons))
    if not reasons:  # of a program of an earlier version
        assert section is None
        return
    assert section is not None
    texts = [str(block.text) for block in section.blocks if isinstance(block, Paragraph)]
    assert texts == [f"Not counted: {reason}." for reason in reasons.values()]
