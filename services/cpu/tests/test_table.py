"""The table of micro-architectures: sane, sourced and not contradicting itself."""

from collections.abc import Iterable
from typing import Any

import pytest
import yaml
from pydantic import ValidationError

from hostbench.host.microarchitecture import (
    ARM,
    OTHERS,
    TABLE_PATH,
    X86,
    Instruction,
    Microarchitecture,
    Unknown,
    Width,
    table,
)
from hostbench.host.ports import Usage, bound
from services.cpu.sequences import DTYPE_BITS, INTEGER_BITS
from services.cpu.tests.kernels import CLASSES
from tests.each import each

FIRST_CLASSES = ("fp_fma", "fp_add", "int_add")
WIDTHS: tuple[Width, ...] = ("scalar", 128, 256, 512, "tile", "sve")


def cells(by_width: dict[Any, Any]) -> list[Any]:
    """Every figure or usage of `per_cycle` or `ports`, None among them."""
    return [
        value
        for cell in by_width.values()
        for value in (cell.values() if isinstance(cell, dict) else [cell])
    ]


def instructions_of(row: Microarchitecture) -> list[dict[str, Instruction]]:
    return [row.instructions, *(entry.instructions for entry in row.by_model_name)]


def all_entries() -> list[tuple[Microarchitecture, str, Instruction]]:
    return [
        (row, name, entry)
        for row in table().microarchitectures
        for instructions in instructions_of(row)
        for name, entry in instructions.items()
    ]


def sources_of(row: Microarchitecture) -> set[str]:
    entries = [entry for part in instructions_of(row) for entry in part.values()]
    front_end = row.front_end.sources if row.front_end else ()
    return {*front_end, *(source for entry in entries for source in entry.sources)}


def ports_of(entries: Iterable[Instruction]) -> set[str]:
    usages = [usage for entry in entries for usage in cells(entry.ports) if usage]
    return {port for usage in usages for each in usage for port in each.ports}


each_row = each("row", table().microarchitectures, lambda row: row.name)
each_entry = each(("row", "name", "entry"), all_entries(), lambda case: f"{case[0].name} {case[1]}")


class TestEntries:
    @each_entry
    def test_every_figure_is_sane_and_has_a_source(
        self, row: Microarchitecture, name: str, entry: Instruction
    ) -> None:
        assert name in {*CLASSES.values(), "masked_int_add", "load", "store"}
        assert entry.sources
        assert all(len(source) > 10 for source in entry.sources)
        for figure in cells(entry.per_cycle):
            if figure is not None:
                # Halves: an instruction of double width takes two of an odd number of pipes.
                whole = 2 * figure if figure >= 1 else 1 / figure
                assert 1 / 16 <= figure <= 8, (row.name, figure)
                assert whole.is_integer(), (row.name, figure)

    @each_entry
    def test_what_is_not_known_says_why(
        self, row: Microarchitecture, name: str, entry: Instruction
    ) -> None:
        has_null = None in cells(entry.per_cycle) + cells(entry.ports)
        assert has_null == (entry.unknown is not None), (row.name, name)

    @each_entry
    def test_a_cell_that_differs_by_dtype_names_data_types(
        self, row: Microarchitecture, name: str, entry: Instruction
    ) -> None:
        for by_width in (entry.per_cycle, entry.ports):
            for cell in by_width.values():
                if isinstance(cell, dict):
                    assert cell.keys() - {OTHERS} <= DTYPE_BITS.keys(), (row.name, name)

    @each_entry
    def test_ports_and_rate_of_the_same_cell_agree(
        self, row: Microarchitecture, name: str, entry: Instruction
    ) -> None:
        for width in WIDTHS:
            for dtype in DTYPE_BITS:
                rate, usage = entry.rate(width, dtype), entry.usage(width, dtype)
                if rate is not None and usage is not None:
                    least = bound([usage], row.front_end.issue_width if row.front_end else 1)
                    assert float(1 / least.cycles) == rate, (row.name, name, width, dtype)

    @each_entry
    def test_ports_come_with_the_width_of_the_front_end(
        self, row: Microarchitecture, name: str, entry: Instruction
    ) -> None:
        if entry.ports:
            assert row.front_end is not None, (row.name, name)
            assert 2 <= row.front_end.issue_width <= 10

    def test_a_misspelt_key_is_an_error(self) -> None:
        with pytest.raises(ValidationError, match="per_cycles"):
            Instruction.model_validate({"per_cycles": {}, "per_cycle": {}, "sources": ()})

    @pytest.mark.parametrize("usage", ["p05", "1*", "0*p05", "1*p05[0]", "2xp05", "1*05", 1])
    def test_a_misspelt_port_usage_is_an_error(self, usage: object) -> None:
        with pytest.raises(ValidationError, match="no port usage"):
            Instruction.model_validate({"ports": {256: usage}, "sources": ()})


