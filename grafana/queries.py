"""Every query of the boards as Grafana would send it, for tests that run them and compare."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grafana.influxql import LEAST_INTERVAL

DIRECTORY = Path(__file__).with_name("dashboards")
_REGEX_VARIABLE = re.compile(r"\$\{(\w+):regex\}")
# The characters that Grafana escapes in a regular expression.
_SPECIAL = re.compile(r"[\\^$*+?.()|[\]{}/]")


@dataclass(frozen=True)
class BoardQuery:
    """One query, ready to be sent. `panel` is the panel's title, or the name of the variable whose
    values it reads."""

    board: str
    panel: str
    ref: str
    text: str


@dataclass(frozen=True)
class Chosen:
    """A user's choice: times in milliseconds since 1970, and the values of variables by name. A
    variable that is missing is set to all."""

    from_ms: int
    to_ms: int
    variables: Mapping[str, Sequence[str]]
    interval: str = LEAST_INTERVAL


def panel_queries(chosen: Chosen) -> list[BoardQuery]:
    """Return the queries of all panels of all boards."""
    return [
        BoardQuery(
            board["uid"], panel["title"], target["refId"], filled(target["query"], chosen, board)
        )
        for board in boards()
        for panel in _panels(board)
        for target in panel.get("targets", [])
    ]


def _panels(board: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield all panels, including those of folded rows."""
    for panel in board["panels"]:
        yield panel
        yield from panel.get("panels", ())


def annotation_queries(chosen: Chosen) -> list[BoardQuery]:
    """Return the queries of all marks, by their names."""
    return [
        BoardQuery(board["uid"], one["name"], "", filled(one["target"]["query"], chosen, board))
        for board in boards()
        for one in board.get("annotations", {}).get("list", [])
    ]


def variable_queries(chosen: Chosen) -> list[BoardQuery]:
    """Return the queries that variables take their values from."""
    return [
        BoardQuery(board["uid"], variable["name"], "", filled(variable["query"], chosen, board))
        for board in boards()
        for variable in board["templating"]["list"]
        if variable["type"] == "query"
    ]


def boards() -> list[dict[str, Any]]:
    """Return the committed boards, as Grafana reads them."""
    return [json.loads(path.read_text()) for path in sorted(DIRECTORY.glob("*.json"))]


def filled(text: str, chosen: Chosen, board: Mapping[str, Any]) -> str:
    """Return a query of a board with its variables and macros filled in."""
    all_values = {one["name"]: one.get("allValue") for one in board["templating"]["list"]}

    def choice(found: re.Match[str]) -> str:
        values = chosen.variables.get(found[1])
        if values is None:
            # A variable without a value for all has a single value.
            return _REGEX_VARIABLE.sub(choice, all_values[found[1]] or ".*")
        escaped = [_SPECIAL.sub(r"\\\g<0>", value) for value in values]
        return escaped[0] if len(escaped) == 1 else f"({'|'.join(escaped)})"

    text = _REGEX_VARIABLE.sub(choice, text)
    text = text.replace("$timeFilter", f"time >= {chosen.from_ms}ms AND time <= {chosen.to_ms}ms")
    text = text.replace("$__interval", chosen.interval)
    assert "$" not in text.replace("$/", ""), f"a variable is left in: {text}"
    return text
