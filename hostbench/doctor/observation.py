"""Watching for one second: what moves on a host while hostbench does nothing."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from hostbench.host.idle import ProcessTimes, read_counters, window_between
from hostbench.host.inventory import cgroup_groups
from hostbench.model.result import Busy, IdleWindow

WINDOW_S = 1.0
COUNTED = (
    "sys/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count",
    "proc/vmstat",
    "proc/pressure/*",
)


@dataclass(frozen=True)
class Observation:
    """How busy the host was, and the content of some files before and after, by path."""

    window: IdleWindow
    busiest: tuple[Busy, ...]
    before: Mapping[str, str]
    after: Mapping[str, str]


def observe(root: Path, window_s: float = WINDOW_S) -> Observation:
    """Watch the host for `window_s` seconds."""
    paths = _counted_files(root)
    processes = ProcessTimes(root / "proc")
    texts, before = _texts(root, paths), read_counters(root / "proc", root / "sys")
    time.sleep(window_s)
    window = window_between(before, read_counters(root / "proc", root / "sys"))
    return Observation(
        window=window,
        busiest=processes.busiest_since(),
        before=texts,
        after=_texts(root, paths),
    )


def _counted_files(root: Path) -> list[Path]:
    groups = [group / "cpu.stat" for group in cgroup_groups(root, "cpu")]
    return groups + [path for pattern in COUNTED for path in root.glob(pattern)]


def _texts(root: Path, paths: Iterable[Path]) -> dict[str, str]:
    texts = {}
    for path in paths:
        try:
            texts[f"/{path.relative_to(root)}"] = path.read_text(errors="replace").strip()
        except OSError:
            continue
    return texts
