"""The report's section of what the CPUs counted."""

from typing import Any

import pytest

from hostbench.model.events import Counted, EndEvent, Energy
from hostbench.model.result import ResultDocument
from hostbench.report.content import Bullets, Paragraph, Table
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
    assert row[1] == "2.00" and row[2] == "3.000 GHz" and row[5] == "100.0 W"
    assert "per operation" in str(row[7])
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


# Each of 64 lanes of a register, by one instruction.
OPERATIONS = 64 * 12e9


@pytest.mark.parametrize(
    ("operations", "hertz", "of_clock", "of_loop", "doubts"),
    [
        (OPERATIONS / 1.01, 3e9, "100.0 %", "101.0 %", []),
        (OPERATIONS * 1.25, 3e9, "100.0 %", "80.0 %", ["80.0 % of the instructions"]),
        (OPERATIONS / 1.01, 2.5e9, "120.0 %", "101.0 %", ["clock is 120.0 % of the measured"]),
    ],
)
def test_counts_are_held_against_the_loop_and_the_clock(
    operations: float, hertz: float, of_clock: str, of_loop: str, doubts: list[str]
) -> None:
    counted = Counted(cycles=6_000_000_000, instructions=12_000_000_000, cpu_s=2.0)
    metrics = {"work_operations": operations, "clock_hertz": hertz}
    section = counted_section(whose_ends_have(counted=counted, metrics=metrics, reasons={}))
    assert section is not None
    (table,) = [block for block in section.blocks if isinstance(block, Table)]
    ((row,),) = [group.rows for group in table.groups]
    assert row[3:5] == (of_clock, of_loop)
    items = [str(item) for one in section.blocks if isinstance(one, Bullets) for item in one.items]
    assert len(items) == len(doubts)
    assert all(part in text for part, text in zip(doubts, items, strict=True))
