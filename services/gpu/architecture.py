"""What a multiprocessor can do in one clock, from architectures.yaml.

Every figure there names its sources. What is not known stays unknown and says why, never a guess.
"""

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from hostbench.base.yaml import table_of

# The reasons that say so.
NO_SUCH_UNIT = frozenset({"no_bf16", "no_tensor_cores", "no_tensor_type"})
TABLE_PATH = Path(__file__).with_name("architectures.yaml")

Kernels = dict[str, dict[str, "Cell"]]


class TableModel(BaseModel):
    """Base of the table."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Figure(TableModel):
    """Operations per clock and multiprocessor; None: `reason` names why, one of the table's."""

    per_clock: float | None = Field(gt=0)
    reason: str | None = None
    sources: tuple[str, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _has_value_or_reason(self) -> Self:
        if (self.per_clock is None) != (self.reason is not None):
            raise ValueError("a figure has either a value or a reason")
        return self


class Product(Figure):
    """Of the cards whose name has the pattern `name` in it."""

    name: str


class Cell(Figure):
    """Of all cards, but for `products`; the first that fits counts."""

    products: tuple[Product, ...] = ()

    def of(self, device_name: str) -> Figure:
        """The figure of a card."""
        named = (one for one in self.products if re.search(one.name, device_name))
        return next(named, self)


class Architecture(TableModel):
    """One compute capability: cells by kernel and data type."""

    name: str
    fma: dict[str, Cell]
    int_add: dict[str, Cell]
    int_mul_add: dict[str, Cell]
    dp4a: dict[str, Cell]
    tensor: dict[str, Cell]

    @property
    def kernels(self) -> Kernels:
        """All cells."""
        return {
            "fma": self.fma,
            "int_add": self.int_add,
            "int_mul_add": self.int_mul_add,
            "dp4a": self.dp4a,
            "tensor": self.tensor,
        }


class Table(TableModel):
    """The whole file: sources and reasons by the words that cells use, rows by capability."""

    sources: dict[str, str]
    reasons: dict[str, str]
    architectures: dict[str, Architecture]

    @model_validator(mode="after")
    def _has_what_cells_name(self) -> Self:
        for capability, row in self.architectures.items():
            for kernel, cells in row.kernels.items():
                for dtype, cell in cells.items():
                    for figure in (cell, *cell.products):
                        self._check(f"{capability} {kernel} {dtype}", figure)
        return self

    def _check(self, where: str, figure: Figure) -> None:
        unknown = [source for source in figure.sources if source not in self.sources]
        if unknown:
            raise ValueError(f"{where}: no source {', '.join(unknown)}")
        if figure.reason is not None and figure.reason not in self.reasons:
            raise ValueError(f"{where}: no reason {figure.reason}")


@dataclass(frozen=True)
class Rate:
    """Operations per clock and multiprocessor, and where that is from; None: `reason` says why.
    `exists` False: the device has no such unit at all."""

    per_clock: float | None
    source: str
    reason: str | None = None
    exists: bool = True


@functools.cache
def table() -> Table:
    """The file, read once. Raise ValidationError when it makes no sense."""
    return Table.model_validate(table_of(TABLE_PATH))


def rate(capability: str, kernel: str, dtype: str, device_name: str) -> Rate:
    """What a card of this compute capability does of a kernel."""
    known = table()
    row = known.architectures.get(capability)
    if row is None:
        return Rate(None, "", f"compute capability {capability} is not in {TABLE_PATH.name}")
    cell = row.kernels[kernel].get(dtype)
    if cell is None:
        return Rate(None, "", f"{TABLE_PATH.name} has no {kernel} {dtype} of {row.name}")
    figure = cell.of(device_name)
    source = f"{row.name} ({capability}): {'; '.join(known.sources[one] for one in figure.sources)}"
    reason = None if figure.reason is None else known.reasons[figure.reason]
    return Rate(figure.per_clock, source, reason, figure.reason not in NO_SUCH_UNIT)
