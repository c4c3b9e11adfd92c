"""Suites: those in files, and one made from a workload."""

import datetime
import functools
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ValidationError

from hostbench.base import yaml as yamltree
from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.base.place import HOME
from hostbench.base.remedies import remedy
from hostbench.model.events import ParamValue
from hostbench.model.published import (
    Match,
    Published,
    PublishedHost,
    PublishedTable,
    Series,
    TrustedTool,
)
from hostbench.model.suite import (
    ALL,
    IdlePolicy,
    IdleRules,
    PeerChoice,
    Repeats,
    RepeatsChange,
    Scale,
    ScaleChange,
    Suite,
    SuiteCase,
)
from hostbench.plan.workloads import AD_HOC, split_workload

SUITE_BYTES_MOST = 1 << 20
SUFFIXES = (".yaml", ".yml")
# What a place of the document may contain, for suggestions; *: any name.
ANY = "*"
_MODELS: dict[tuple[str, ...], type[BaseModel]] = {
    (): Suite,
    ("idle",): IdleRules,
    ("repeats",): Repeats,
    ("cases",): SuiteCase,
    ("cases", "repeats"): RepeatsChange,
    ("cases", "scales", ANY): ScaleChange,
    ("cases", "scales", ANY, "repeats"): RepeatsChange,
    ("scales", ANY): Scale,
    ("scales", ANY, "repeats"): RepeatsChange,
    ("published",): Published,
    ("published", "host"): PublishedHost,
    ("published", "tables"): PublishedTable,
    ("published", "tables", "series", ANY): Series,
    ("published", "tables", "series", ANY, "ours"): Match,
    ("published", "tables", "series", ANY, "naive"): Match,
    ("published", "tables", "trusted"): TrustedTool,
    ("published", "tables", "trusted", "ours"): Match,
}
# The lists that strict validation requires as tuples; []: each entry of a list.
ENTRY = "[]"
_TABLE = ("published", "tables", ENTRY)
_TUPLES = frozenset(
    {
        ("cases",),
        ("published", "tables"),
        (*_TABLE, "key"),
        (*_TABLE, "columns"),
        (*_TABLE, "rows"),
        (*_TABLE, "rows", ENTRY),
        (*_TABLE, "trusted"),
        (*_TABLE, "remarks"),
        (*_TABLE, "shortcuts"),
    }
)
# Set when a suite is reduced to one of its scales, never in a file.
REDUCED = "scale"
# What to write instead, by the type of pydantic's error.
_REMEDIES = {
    "bool_type": "give true or false",
    "dict_type": "give a mapping, that is lines of key: value",
    "model_type": "give a mapping, that is lines of key: value",
    "int_type": "give a whole number",
    "float_type": "give a number",
    "list_type": "give a list such as [1, 2]",
    "literal_error": "give a list such as [1, 2], or all",
    "string_type": "give text, in quotes if it looks like a number",
    "too_short": "give at least one",
    "tuple_type": "give a list, each entry on a line of its own that begins with a hyphen",
}
AD_HOC_IDLE = IdleRules(policy="flag", timeout_s=10.0, per="suite")


class SuiteError(UsageError):
    """A suite that cannot be used."""


def suite_directory() -> Path:
    """Return HOSTBENCH_SUITES, else suites/ of the checkout or of the wheel."""
    given = os.environ.get("HOSTBENCH_SUITES")
    return Path(given) if given else HOME / "suites"


def built_in_suites() -> dict[str, Path]:
    """Return the suites that can be named, such as `quick` or `cs553/dgemm`."""
    directory = suite_directory()
    paths = sorted(path for suffix in SUFFIXES for path in directory.rglob(f"*{suffix}"))
    return {path.relative_to(directory).with_suffix("").as_posix(): path for path in paths}


def find_suite(name: str) -> Path:
    """Return the file of a suite given by name or by path. Raise SuiteError for an unknown name."""
    known = built_in_suites()
    if name in known:
        return known[name]
    if name.endswith(SUFFIXES) or name.startswith((".", "/")):
        return Path(name)
    raise SuiteError(
        f"there is no suite {shown(name)}; {did_you_mean(name, known)}"
        f"give {listing(known)}, or the path of a .yaml file"
    )


