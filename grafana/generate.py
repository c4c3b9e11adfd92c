"""Writes the boards: `python -m grafana.generate`. What it wrote is committed; a test says when it
is not what the code says."""

import json
from pathlib import Path

from grafana_foundation_sdk.cog.encoder import JSONEncoder

from grafana.cpu import cpu
from grafana.disk import disk
from grafana.gpu import gpu
from grafana.live import live
from grafana.mem import mem
from grafana.net import net
from grafana.overview import overview

DIRECTORY = Path(__file__).with_name("dashboards")
BOARDS = {
    "overview": overview,
    "cpu": cpu,
    "mem": mem,
    "disk": disk,
    "net": net,
    "gpu": gpu,
    "live": live,
}


def generated() -> dict[str, str]:
    """The boards as JSON, by file name."""
    return {
        f"{name}.json": json.dumps(make().build(), cls=JSONEncoder, indent=1, sort_keys=True) + "\n"
        for name, make in BOARDS.items()
    }


def main() -> None:
    """Writes all of them."""
    for name, text in generated().items():
        (DIRECTORY / name).write_text(text)


if __name__ == "__main__":
    main()
