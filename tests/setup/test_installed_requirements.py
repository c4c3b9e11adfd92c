"""Each requirements file is enough for what it promises: in a virtual environment that has its
packages and no others, every module imports and every command runs."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import typer

from hostbench.base.exitcode import ExitCode
from hostbench.cli.app import app
from tests.patience import PATIENCE_S, comes_true
from tests.stack.ports import free_port

pytestmark = pytest.mark.exhaustive  # three virtual environments

ROOT = Path(__file__).parents[2]
KEY = "k" * 64
NOWHERE = "http://127.0.0.1:1"
JOB = "20261120T000000Z-quick-0000"
# What a file promises to import; all of a package but what matches the pattern.
IMPORTED = {
    "cli": (
        "hostbench services",
        r"hostbench\.(service|web|fleet\.kubernetes)\b|hostbench\.docs|services\.\w+\.app",
    ),
    "service": ("hostbench.service hostbench.web services", r"services\.\w+\.report"),
    "orchestrator": (
        "orchestrator hostbench.course hostbench.page hostbench.report hostbench.web services",
        r"$.^",
    ),
}
IMPORT_ALL = """
import importlib, pkgutil, re, sys

packages, left_out = sys.argv[1].split(), re.compile(sys.argv[2])
for package in packages:
    module = importlib.import_module(package)
    for found in pkgutil.walk_packages(module.__path__, f"{package}.", onerror=lambda name: None):
        if not re.search(r"[.]tests\\b|__main__|[.]bench\\b|[.]kernels\\b|[.]fuzz\\b", found.name):
            if not left_out.match(found.name):
                importlib.import_module(found.name)
print(len(sys.modules))
"""
SMALL = ("--workload=cpu.clock", "--param=threads=1", "--param=duration_s=0.05", "--trials=1")
# In this order: those after `run` look at its job.
COMMANDS: tuple[tuple[str, tuple[str, ...], ExitCode], ...] = (
    ("run", (*SMALL, "--peers=none", "--idle-policy=force"), ExitCode.OK),
    ("plan", (*SMALL, "--peers=none"), ExitCode.OK),
    ("list", ("workloads",), ExitCode.OK),
    ("show", ("latest", "--csv", "--samples"), ExitCode.OK),
    ("report", ("latest",), ExitCode.OK),
    ("report", ("latest", "--format=markdown"), ExitCode.OK),
    # One job on both sides: what two jobs of this host would say is not certain.
    ("compare", ("latest", "latest"), ExitCode.USAGE),
    ("history", ("nothing",), ExitCode.USAGE),
    ("baseline", ("list",), ExitCode.OK),
    ("ab", ("--workload=cpu.clock", "--a=threads=1", "--blocks=7"), ExitCode.USAGE),
    ("doctor", (), ExitCode.OK),
    ("verify", ("--for=1s", "--subsystem=cpu"), ExitCode.OK),
    ("fleet", ("schedule", "a", "b"), ExitCode.OK),
    # Kubernetes takes a package more.
    ("fleet", ("list",), ExitCode.RESOURCE),
    ("submit", ("quick",), ExitCode.UNREACHABLE),
    ("jobs", (), ExitCode.UNREACHABLE),
    ("job", (JOB,), ExitCode.UNREACHABLE),
    ("cancel", (JOB,), ExitCode.UNREACHABLE),
    ("resume", (JOB,), ExitCode.UNREACHABLE),
    ("hosts", (), ExitCode.UNREACHABLE),
    ("console", (), ExitCode.UNREACHABLE),
    ("watch", (JOB,), ExitCode.UNREACHABLE),
    ("result", (JOB,), ExitCode.UNREACHABLE),
)


@dataclass(frozen=True)
class Installed:
    """A virtual environment with the packages of one requirements file, and a directory for what
    its commands write."""

    python: Path
    directory: Path

    def environment(self, more: Mapping[str, str]) -> dict[str, str]:
        """Of its processes."""
        return {
            "PATH": os.environ["PATH"],
            "HOSTBENCH_PROGRAMS": str(ROOT / "build/release"),
            "HOSTBENCH_SUITES": str(ROOT / "suites"),
            "HOSTBENCH_RESULTS": str(self.directory / "results"),
            "HOSTBENCH_LOCK": str(self.directory / "hostbench.lock"),
            "HOSTBENCH_URL": NOWHERE,
            "HOSTBENCH_API_KEY": KEY,
            "HOSTBENCH_SERVICE_KEY": KEY,
            **more,
        }

    def run(self, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run Python with these arguments."""
        return subprocess.run(
            [self.python, *arguments],
            cwd=self.directory,
            env=self.environment(more),
            capture_output=True,
            text=True,
            timeout=60,
        )

    @property
    def log(self) -> str:
        """What the last server wrote."""
        return (self.directory / "log").read_text()

    def serves(self, *module: str, **more: str) -> None:
        """Start a server, wait until it answers, and end it. Fails when it does not do so."""
        port = free_port()
        more["HOSTBENCH_LISTEN"] = f"127.0.0.1:{port}"
        with (
            (self.directory / "log").open("w+") as log,
            subprocess.Popen(
                [self.python, "-m", *module],
                cwd=self.directory,
                env=self.environment(more),
                stdout=log,
                stderr=log,
            ) as process,
        ):

            def answers() -> bool:
                try:
                    return httpx.get(f"http://127.0.0.1:{port}/healthz").status_code > 0
                except httpx.TransportError:
                    return process.poll() is not None

            try:
                assert comes_true(answers, PATIENCE_S) and process.poll() is None, self.log
            finally:
                process.send_signal(signal.SIGTERM)
            assert process.wait(PATIENCE_S) == 0, self.log