def load_suite(path: Path) -> Suite:
    """Return the suite in a file. Raise SuiteError."""
    try:
        tree, lines = yamltree.parse(_read(path))
    except yamltree.YamlError as error:
        raise _error(path, error.line, error.message) from None
    if not isinstance(tree, dict):
        what = "is empty" if tree is None else f"holds {shown(tree)} instead of a mapping"
        raise _error(path, None, f"the suite {what}; it needs the keys name and cases")
    if REDUCED in tree:
        raise _error(
            path,
            lines.get((REDUCED,)),
            "unknown key 'scale'; did you mean 'scales'? --scale selects the one to measure",
        )
    try:
        return Suite.model_validate(_tuples(tree))
    except ValidationError as error:
        raise _validation_error(path, error, lines) from None


def load_known_suite(path: Path) -> Suite:
    """Do the same as `load_suite`, but read the file again only when it has changed. Raise
    SuiteError."""
    try:
        status = path.stat()
    except OSError:
        return load_suite(path)
    return _remembered(path, status.st_ino, status.st_size, status.st_mtime_ns)


@functools.lru_cache(64)
def _remembered(path: Path, *_version: int) -> Suite:
    return load_suite(path)


def _read(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(SUITE_BYTES_MOST + 1)
    except OSError as error:
        raise SuiteError(
            f"cannot read the suite {path}: {error.strerror}; give a readable .yaml file, "
            f"or one of {listing(built_in_suites())}"
        ) from None
    if len(content) > SUITE_BYTES_MOST:
        raise SuiteError(
            f"the suite {path} has more than {SUITE_BYTES_MOST} bytes, which is the maximum; "
            "use grids instead of single cases"
        )
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise _error(
            path, line, f"byte {content[error.start]:#04x} is not UTF-8; save the file as UTF-8"
        ) from None


def _tuples(tree: Any, place: tuple[str, ...] = ()) -> Any:
    """Return the tree with tuples where the models have them."""
    if isinstance(tree, dict):
        return {name: _tuples(value, (*place, name)) for name, value in tree.items()}
    if isinstance(tree, list):
        entries = [_tuples(entry, (*place, ENTRY)) for entry in tree]
        return tuple(entries) if place in _TUPLES else entries
    return tree


def _error(path: Path, line: int | None, message: str) -> SuiteError:
    return SuiteError(f"{path}:{line}: {message}" if line else f"{path}: {message}")


def _validation_error(
    path: Path, error: ValidationError, lines: dict[yamltree.Place, int]
) -> SuiteError:
    errors = error.errors(include_url=False)
    # A misspelt key is also a missing one; its own name says more.
    unknown = (one for one in errors if one["type"] == "extra_forbidden")
    first = next(unknown, errors[0])
    where = _known_place(first["loc"], lines)
    # The deepest and last branch of a union fits best.
    places = [_known_place(one["loc"], lines) for one in errors]
    about = [i for i, place in enumerate(places) if place[: len(where)] == where]
    best = max(about, key=lambda i: (len(places[i]), i))
    message = _message(errors[best])
    return _error(path, lines.get(places[best]), f"{_spelt(places[best])}{message}")


def _known_place(
    place: tuple[str | int, ...], lines: dict[yamltree.Place, int]
) -> tuple[str | int, ...]:
    """Return the place without a union's branch, which is part of pydantic's location but not of
    the document's."""
    while place and place not in lines:
        place = place[:-1]
    return place


def _spelt(place: tuple[str | int, ...]) -> str:
    """`cases[3].params.isa: `"""
    text = ""
    for part in place:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return f"{text}: " if text else ""


def _remedy(error: Any) -> str | None:
    """Return the remedy in terms of YAML; pydantic's would be about Python's types."""
    place, value = error["loc"], error["input"]
    if "peers" in place and error["type"] in ("list_type", "literal_error"):
        return "give auto, none, or a list of tools such as [likwid-bench, sysbench]"
    if "params" in place[:-1] and error["type"] in _REMEDIES:
        more = "; several values belong in grid" if isinstance(value, list) else ""
        return f"give one word or number{more}"
    if error["type"] == "literal_error" and "grid" not in place:
        return None  # it lists the words itself
    return _REMEDIES.get(error["type"])


def _yaml(value: object) -> str:
    """Return a value as a suite writes it, not as Python does."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, datetime.date):
        return shown(str(value))
    return shown(list(value) if isinstance(value, tuple) else value)


def _model_at(place: tuple[str, ...]) -> type[BaseModel] | None:
    """Return the model at a place of the document, or None if nothing there has keys of its own."""
    for known, model in _MODELS.items():
        if len(known) == len(place) and all(
            part in (ANY, name) for part, name in zip(known, place, strict=True)
        ):
            return model
    return None


def _message(first: Any) -> str:
    value, place = shown(first["input"]), first["loc"]
    if first["type"] == "extra_forbidden":
        model = _model_at(tuple(part for part in place[:-1] if isinstance(part, str)))
        allowed = sorted(set(model.model_fields) - {REDUCED}) if model else []
        return (
            f"unknown key {shown(place[-1])}; {did_you_mean(str(place[-1]), allowed)}"
            f"allowed are {listing(allowed)}"
        )
    if first["type"] == "missing":
        return f"the key {place[-1]} is missing; add it"
    if first["type"] == "value_error":
        return str(first["msg"]).removeprefix("Value error, ")
    if isinstance(first["input"], float) and not math.isfinite(first["input"]):
        return f"{value} is not allowed: give a finite number"
    if instead := _remedy(first):
        return f"{_yaml(first['input'])} is not allowed: {instead}"
    if first["type"] == "string_pattern_mismatch":
        pattern = first["ctx"]["pattern"]
        mark = "underscores" if "_" in pattern else "hyphens"
        return f"{value} is not a name; use lower-case letters, digits and {mark}, 40 at most"
    return f"{value} is not allowed: {remedy([first])}"


@dataclass(frozen=True)
class Changes:
    """What replaces the suite's own values; None: as in the suite."""

    trials: int | None = None
    idle_policy: IdlePolicy | None = None
    peers: PeerChoice | None = None


def ad_hoc_suite(workload: str, given: Mapping[str, ParamValue]) -> Suite:
    """Return a suite of one workload; `all` stands for every choice of a parameter. Raise
    UsageError."""
    split_workload(workload)
    params: dict[str, ParamValue] = {k: v for k, v in given.items() if v != ALL}
    grid: dict[str, list[ParamValue]] = {k: [v] for k, v in given.items() if v == ALL}
    return Suite(
        name=AD_HOC,
        idle=AD_HOC_IDLE,
        cases=(SuiteCase(workload=workload, params=params, grid=dict(grid)),),
    )


def changed(suite: Suite, changes: Changes) -> Suite:
    """Return the suite with these changes."""
    if changes.idle_policy is not None:
        idle = suite.idle.model_copy(update={"policy": changes.idle_policy})
        suite = suite.model_copy(update={"idle": idle})
    if changes.trials is not None:
        suite = _with_trials(suite, changes.trials)
    if changes.peers is not None:
        # For a single workload, the named tools must fit it; for a suite, each case takes those
        # that fit.
        named = changes.peers if suite.name == AD_HOC else None
        cases = tuple(case.model_copy(update={"peers": named}) for case in suite.cases)
        suite = suite.model_copy(update={"peers": changes.peers, "cases": cases})
    return suite


def _with_trials(suite: Suite, trials: int) -> Suite:
    exactly = {"min_trials": trials, "max_trials": trials}
    cases = tuple(
        case.model_copy(update={"repeats": case.repeats.model_copy(update=exactly)})
        for case in suite.cases
    )
    return suite.model_copy(update={"cases": cases})
