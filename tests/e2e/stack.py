"""The stack of compose.yaml in a project of its own, with keys, ports and volumes of its own."""

import contextlib
import itertools
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostbench.model.registry import subsystem_names
from tests.stack import influx_server, redis_server
from tests.stack.ports import free_port

ROOT = Path(__file__).parents[2]
# Redis, InfluxDB and Grafana come from a registry; where none is reached, tests have the first two.
PULL_S = 300
REGISTRY = ("redis", "influxdb", "grafana")
BENCHMARKS = subsystem_names()
BUILT = ("orchestrator", *BENCHMARKS)
HOST = "e2e-host"
# More than any host has: no figure may be above it.
MEMORY_BANDWIDTH = 1e14
# In the path of the run-time directory of every engine that docker-engine.sh starts.
STARTED_HERE = b"/hostbench-docker-"


def engine_environment() -> dict[str, str] | None:
    """What leads to a Docker Engine, or None where there is none."""
    printed = subprocess.run(
        [
            "bash",
            "-c",
            'environment=$(scripts/docker-engine.sh env) && eval "$environment" && env -0',
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if printed.returncode != 0:
        return None
    return dict(line.split("=", 1) for line in printed.stdout.split("\0") if "=" in line)


@dataclass
class Stack:
    """One Compose project. `directory` holds its .env and secrets/."""

    directory: Path
    engine: Mapping[str, str]
    from_registry: bool = False
    settings: dict[str, str] = field(default_factory=dict)
    overlays: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        subprocess.run(
            [ROOT / "scripts/make-env.sh", self.directory],
            env={**os.environ, "HOSTBENCH_HOST": HOST},
            check=True,
            stdout=subprocess.DEVNULL,
        )
        self.project = f"hostbench-e2e-{os.getpid()}"
        self.settings |= {
            "COMPOSE_PROJECT_NAME": self.project,
            "COMPOSE_PROGRESS": "plain",
            "HOSTBENCH_HOST": HOST,
            # The images that somebody works with here stay as they are.
            "HOSTBENCH_TAG": self.project,
            "HOSTBENCH_SECRETS": str(self.directory / "secrets"),
            "HOSTBENCH_MEMORY_BANDWIDTH": f"{MEMORY_BANDWIDTH:g}",
            # What is written here is small, however little is free.
            "HOSTBENCH_DISK_RESERVE_BYTES": "0",
            # The net service, in the host's network, is to know which.
            "HOSTBENCH_PORT": str(free_port()),
            # Whichever is free when it starts.
            "HOSTBENCH_GRAFANA_PORT": "0",
            "HOSTBENCH_TEST_SERVERS": str(self._servers()),
        }
        authorities = Path(os.environ.get("SSL_CERT_FILE", "/nowhere"))
        if authorities.exists():
            self.settings["HOSTBENCH_CA_BUNDLE"] = str(authorities)

    def _servers(self) -> Path:
        """The directory of the servers that tests have of their own, for images: one a service,
        empty where there is none."""
        servers = self.directory / "servers"
        for name, program in (
            ("redis", redis_server.program()),
            ("influxdb", influx_server.SHIPPED_PROGRAM),
        ):
            (servers / name).mkdir(parents=True)
            if program.exists() and program != redis_server.DISTRIBUTION_PROGRAM:
                shutil.copy(program, servers / name)
        return servers

    @property
    def services(self) -> set[str]:
        """Those that run."""
        return {*BUILT, *REGISTRY} - (set() if self.from_registry else {"grafana"})

    @property
    def url(self) -> str:
        """Where the API is since the last start."""
        scheme = "https" if self.settings.get("HOSTBENCH_TLS") else "http"
        return f"{scheme}://{self.compose('port', 'orchestrator', '8000').strip()}"

    def secret(self, name: str) -> str:
        """What stands in a file of secrets/."""
        return (self.directory / "secrets" / name).read_text().strip()

    def docker(self, *arguments: str | Path, **options: Any) -> str:
        """What a docker command prints."""
        ended = subprocess.run(
            ["docker", *arguments],
            cwd=ROOT,
            env={**self.engine, **self.settings},
            capture_output=True,
            text=True,
            **options,
        )
        assert ended.returncode == 0, f"docker {arguments}: {ended.stdout}{ended.stderr}"
        output: str = ended.stdout
        return output

    def _compose_files(self) -> list[str]:
        replaced = [] if self.from_registry else ["tests/e2e/compose.test.yaml"]
        return ["compose.yaml", *replaced, *self.overlays]

    def compose(self, *arguments: str | Path, **options: Any) -> str:
        """What a docker compose command prints."""
        files = itertools.chain.from_iterable(("--file", file) for file in self._compose_files())
        settings = ("--env-file", self.directory / ".env")
        return self.docker("compose", *settings, *files, *arguments, **options)

    def backup(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """A run of scripts/backup.sh on this project."""
        project = {
            "COMPOSE_FILE": ":".join(self._compose_files()),
            "COMPOSE_ENV_FILES": str(self.directory / ".env"),
        }
        return subprocess.run(
            [ROOT / "scripts/backup.sh", *arguments],
            env={**self.engine, **self.settings, **project},
            capture_output=True,
            text=True,
        )

    def far_compose(self, directory: Path, *arguments: str, **settings: str) -> str:
        """What docker compose prints of the net service alone, with the .env and secrets/ that
        `make farhost` has made and that were unpacked in `directory`."""
        self.settings, before = {**self.settings, **settings}, self.settings
        self.settings |= {
            "COMPOSE_PROJECT_NAME": f"{self.project}-far",
            "HOSTBENCH_SECRETS": str(directory / "secrets"),
        }
        del self.settings["HOSTBENCH_HOST"]
        try:
            files = ("--env-file", directory / ".env", "--file", "compose.peer.yaml")
            return self.docker("compose", *files, *arguments)
        finally:
            self.settings = before

    def pull(self) -> None:
        """Take the images of others from their registry if it is reached."""
        self.from_registry = True
        try:
            self.compose("pull", "--quiet", *REGISTRY, timeout=PULL_S)
        except (AssertionError, subprocess.TimeoutExpired):
            self.from_registry = False

    def keeps_layers(self) -> bool:
        """Whether the engine has layers that earlier builds made, or does not tell."""
        try:
            output = self.docker("system", "df", "--format", "{{.Type}}={{.TotalCount}}")
        except AssertionError:
            return True
        return "Build Cache=0" not in output.splitlines()

    def up(self) -> float:
        """Start what is built. Return the seconds until all of it is healthy."""
        began_s = time.monotonic()
        try:
            self.compose("up", "--detach", "--wait", "--wait-timeout", "120")
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.compose('logs', '--no-color')}") from None
        return time.monotonic() - began_s

    @contextlib.contextmanager
    def with_overlay(self, overlay: str, service: str) -> Iterator[None]:
        """Run the stack with an image of one service that another Compose file makes."""
        self.overlays.append(overlay)
        try:
            self.compose("build", "--quiet", service)
            self.up()
            yield
        finally:
            made = json.loads(self.compose("config", "--format", "json"))["services"][service]
            self.overlays.remove(overlay)
            self.up()
            self.docker("image", "rm", "--force", made["image"])

    def down(self, *options: str) -> None:
        """Stop all of it."""
        self.compose("down", "--timeout", "20", *options)

    def image(self, service: str) -> str:
        """The name of an image that is built here."""
        return f"hostbench/{service}:{self.project}"

    def remove(self) -> None:
        """Stop all of it and take away what was made for it, but the build cache."""
        self.down("--volumes")
        self.docker("image", "rm", "--force", *map(self.image, BUILT))

    def left(self) -> dict[str, list[str]]:
        """What there is of this project: containers, networks and volumes."""
        label = f"label=com.docker.compose.project={self.project}"
        listings = {
            "containers": ("ps", "--all"),
            "networks": ("network", "ls"),
            "volumes": ("volume", "ls"),
        }
        return {
            name: self.docker(*command, "--quiet", "--filter", label).split()
            for name, command in listings.items()
        }

    def inspected(self, service: str) -> Any:
        """What docker inspect says of its container."""
        container = self.compose("ps", "--all", "--quiet", service).strip()
        return json.loads(self.docker("inspect", container))[0]

    def run_python(self, service: str, code: str, given: object = None) -> Any:
        """Run Python code in a container, whose variable `given` is the object, and return what
        it prints as JSON."""
        prelude = f"import json\ngiven = json.loads({json.dumps(json.dumps(given))})\n"
        output = self.compose("exec", "--no-TTY", service, "python3", "-", input=prelude + code)
        return json.loads(output)


def cpu_seconds(group: Iterable[str]) -> float:
    """What a control group has used of the CPUs, from the lines of a process's /proc/…/cgroup."""
    for line in group:
        _, controllers, path = line.strip().split(":", 2)
        if controllers == "":
            stat = Path(f"/sys/fs/cgroup{path}/cpu.stat")
            if path != "/" and stat.exists():
                return int(stat.read_text().split()[1]) / 1e6
        elif "cpuacct" in controllers.split(",") and path != "/":
            return int(Path(f"/sys/fs/cgroup/cpuacct{path}/cpuacct.usage").read_text()) / 1e9
    raise LookupError("no control group of its own")


def cpu_seconds_of(pid: int) -> float:
    """What the control group of a process has used; the process alone, where it has none."""
    process = Path(f"/proc/{pid}")
    try:
        return cpu_seconds((process / "cgroup").read_text().splitlines())
    except LookupError:
        used_ns = 0
        for task in process.glob("task/*/schedstat"):
            with contextlib.suppress(OSError):  # a thread that ended meanwhile
                used_ns += int(task.read_text().split()[0])
        return used_ns / 1e9


def commands() -> dict[int, bytes]:
    """The command line of every process of this host by its id; those of zombies are empty."""
    found = {}
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # gone meanwhile
            found[int(process.name)] = (process / "cmdline").read_bytes()
    return found


def engine_processes(name: str, engine: Mapping[str, str]) -> list[int]:
    """The processes of a program of the engine that is used: of one that docker-engine.sh started
    those that name its directory, of another one those that name none of such."""
    started = engine.get("DOCKER_HOST", "").removeprefix("unix://").rpartition("/")[0].encode()
    if STARTED_HERE not in started:
        started = b""
    return [
        pid
        for pid, command in commands().items()
        if os.path.basename(command.split(b"\0")[0]) == name.encode()  # noqa: PTH119
        and (started in command if started else STARTED_HERE not in command)
    ]