class TestRows:
    @each_row
    def test_a_wider_instruction_never_does_less_work(self, row: Microarchitecture) -> None:
        for name in FIRST_CLASSES:
            for dtype in DTYPE_BITS:
                work = [
                    rate * width
                    for width in (128, 256, 512)
                    if (rate := row.instructions[name].rate(width, dtype)) is not None
                ]
                assert work == sorted(work)

    @each_row
    def test_the_first_classes_have_the_widths_of_their_architecture(
        self, row: Microarchitecture
    ) -> None:
        smallest = {"scalar", 128} if row.architecture == ARM else {"scalar", 128, 256}
        entries = [row.instructions[name] for name in FIRST_CLASSES]
        assert all(smallest <= entry.per_cycle.keys() for entry in entries)
        assert len({frozenset(entry.per_cycle) for entry in entries}) == 1

    @each_row
    def test_every_port_is_one_that_adds_or_fmas_use(self, row: Microarchitecture) -> None:
        """A misspelt port would be one that nothing else uses, and make limits too high."""
        known = ports_of([row.instructions[name] for name in FIRST_CLASSES])
        for instructions in instructions_of(row):
            assert ports_of(instructions.values()) <= known

    @each_row
    def test_sve_has_a_length(self, row: Microarchitecture) -> None:
        has_sve = any("sve" in (*e.per_cycle, *e.ports) for e in row.instructions.values())
        assert has_sve == (row.sve_bits is not None)
        assert row.sve_bits in (None, 128, 256)

    @each_row
    def test_refinements_only_replace_cells_that_exist(self, row: Microarchitecture) -> None:
        for refinement in row.by_model_name:
            for name, entry in refinement.instructions.items():
                assert entry.per_cycle.keys() <= row.instructions[name].per_cycle.keys()
                assert entry.ports.keys() <= row.instructions[name].ports.keys()

    @each_row
    def test_flags_do_not_contradict_themselves(self, row: Microarchitecture) -> None:
        assert not row.requires & row.excludes
        if 512 not in row.instructions["fp_fma"].per_cycle and row.architecture == X86:
            assert "avx512f" in row.excludes

    @each_row
    def test_conflicts_name_classes_of_the_row(self, row: Microarchitecture) -> None:
        for conflict in row.conflicts:
            assert len(conflict.classes) > 1
            for name in conflict.classes:
                assert conflict.widths <= row.instructions[name].ports.keys()

    def test_no_cpu_is_in_two_rows(self) -> None:
        seen: dict[tuple[object, ...], str] = {}
        for row in table().microarchitectures:
            for match in row.match:
                for model in match.models:
                    first, last = (model, model) if isinstance(model, int) else model
                    assert first <= last
                    for number in range(first, last + 1):
                        key = (match.vendor, match.family, number, match.core_type)
                        assert key not in seen, (key, row.name, seen[key])
                        seen[key] = row.name

    def test_every_source_is_used_and_every_rule_names_a_row(self) -> None:
        raw = yaml.safe_load(TABLE_PATH.read_text(encoding="utf-8"))
        texts = {source for row in table().microarchitectures for source in sources_of(row)}
        assert set(raw["sources"].values()) == texts
        for rule in table().feature_rules:
            row = table().row(rule.microarchitecture)
            assert row.requires <= rule.requires | {"avx512f"}
            assert not row.excludes & rule.requires

    def test_the_table_is_read_once(self) -> None:
        assert table() is table()


class TestLookUp:
    ROW = table().row("golden_cove_server")

    def entry(self, name: str, width: Width, dtype: str) -> Instruction:
        found = self.ROW.instruction(name, width, dtype)
        assert isinstance(found, Instruction), found
        return found

    def reason(self, name: str, width: Width, dtype: str) -> str:
        found = self.ROW.instruction(name, width, dtype)
        assert isinstance(found, Unknown), found
        return found.reason

    def usage(self, name: str, width: Width, dtype: str) -> Usage | None:
        return self.entry(name, width, dtype).usage(width, dtype)

    def test_a_data_type_of_its_own_goes_before_the_others(self) -> None:
        assert self.entry("int_compare", 256, "int64").rate(256, "int64") == 1
        assert self.entry("int_compare", 256, "int8").rate(256, "int8") == 2

    def test_a_data_type_may_stand_in_the_ports_only(self) -> None:
        assert self.entry("int_mul", 512, "int64").rate(512, "int64") is None
        assert self.usage("int_mul", 512, "int64") is not None

    def test_what_does_not_exist_is_distinguished_from_what_has_no_source(self) -> None:
        assert "has no 512-bit int_mul of int8" in self.reason("int_mul", 512, "int8")
        assert "has no tile fp_fma of fp64" in self.reason("fp_fma", "tile", "fp64")
        assert "no source in the table for 128-bit matrix" in self.reason("matrix", 128, "int8")

    @pytest.mark.parametrize("dtype", INTEGER_BITS)
    def test_a_refinement_goes_before_its_row(self, dtype: str) -> None:
        row = table().row("skylake_server").refined("Intel(R) Xeon(R) Gold 6148 CPU @ 2.40GHz")
        found = row.instruction("fp_fma", 512, "fp64")
        assert isinstance(found, Instruction)
        assert found.rate(512, "fp64") == 2
        whole = row.instruction("int_add", 512, dtype)
        assert isinstance(whole, Instruction)
        assert whole.rate(512, dtype) == 2
