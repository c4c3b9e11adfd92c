"""Writes the boards: `python -m grafana.generate`. The files are committed; a test fails when they
differ from the code."""

import importlib
import json
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path

from grafana_foundation_sdk.builders.dashboard import Dashboard
from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.fleet import fleet
from grafana.live import live
from grafana.maps import maps
from grafana.overview import overview
from hostbench.model.registry import built_in_names

DIRECTORY = Path(__file__).with_name("dashboards")


def boards() -> Mapping[str, Callable[[], Dashboard]]:
    """Return the function that makes each board.

    The board of a subsystem is a function in a module of this package, both with the subsystem's
    name. A subsystem of another package has none.
    """
    with_board = [name for name in built_in_names() if find_spec(f"grafana.{name}")]
    own = {name: getattr(importlib.import_module(f"grafana.{name}"), name) for name in with_board}
    return {"overview": overview, "fleet": fleet, **own, "maps": maps, "live": live}


def generated() -> dict[str, str]:
    """Return the boards as JSON, by file name."""
    return {
        f"{name}.json": json.dumps(make().build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"
        for name, make in boards().items()
    }


def main() -> None:
    """Write all of them."""
    for name, text in generated().items():
        (DIRECTORY / name).write_text(text)


if __name__ == "__main__":
    main()