def install(requirements: str, directory: Path) -> Installed:
    """Make a virtual environment that has the packages of this file and the code of this checkout,
    which a .pth file leads to, as in the images."""
    uv = [sys.executable, "-m", "uv", "--quiet"]
    python = directory / "venv/bin/python"
    locked = ROOT / f"requirements/{requirements}.txt"
    subprocess.run([*uv, "venv", "--python", sys.executable, directory / "venv"], check=True)
    subprocess.run(
        [*uv, "pip", "install", "--python", python, "--require-hashes", "--requirement", locked],
        check=True,
    )
    (packages,) = directory.glob("venv/lib/python3*/site-packages")
    (packages / "hostbench.pth").write_text(f"{ROOT}\n")
    return Installed(python, directory)


@pytest.fixture(scope="module")
def cli(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install("cli", tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install("service", tmp_path_factory.mktemp("service"))


@pytest.fixture(scope="module")
def orchestrator(tmp_path_factory: pytest.TempPathFactory) -> Installed:
    return install("orchestrator", tmp_path_factory.mktemp("orchestrator"))


@pytest.mark.parametrize("name", IMPORTED)
def test_every_module_imports(name: str, request: pytest.FixtureRequest) -> None:
    installed: Installed = request.getfixturevalue(name)
    ended = installed.run("-c", IMPORT_ALL, *IMPORTED[name])
    assert ended.returncode == 0, ended.stderr


def test_every_command_runs(cli: Installed) -> None:
    """Those of the stack as far as an orchestrator that is not there."""
    wrong = []
    for name, arguments, code in COMMANDS:
        ended = cli.run("-m", "hostbench", name, *arguments)
        if ended.returncode != code or "Traceback" in ended.stderr:
            wrong.append(f"{name} {arguments}: {ended.returncode}: {ended.stderr}")
    assert wrong == []
    known = typer.main.get_command(app)
    assert isinstance(known, typer.core.TyperGroup)
    assert set(known.commands) == {name for name, _, _ in COMMANDS}


@pytest.mark.parametrize("name", ["cli", "orchestrator"])
def test_the_commands_for_influxdb(name: str, request: pytest.FixtureRequest) -> None:
    """The packages of the command line are enough for them."""
    installed: Installed = request.getfixturevalue(name)
    (installed.directory / "results").mkdir(exist_ok=True)
    for command in (("reindex", f"--url={NOWHERE}"), ("check", NOWHERE)):
        ended = installed.run("-m", f"orchestrator.influx.{command[0]}", *command[1:])
        assert ended.returncode == 1
        assert "does not answer" in ended.stdout + ended.stderr, ended.stderr


@pytest.mark.parametrize(
    ("requirements", "package", "module", "environment"),
    [
        ("orchestrator", "structlog", ("orchestrator",), {"HOSTBENCH_REDIS_URL": "redis://x:1/0"}),
        ("orchestrator", "redis", ("orchestrator.influx.reindex", f"--url={NOWHERE}"),
         {"HOSTBENCH_REDIS_URL": "redis://127.0.0.1:1/0"}),
        ("service", "structlog", ("hostbench.service", "cpu"), {}),
    ],
)  # fmt: skip
def test_a_missing_package_is_named_with_the_remedy(
    cli: Installed,
    requirements: str,
    package: str,
    module: tuple[str, ...],
    environment: dict[str, str],
) -> None:
    (cli.directory / "results").mkdir(exist_ok=True)
    ended = cli.run("-m", *module, **environment)
    assert ended.returncode == ExitCode.RESOURCE, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert re.search(
        rf"the Python package (\w+) is missing; .* -r requirements/{requirements}\.txt", line
    )
    assert f"package {package} " in line


def test_a_service_serves(service: Installed) -> None:
    service.serves("hostbench.service", "cpu")


def test_the_orchestrator_serves(orchestrator: Installed) -> None:
    orchestrator.serves("orchestrator", HOSTBENCH_REDIS_URL="redis://127.0.0.1:1/0")
