"""Runs gpu-bench for the benchmarks of this directory, on the card that HOSTBENCH_GPU names (an
index of `gpu-bench --list-devices` or a UUID; without it the first GPU), trials of
HOSTBENCH_GPU_SECONDS (2)."""

import json
import os
import re
import statistics
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NoReturn

from benchmarks.arguments import given_seconds
from benchmarks.figures import Entry, save
from benchmarks.pairs import RATIO_COLUMNS, Comparison, Target, print_header, print_row
from benchmarks.programs import Events, program, trial
from hostbench.host.gpu import ListedDevice, list_devices
from hostbench.host.inventory import inventory
from hostbench.model.events import EndEvent, StartEvent
from hostbench.model.host import HostInventory
from hostbench.model.limit import Limit
from services.gpu.limits import limits
from services.gpu.peers.device import is_named

DEVICE = os.environ.get("HOSTBENCH_GPU", "auto")
SECONDS = given_seconds("HOSTBENCH_GPU_SECONDS", 2.0)
RATE, BYTES = "operations_per_second", "bytes_per_second"


@cache
def device() -> ListedDevice:
    """The card. Raise SystemExit, with what was looked for, where there is none."""
    found = list_devices(program("gpu"))
    gpus = [one for one in found.devices if one.type == "gpu"]
    named = [one for one in found.devices if is_named(one, DEVICE)]
    chosen = named or (gpus if DEVICE == "auto" else [])
    if not chosen:
        what = "no GPU" if DEVICE == "auto" else f"no device {DEVICE} (HOSTBENCH_GPU)"
        raise SystemExit(f"{what}: {'; '.join(found.looked)}: nothing is measured")
    return chosen[0]


def gpu_bench(command: str) -> Events:
    """The start and end events of one trial on the card, e.g. of "fma --dtype fp32"."""
    return trial("gpu", f"{command} --device {device().index} --duration-s {SECONDS:g}")


def metric(command: str, name: str) -> float:
    """One metric of one trial."""
    return float(gpu_bench(command)["end"]["metrics"][name])


@cache
def host_inventory() -> HostInventory:
    """With its GPUs."""
    return inventory(gpu=True)


def limits_of(events: Events) -> dict[str, Limit]:
    """The limits of a trial, by metric."""
    start = StartEvent.model_validate_json(json.dumps(events["start"]))
    end = EndEvent.model_validate_json(json.dumps(events["end"]))
    return limits(host_inventory(), start, end)


@dataclass(frozen=True)
class Row:
    """A comparison that was made, with what names it in the first columns."""

    cells: tuple[str, ...]
    compared: Comparison
    commands: tuple[str, ...]


def folder(name: str) -> str:
    """Return the folder of a card's figures: "nvidia-h200" of "NVIDIA H200"."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")


class Table:
    """Comparisons of one script, printed as they come and kept in results/CARD/NAME.csv."""

    def __init__(self, name: str, columns: Sequence[str]) -> None:
        self._name = name
        self._entries: list[Entry] = []
        self.holds = True
        print_header([*columns, *RATIO_COLUMNS])

    def add(self, row: Row) -> None:
        """Print it and keep everything that was measured so far."""
        print_row([*row.cells, *row.compared.cells()])
        self.holds = self.holds and row.compared.holds
        self._entries.append(row.compared.entry(commands="; ".join(row.commands)))
        card, seconds = device(), f"{SECONDS:g}"
        of, found = folder(card.name), card.model_dump()
        save(f"gpu/{self._name}", self._entries, of=of, device=found, seconds=seconds)

    def end(self) -> None:
        """End the script: exit code 1 where a target was missed, 2 where nothing was compared."""
        if not self._entries:
            nothing_compared()
        raise SystemExit(0 if self.holds else 1)


def nothing_compared() -> NoReturn:
    """End the script with an error: no target was checked."""
    print("nothing was compared, so no target was reached", file=sys.stderr)
    raise SystemExit(2)


def giga(values: Sequence[float]) -> str:
    """The median, in thousands of millions."""
    return f"{statistics.median(values) / 1e9:.1f}"


def at_least(least: float) -> Target:
    """A target for ratios."""
    return Target(f"≥ {least:g}", least=least)
