"""Generates the pages that derive from others: of code, the schemas of events and baselines, and
the table of workloads; of the pages, the list of settings.

`python -m hostbench.docs` writes them; `--check` fails when a file differs from what would be
written.
"""

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core.core_schema import DictSchema

from hostbench.base.errors import HostbenchError
from hostbench.base.exitcode import ExitCode
from hostbench.base.place import CHECKOUT
from hostbench.model.baseline import BASELINE_SCHEMA, Baseline
from hostbench.model.events import EVENT, PROTOCOL_SCHEMA
from hostbench.model.registry import subsystem_names
from hostbench.model.table import Metric, Param, Table
from hostbench.programs.params import allowed
from hostbench.programs.program import load_program

DOCS = CHECKOUT / "docs"
SCHEMA_PAGE = DOCS / "kernel-protocol.schema.json"
BASELINE_PAGE = CHECKOUT / "baselines" / "baseline.schema.json"
WORKLOADS_PAGE = DOCS / "workloads.md"
SETTINGS_PAGE = DOCS / "settings.md"
SERVICES = CHECKOUT / "services"
Row = TypeVar("Row", Param, Metric)
_VARIABLE = re.compile(r"HOSTBENCH_[A-Z][A-Z_]*[A-Z]")
# Read by a build for tests alone, which no user has.
_OF_TEST_BUILDS = {"HOSTBENCH_FLIP"}
NAIVE = (
    "**Naive**: it measures the way that is known to mislead, to show by how much. Its figure has "
    "no limit, no peer and no place among the best "
    "([measurement.md](measurement.md#naive-workloads))."
)


class _StrictSchema(GenerateJsonSchema):
    """Declares that a dictionary has only keys that match the pattern, as in the models."""

    def dict_schema(self, schema: DictSchema) -> JsonSchemaValue:
        generated = super().dict_schema(schema)
        if "patternProperties" in generated:
            generated["additionalProperties"] = False
        return generated


