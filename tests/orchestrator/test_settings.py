"""A wrong environment is one clear line, and no start."""

import subprocess
import sys
from pathlib import Path

import pytest

from hostbench.base.config import Option
from hostbench.base.errors import ResourceError
from orchestrator.influx.options import InfluxSettings
from orchestrator.queue.address import RedisSettings
from tests.stack.orchestrator_process import API_KEY, SERVICE_KEY
from tests.stack.redis_server import REPOSITORY


def started(root: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    settings = {
        "PATH": "/usr/bin",
        "HOSTBENCH_API_KEY": API_KEY,
        "HOSTBENCH_SERVICE_KEY": SERVICE_KEY,
        "HOSTBENCH_RESULTS": str(root / "results"),
        **environment,
    }
    return subprocess.run(
        [sys.executable, "-m", "orchestrator"],
        cwd=REPOSITORY,
        env={name: value for name, value in settings.items() if value != "unset"},
        capture_output=True,
        text=True,
        timeout=30,
    )


@pytest.mark.parametrize(
    ("environment", "says"),
    [
        ({"HOSTBENCH_API_KEY": "unset"}, "HOSTBENCH_API_KEY_FILE is not set"),
        ({"HOSTBENCH_API_KEY": "short"}, "HOSTBENCH_API_KEY has 5 characters, 16 are the least"),
        ({"HOSTBENCH_SERVICE_KEY": "unset"}, "HOSTBENCH_SERVICE_KEY_FILE is not set"),
        ({"HOSTBENCH_API_KEY_FILE": "/nowhere"}, "cannot read HOSTBENCH_API_KEY_FILE /nowhere"),
        ({"HOSTBENCH_REDIS_URL": "localhost:6379"}, "HOSTBENCH_REDIS_URL 'localhost:6379' is not"),
        (
            {"HOSTBENCH_REDIS_URL": "redis://a:b"},
            "HOSTBENCH_REDIS_URL 'redis://a:b' is not a URL with redis://, rediss:// or unix://; "
            "write it like redis://name:port",
        ),
        (
            {
                "HOSTBENCH_INFLUXDB_URL": "http://localhost:8086",
                "HOSTBENCH_INFLUXDB_PASSWORD_FILE": "/nowhere",
            },
            "cannot read HOSTBENCH_INFLUXDB_PASSWORD_FILE /nowhere",
        ),
        ({"HOSTBENCH_INFLUXDB_URL": "influx:8086"}, "write it like http://name:port"),
        (
            {"HOSTBENCH_INFLUXDB_URL": "http://hostbench:PASSWORD@influxdb:8086"},
            "HOSTBENCH_INFLUXDB_URL has a user or password in it; give those by",
        ),
        ({"HOSTBENCH_REDIS_URL": "rediss//:PASSWORD@redis"}, "HOSTBENCH_REDIS_URL is not a URL"),
        ({"HOSTBENCH_LISTEN": "8000"}, "HOSTBENCH_LISTEN '8000' is not an address"),
        ({"HOSTBENCH_LISTEN": "127.0.0.1:99999"}, "HOSTBENCH_LISTEN '127.0.0.1:99999' is not"),
        ({"HOSTBENCH_LISTEN": "0.0.0.0:8000"}, "HOSTBENCH_LISTEN '0.0.0.0' is reachable from"),
        ({"HOSTBENCH_BIND": "192.168.1.5"}, "HOSTBENCH_BIND '192.168.1.5' is reachable from"),
        ({"HOSTBENCH_BIND": "bench.example"}, "HOSTBENCH_BIND 'bench.example' is reachable from"),
        (
            {"HOSTBENCH_CA_FILE": "/nowhere"},
            "certificates of /nowhere: No such file",
        ),
        ({"HOSTBENCH_TLS_CERT_FILE": "/etc/hostname"}, "HOSTBENCH_TLS_KEY_FILE is not set"),
        (
            {"HOSTBENCH_TLS_CERT_FILE": "/etc/hostname", "HOSTBENCH_TLS_KEY_FILE": "/etc/hostname"},
            "/etc/hostname and /etc/hostname are not a certificate and its key",
        ),
        ({"HOSTBENCH_RESULTS": "/proc/results"}, "HOSTBENCH_RESULTS /proc/results cannot be made"),
        ({"HOSTBENCH_LISTEN": "203.0.113.1:80", "HOSTBENCH_BIND": "127.0.0.1"}, "cannot listen at"),
    ],
)
@pytest.mark.sampled(5)
def test_what_is_wrong_is_reported_in_one_line(
    tmp_path: Path, environment: dict[str, str], says: str
) -> None:
    ended = started(tmp_path, **environment)
    assert ended.returncode in (2, 3)
    last = ended.stderr.splitlines()[-1]
    assert last.startswith("orchestrator: ") and says in last, ended.stderr
    assert "Traceback" not in ended.stderr and "PASSWORD@" not in ended.stderr


def test_without_a_url_its_password_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOSTBENCH_INFLUXDB_PASSWORD_FILE", "/nowhere")
    monkeypatch.setenv("HOSTBENCH_REDIS_PASSWORD_FILE", "/nowhere")
    assert InfluxSettings.from_environment().influxdb_password.get_secret_value() == ""
    assert RedisSettings.from_environment().redis_password is None
    url = Option("the address of InfluxDB", "http://localhost:8086")
    with pytest.raises(ResourceError, match="HOSTBENCH_INFLUXDB_PASSWORD_FILE /nowhere"):
        InfluxSettings.from_environment(influxdb_url=url)
    monkeypatch.setenv("HOSTBENCH_REDIS_URL", "redis://localhost:6379")
    with pytest.raises(ResourceError, match="HOSTBENCH_REDIS_PASSWORD_FILE /nowhere"):
        RedisSettings.from_environment()
