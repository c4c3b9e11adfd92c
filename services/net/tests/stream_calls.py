"""Bulk streams between two sockets, by the probe: both ends' counts."""

import json
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.compiled import STRICT, compiled
from tests.machine_code import ROOT

HERE = Path(__file__).parent
BENCH = ROOT / "services" / "net" / "bench"
MODULES = (
    "endpoint",
    "endpoint_facts",
    "sequence",
    "pacing",
    "stream_run",
    "stream_role",
    "stream_tcp",
    "stream_udp",
    "ticks",
)
HARNESS = ("cpulist", "textfile", "monotonic")
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Counts:
    """What the two ends of one phase reported (stream.h's stream_counts)."""

    sender: dict[str, Any]
    receiver: dict[str, Any]

    @property
    def lost(self) -> int:
        """Datagrams."""
        found: int = self.sender["datagrams"] - self.receiver["datagrams"]
        return found


Transfer = Callable[..., Counts]


def build(probe: str, *extra: str) -> Path:
    """Compile a probe with the modules of streams and endpoints."""
    sources = [HERE / f"{probe}.c"]
    sources += [BENCH / f"{name}.c" for name in (*MODULES, "test")]
    sources += [ROOT / "harness" / f"{name}.c" for name in HARNESS]
    folders = (f"-I{ROOT / 'harness'}", f"-I{BENCH}")
    return compiled(probe, sources, [*STRICT, "-g", "-pthread", *extra, *folders, "-lm"])


def call(program: Path, **arguments: object) -> subprocess.CompletedProcess[str]:
    """One transfer: `path` names the protocol too; see the probe."""
    words = [f"{name}={value}" for name, value in arguments.items()]
    return subprocess.run([str(program), *words], capture_output=True, text=True, timeout=TIMEOUT_S)


def transfer_with(program: Path) -> Transfer:
    """A transfer that must end well."""

    def transfer(**arguments: object) -> Counts:
        result = call(program, **arguments)
        assert result.returncode == 0, result.stderr
        return Counts(**json.loads(result.stdout))

    return transfer