def schema_page() -> str:
    """Return the JSON schema of one event."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One event of a benchmark program, protocol schema {PROTOCOL_SCHEMA}",
        **EVENT.json_schema(schema_generator=_StrictSchema),
    }
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def baseline_schema() -> str:
    """Return the JSON schema of a baseline."""
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Baseline.model_json_schema(mode="serialization"),
        "title": f"A baseline, schema {BASELINE_SCHEMA}",
    }
    return json.dumps(schema, indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def workloads_page(tables: Iterable[Table]) -> str:
    """Return every workload with its parameters and metrics; nothing in it depends on this host."""
    lines = [
        "# Workloads",
        "",
        "Generated from the programs' tables (`cpu-bench --list` and its siblings) by "
        "`python -m hostbench.docs`. Do not edit. The metric in bold is the one that has a limit, "
        "a verdict and a line in the table. The role of a parameter: charts are drawn over an "
        "axis, a tag distinguishes series of points, and what says how a case is measured "
        "stands in no label.",
    ]
    for table in tables:
        lines += _program_lines(table)
    return "\n".join(lines) + "\n"


def _program_lines(table: Table) -> list[str]:
    """Return the lines of a program. What most workloads share appears once, with the others;
    naive workloads work differently and list everything themselves."""
    sound = [workload for workload in table.workloads if not workload.naive]
    params = _common({one.name: [_anywhere(param) for param in one.params] for one in sound})
    # The metric in bold stands with its workload.
    metrics = _common({one.name: [m for m in one.metrics if not m.primary] for one in sound})
    which = "every workload" if len(sound) == len(table.workloads) else "all but naive workloads"
    lines = ["", f"## {table.subsystem}", "", f"Program: `{table.program}`."]
    for kind, common, rows in (
        ("Parameters", params, _param_rows(params)),
        ("Metrics", metrics, _metric_rows(metrics)),
    ):
        if common:
            but = " (some rows name exceptions)" if any(lack for _, lack in common) else ""
            lines += ["", f"{kind} of {which}{but}:", "", *rows]
    for workload in table.workloads:
        lines += ["", f"### {table.subsystem}.{workload.name}", "", workload.description]
        if workload.naive:
            lines += ["", NAIVE]
        own_params = [_anywhere(param) for param in workload.params]
        own_metrics = list(workload.metrics)
        if not workload.naive:
            own_params = _without(own_params, params)
            own_metrics = _without(own_metrics, metrics)
        if own_params:
            lines += ["", *_param_rows([(param, []) for param in own_params])]
        if own_metrics:
            lines += ["", *_metric_rows([(metric, []) for metric in own_metrics])]
    return lines


def _anywhere(param: Param) -> Param:
    """Return the parameter without what this host does not support."""
    return param.model_copy(update={"unsupported": {}})


def _common(
    per_workload: Mapping[str, Sequence[Row]],
) -> list[tuple[Row, list[str]]]:
    """Return the rows that at least two thirds of the workloads have, in the order of their first
    appearance, each with the names of the workloads that lack it or have another of that name."""
    common: list[tuple[Row, list[str]]] = []
    seen: list[Row] = []
    for row in (row for rows in per_workload.values() for row in rows):
        if row in seen:
            continue
        seen.append(row)
        lack = [name for name, rows in per_workload.items() if row not in rows]
        if 3 * len(lack) <= len(per_workload):
            common.append((row, lack))
    return common


def _without(rows: Sequence[Row], common: Sequence[tuple[Row, list[str]]]) -> list[Row]:
    return [row for row in rows if all(row != shared for shared, _ in common)]


def _except(lack: Sequence[str]) -> str:
    return f" Except: {', '.join(f'`{name}`' for name in lack)}." if lack else ""


def _param_rows(params: Iterable[tuple[Param, list[str]]]) -> list[str]:
    rows = ["| parameter | values | default | role | meaning |", "|---|---|---|---|---|"]
    for param, lack in params:
        default = "–" if param.default is None else f"`{param.default}`"
        role = ", ".join(param.roles) or "–"
        text = " ".join([param.help.strip(), *_remarks(param)]) + _except(lack)
        rows.append(f"| `{param.name}` | {allowed(param)} | {default} | {role} | {text} |")
    return rows


def _remarks(param: Param) -> Iterator[str]:
    """Yield what the table says about a parameter in addition to its help."""
    if param.excludes:
        yield f"Cannot be combined with `{param.excludes}`."
    if param.resolved_once:
        yield "The first trial of a case chooses; later trials use its choice."
    if param.fallbacks:
        pairs = (f"`{wanted}`: `{taken}`" for wanted, taken in param.fallbacks.items())
        yield f"Replaced with a warning if the host lacks it: {', '.join(pairs)}."
    if param.scope == "host":
        yield "Only the operator of the host can set it."


def _metric_rows(metrics: Iterable[tuple[Metric, list[str]]]) -> list[str]:
    rows = ["| metric | unit | better | meaning |", "|---|---|---|---|"]
    for metric, lack in metrics:
        name = f"**`{metric.name}`**" if metric.primary else f"`{metric.name}`"
        rows.append(
            f"| {name} | {metric.unit} | {metric.direction} | {metric.description}{_except(lack)} |"
        )
    return rows


def settings_page(pages: Mapping[str, str]) -> str:
    """Return each variable with the pages that explain it: those with a row of a table for it, or,
    without such a row, those that name it. `pages`: by their address relative to docs/."""
    rows: dict[str, list[str]] = {}
    mentions: dict[str, list[str]] = {}
    for address, text in pages.items():
        first_cells = re.findall(r"^\| (`HOSTBENCH_[^|]*)\|", text, re.MULTILINE)
        for found, where in ((rows, "".join(first_cells)), (mentions, text)):
            for name in sorted(set(_VARIABLE.findall(where)) - _OF_TEST_BUILDS):
                found.setdefault(name, []).append(f"[{_title(text)}]({address})")
    lines = [
        "# Settings",
        "",
        "The variables that pages explain, with the page that gives its default, what is allowed "
        "and what it does. Generated from these pages by `python -m hostbench.docs`. Do not edit. "
        "A variable that ends in `_FILE` names a file; for a secret it takes precedence over the "
        "variable without that ending. `.env.example` shows those of the stack.",
        "",
        "| variable | explained in |",
        "|---|---|",
        *(
            f"| `{name}` | {', '.join(rows.get(name, mentions[name]))} |"
            for name in sorted(mentions)
        ),
    ]
    return "\n".join(lines) + "\n"


def _title(text: str) -> str:
    return text.partition("\n")[0].removeprefix("# ")


def settings_pages() -> dict[str, str]:
    """Return the pages that explain settings, by their address relative to docs/."""
    found = {
        one.name: one
        for one in sorted(DOCS.glob("*.md"))
        if one != SETTINGS_PAGE and not one.name.startswith(("howto-", "tutorial"))
    }
    found |= {
        f"../{one.relative_to(CHECKOUT)}": one for one in sorted(SERVICES.glob("*/README.md"))
    }
    return {address: path.read_text(encoding="utf-8") for address, path in found.items()}


def main(arguments: Sequence[str]) -> int:
    """Write the pages, or compare them with --check; return the exit code."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write("usage: python -m hostbench.docs [--check]\n")
        return ExitCode.USAGE
    try:
        pages = {
            SCHEMA_PAGE: schema_page(),
            BASELINE_PAGE: baseline_schema(),
            WORKLOADS_PAGE: workloads_page(_tables()),
            SETTINGS_PAGE: settings_page(settings_pages()),
        }
    except HostbenchError as error:
        sys.stderr.write(f"hostbench.docs: {error.message}\n")
        return error.exit_code
    if arguments:
        return _check(pages)
    for path, text in pages.items():
        path.write_text(text, encoding="utf-8")
    return ExitCode.OK


def _tables() -> list[Table]:
    """Return the tables of all programs whose sources are in this checkout."""
    return [
        load_program(subsystem).table
        for subsystem in subsystem_names()
        if (SERVICES / subsystem / "bench").is_dir()
    ]


def _check(pages: dict[Path, str]) -> int:
    stale = [
        path.relative_to(CHECKOUT).as_posix()
        for path, text in pages.items()
        if not path.is_file() or path.read_text(encoding="utf-8") != text
    ]
    if not stale:
        return ExitCode.OK
    sys.stderr.write(
        f"hostbench.docs: {' and '.join(stale)} do not say what the code says; "
        "write them anew with python -m hostbench.docs\n"
    )
    return ExitCode.CASE_FAILED


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
