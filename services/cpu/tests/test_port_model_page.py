"""Every figure and every quoted sentence of docs/cpu-port-model.md is what the table gives."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from hostbench.host.microarchitecture import Microarchitecture, Unknown, table
from hostbench.model.limit import Factor
from services.cpu.limits import operations_per_cycle
from services.cpu.sequences import ISAS, Kernel
from tests.each import each

PAGE = (Path(__file__).parents[3] / "docs" / "cpu-port-model.md").read_text(encoding="utf-8")
TWO_UNITS = "Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz"


def row_called(name: str) -> Microarchitecture:
    row = table().row(name)
    return row.refined(TWO_UNITS) if row.by_model_name else row


def figure(row: Microarchitecture, column: str, isa: str) -> str:
    """`column` is a workload, perhaps its mix, and a data type."""
    workload, *mix, dtype = column.split()
    params = {"dtype": dtype, "isa": isa, "mix": mix[0] if mix else None}
    found = operations_per_cycle(row, Kernel.of(workload, params, row))
    return "–" if isinstance(found, Unknown) else f"{found.value:.4g}"


def tables() -> Iterator[tuple[str, list[str], list[str]]]:
    """isa, heading and cells of every line of the tables of limits."""
    for isa, text in re.findall(r"^### (\w+)\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL):
        lines = [
            [cell.strip() for cell in line.strip("|").split("|")]
            for line in text.splitlines()
            if line.startswith("|") and not line.startswith("|---")
        ]
        for cells in lines[1:]:
            yield isa, lines[0][1:], cells


def test_the_page_has_a_table_for_each_kind_of_vectors() -> None:
    isas = [isa for isa, _, _ in tables()]
    assert set(isas) == {"avx512", "avx2", "neon", "sve"} < ISAS.keys()
    assert all(isas.count(isa) >= 5 for isa in isas)


@each(("isa", "heading", "cells"), tables())
def test_operations_per_cycle(isa: str, heading: list[str], cells: list[str]) -> None:
    row = row_called(cells[0])
    assert cells[1:] == [figure(row, column, isa) for column in heading]


QUOTED = [
    ("golden_cove_server", Kernel("int_mul_add", "int32", "avx512", "x86_64"), 64 / 3),
    ("golden_cove_client", Kernel("fma_add", "fp64", "avx2", "x86_64", "2:1"), 20),
    ("golden_cove_client", Kernel("compare", "int8", "avx512", "x86_64"), 64),
    ("skylake_client", Kernel("compare", "int8", "sse2", "x86_64"), 16 / 0.75),
]


@pytest.mark.parametrize(("name", "kernel", "value"), QUOTED, ids=lambda value: str(value)[:40])
def test_worked_examples_quote_the_limit(name: str, kernel: Kernel, value: float) -> None:
    found = operations_per_cycle(row_called(name), kernel)
    assert isinstance(found, Factor)
    assert found.value == pytest.approx(value)
    quotes = re.findall(r"^> (.*)$", PAGE, re.MULTILINE)
    assert len(quotes) == len(QUOTED)
    assert any(quote in found.source for quote in quotes)
