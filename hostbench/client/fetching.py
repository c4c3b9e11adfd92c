"""Results and reports of an orchestrator, onto standard output or into files."""

import sys
from dataclasses import dataclass
from pathlib import Path

import typer

from hostbench.client.api import Orchestrator
from hostbench.errors import UsageError
from hostbench.outputfile import STANDARD_OUTPUT, check_output, write_output
from hostbench.results import CSV, DOCUMENT, REPORT


@dataclass(frozen=True)
class Wanted:
    """The options of `hostbench result`. Raises UsageError for two things on one output, or a file
    that cannot be one."""

    as_csv: bool
    as_json: bool
    output: str | None
    report: str | None

    def __post_init__(self) -> None:
        if self.report == STANDARD_OUTPUT and self.output in (None, STANDARD_OUTPUT):
            others = {"--json": self.as_json, "--csv": self.as_csv, "--output": self.output}
            for option, given in others.items():
                if given:
                    raise UsageError(
                        f"--report - and {option} both want standard output; give one a file"
                    )
        if self.output is not None and self.output == self.report != STANDARD_OUTPUT:
            raise UsageError(f"--output and --report both name {self.output}; give each its own")
        name = CSV if self.as_csv else DOCUMENT
        for option, target, example in self._files(name):
            check_output(option, "the file", Path(target), example)

    def _files(self, name: str) -> list[tuple[str, str, str]]:
        named = [("--output", self.output, name), ("--report", self.report, REPORT)]
        return [(o, t, e) for o, t, e in named if t is not None and t != STANDARD_OUTPUT]

    @property
    def in_full(self) -> bool:
        """Whether the document or the CSV is wanted as it is."""
        return self.as_json or self.as_csv or self.output is not None


def fetch(server: Orchestrator, job: str, wanted: Wanted) -> bool:
    """Fetches what is wanted; False: nothing but the table is. Raises HostbenchError."""
    if wanted.in_full:
        content = server.result_csv(job) if wanted.as_csv else server.result(job)
        _put("--output", wanted.output, content)
    if wanted.report is not None:
        _put("--report", wanted.report, server.report(job))
    return wanted.in_full or wanted.report is not None


def _put(option: str, target: str | None, content: bytes) -> None:
    """Into the file, whose name is then printed; otherwise onto standard output."""
    if target is None or target == STANDARD_OUTPUT:
        sys.stdout.write(content.decode("utf-8", "replace"))
        return
    write_output(option, "the file", Path(target), content)
    typer.echo(target)
