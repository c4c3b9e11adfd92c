"""A benchmark program as the tests of its subsystem call it, and what its events say."""

import json
import os
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.machine_code import ROOT

OK, FAILED, USAGE, RESOURCE, UNSUPPORTED, WRONG = range(6)
MIB = 1 << 20


@dataclass(frozen=True)
class Trial:
    """A trial that has ended well."""

    start: dict[str, Any]
    samples: tuple[dict[str, Any], ...]
    warnings: dict[str, str]
    end: dict[str, Any]

    @property
    def params(self) -> dict[str, Any]:
        """As resolved."""
        found: dict[str, Any] = self.start["params"]
        return found

    @property
    def facts(self) -> dict[str, str]:
        """Of the way between two hosts, or of the device and the kernel."""
        found: dict[str, str] = self.start["facts"]
        return found

    @property
    def metrics(self) -> dict[str, Any]:
        """Of the whole trial."""
        found: dict[str, Any] = self.end["metrics"]
        return found


def objects_of(subsystem: str) -> list[Path]:
    """What its release build is linked from. Objects of removed sources, which a build leaves, are
    none of them."""
    sources = [*ROOT.glob("harness/*.c"), *ROOT.glob(f"services/{subsystem}/bench/*.c")]
    built = ROOT / "build" / "release"
    return [(built / one.relative_to(ROOT)).with_suffix(".o") for one in sources]


def trial_of(lines: Sequence[str]) -> Trial:
    """The trial of these events."""
    events = [json.loads(line) for line in lines]
    warnings = {one["code"]: one["message"] for one in events if one["event"] == "warning"}
    (start,) = (one for one in events if one["event"] == "start")
    samples = tuple(one for one in events if one["event"] == "sample")
    assert events[-1]["event"] == "end" and events[-1]["verified"] is True
    return Trial(start, samples, warnings, events[-1])


def refused(result: subprocess.CompletedProcess[str], code: int, *parts: str) -> str:
    """One line that holds all parts, the exit code, and no figure; the line."""
    assert result.returncode == code, (result.returncode, result.stdout, result.stderr)
    last = json.loads(result.stdout.splitlines()[-1])
    assert last["event"] == ("skip" if code == UNSUPPORTED else "error")
    assert '"end"' not in result.stdout
    (line,) = result.stderr.splitlines()
    for part in parts:
        assert part in line, line
    assert (last["reason"] if code == UNSUPPORTED else last["message"]) in line
    return line


@dataclass(frozen=True)
class Benchmark:
    """A program of the release build. In every call `program` is another file in its place,
    `prefix` stands before it, and `env` is added to this process's environment."""

    name: str
    # The longest that any call may take, on a machine whose CPUs others have.
    timeout_s: float = 60.0

    @property
    def path(self) -> Path:
        """Where `make programs` puts it."""
        return ROOT / "build" / "release" / self.name

    def call(
        self,
        *arguments: str,
        program: Path | None = None,
        prefix: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            [*prefix, str(program or self.path), *arguments],
            capture_output=True,
            text=True,
            timeout=self.timeout_s,
            env={**os.environ, **(env or {})},
            **options,
        )

    def measure(self, workload: str, *arguments: str, **options: Any) -> Trial:
        """A trial that must end well."""
        result = self.call(workload, *arguments, **options)
        assert result.returncode == OK, result.stderr
        return trial_of(result.stdout.splitlines())

    @contextmanager
    def running(
        self,
        workload: str,
        *arguments: str,
        program: Path | None = None,
        prefix: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
        """A long trial that has begun, and its start event; ended and gone afterwards."""
        with subprocess.Popen(
            [*prefix, str(program or self.path), workload, "--duration-s=60", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {})},
            **options,
        ) as process:
            try:
                assert process.stdout is not None and process.stderr is not None
                first = process.stdout.readline()
                assert first, process.stderr.read()
                yield process, json.loads(first)
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.communicate(timeout=20)
                except (subprocess.TimeoutExpired, ValueError):
                    process.kill()

    def table(self, **options: Any) -> dict[str, Any]:
        """The workloads of --list by name."""
        result = self.call("--list", **options)
        assert result.returncode == OK, result.stderr
        return {workload["name"]: workload for workload in json.loads(result.stdout)["workloads"]}
