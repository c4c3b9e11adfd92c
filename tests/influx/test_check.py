"""The script that tells whether an InfluxDB serves hostbench."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stack.influx_server import (
    READER,
    READER_PASSWORD,
    REPOSITORY,
    SHIPPED_PROGRAM,
    WRITER,
    WRITER_PASSWORD,
    InfluxServer,
    ShippedInflux,
)


def check(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "orchestrator.influx.check", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
    )


@pytest.fixture
def passwords(tmp_path: Path) -> dict[str, str]:
    """A file for each user, one with a wrong password."""
    paths = {}
    for name, password in (
        (WRITER, WRITER_PASSWORD),
        (READER, READER_PASSWORD),
        ("wrong", "wrong"),
    ):
        paths[name] = str(tmp_path / name)
        Path(paths[name]).write_text(password)
    return paths


def test_a_healthy_server(
    influx_server: InfluxServer, database: str, passwords: dict[str, str]
) -> None:
    ended = check(
        influx_server.url,
        "--database",
        database,
        "--password-file",
        passwords[WRITER],
        "--read-user",
        READER,
        "--read-password-file",
        passwords[READER],
    )
    assert ended.returncode == 0, ended.stdout
    lines = ended.stdout.splitlines()
    assert lines[0] == f"ok        reaches the server: InfluxDB {influx_server.version}"
    assert sum(line.startswith("ok ") for line in lines) == 10
    kept = isinstance(influx_server, ShippedInflux)
    assert ("left behind" if kept else "deleted again") in lines[-2]
    assert lines[-1] == f"{influx_server.url} serves hostbench"
    with influx_server.client(database=database) as influx:
        assert kept or not influx.query("SHOW MEASUREMENTS")


@pytest.mark.usefixtures("first_generation")
def test_a_wrong_password(
    influx_server: InfluxServer, database: str, passwords: dict[str, str]
) -> None:
    ended = check(influx_server.url, "--database", database, "--password-file", passwords["wrong"])
    assert ended.returncode == 1
    assert "FAILED    database and both retention policies exist" in ended.stdout
    assert "authorization failed" in ended.stdout
    assert "nothing else was tried" in ended.stdout


@pytest.mark.usefixtures("first_generation")
def test_a_user_who_may_only_read(
    influx_server: InfluxServer, database: str, passwords: dict[str, str]
) -> None:
    ended = check(
        influx_server.url,
        *("--database", database, "--user", READER, "--password-file", passwords[READER]),
    )
    assert ended.returncode == 1
    assert "FAILED    writes results and reads them back" in ended.stdout
    assert "not authorized to write" in ended.stdout


def test_boards_that_may_write(
    influx_server: InfluxServer, database: str, passwords: dict[str, str]
) -> None:
    ended = check(
        influx_server.url,
        *("--database", database, "--password-file", passwords[WRITER]),
        *("--read-user", WRITER, "--read-password-file", passwords[WRITER]),
    )
    assert ended.returncode == 1
    assert "FAILED    the boards' user reads and cannot write: it may write" in ended.stdout


@pytest.mark.usefixtures("first_generation")
def test_a_server_without_the_short_retention(
    influx_server: InfluxServer, database: str, passwords: dict[str, str]
) -> None:
    """The writing user of 1.x may not make one."""
    with influx_server.admin(database) as admin:
        admin.query(f'DROP RETENTION POLICY "samples" ON "{database}"')
    ended = check(influx_server.url, "--database", database, "--password-file", passwords[WRITER])
    assert ended.returncode == 1
    assert 'run: CREATE RETENTION POLICY "samples"' in ended.stdout


@pytest.mark.usefixtures("first_generation")
def test_samples_that_are_kept_for_ever(
    influx_server: InfluxServer, database: str, passwords: dict[str, str]
) -> None:
    with influx_server.admin(database) as admin:
        admin.query(f'ALTER RETENTION POLICY "samples" ON "{database}" DURATION INF')
    ended = check(influx_server.url, "--database", database, "--password-file", passwords[WRITER])
    assert ended.returncode == 1
    assert "FAILED    samples are dropped after 30 days" in ended.stdout
    assert ended.stdout.count("FAILED  ") == 1


def test_an_absent_server() -> None:
    ended = check("http://127.0.0.1:1")
    assert ended.returncode == 1
    assert ended.stdout.startswith("FAILED    reaches the server: InfluxDB does not answer at")
    assert ended.stdout.count("\n") == 3


def test_no_address() -> None:
    ended = check()
    assert ended.returncode == 2
    assert ended.stderr.startswith("hostbench: the address of InfluxDB is missing")


@pytest.mark.skipif(not SHIPPED_PROGRAM.exists(), reason="not built here: scripts/influxdb.sh")
def test_the_initialisation_of_the_stack(tmp_path: Path) -> None:
    """compose/influxdb/init.sh, as the image runs it after its own set-up."""
    with ShippedInflux(tmp_path / "influx") as server:
        organisation, bucket = server.onboard("hostbench")
        secrets = {
            "influxdb_admin_token": server.admin_password,
            "influxdb_password": WRITER_PASSWORD,
            "influxdb_read_password": READER_PASSWORD,
        }
        for name, content in secrets.items():
            (tmp_path / name).write_text(content)
        script = (REPOSITORY / "compose/influxdb/init.sh").read_text()
        (tmp_path / "init.sh").write_text(script.replace("/run/secrets", str(tmp_path)))
        given = {
            "INFLUX_HOST": server.url,
            "DOCKER_INFLUXDB_INIT_ORG_ID": organisation,
            "DOCKER_INFLUXDB_INIT_BUCKET_ID": bucket,
            "DOCKER_INFLUXDB_INIT_BUCKET": "hostbench",
        }
        subprocess.run(["bash", tmp_path / "init.sh"], env={**os.environ, **given}, check=True)
        ended = check(
            server.url,
            *("--password-file", str(tmp_path / "influxdb_password")),
            *("--read-user", READER),
            *("--read-password-file", str(tmp_path / "influxdb_read_password")),
        )
        assert ended.returncode == 0, ended.stdout
