"""scripts/system-packages.sh, in a directory of its own with an apt-get and a sudo that only note
how they were called."""

import fcntl
import os
import pty
import shutil
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ["bash", "cat", "dirname", "env", "grep", "mkdir", "sleep", "tail", "wc"]
PACKAGES = """
run     | present | is there        | true
run     | lacking | shows the list  | test -e lacking.installed
develop | other   | is not needed | test -e other.installed || false # has a |
"""
GROUPS = {"run", "wheel", "develop", "peers", "stack", "browser", "cluster", "guest"}
# "apt-get install" makes the proofs of packages.txt hold.
APT_GET = """
echo "apt-get $*" >>calls
echo "frontend=$DEBIAN_FRONTEND proxy=$http_proxy" >>environment
[ "$1" = install ] && touch lacking.installed other.installed
exit 0
"""
INSTALLED = [
    "apt-get update",
    "apt-get install --yes --no-install-recommends lacking",
]


class Machine:
    """A machine that lacks one package of the group `run` and one of `develop`."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "bin"
        (directory / "scripts").mkdir()
        self.bin.mkdir()
        for name in ("system-packages.sh", "step.sh"):
            shutil.copy(ROOT / "scripts" / name, directory / "scripts")
        (directory / "scripts/packages.txt").write_text(PACKAGES)
        for tool in TOOLS:
            real = shutil.which(tool)
            assert real is not None
            (self.bin / tool).symlink_to(real)
        self.program("touch", ': >"$1"; : >"${2:-$1}"')
        self.program("apt-get", APT_GET)
        self.user(0)

    def program(self, name: str, script: str) -> None:
        path = self.bin / name
        path.write_text(f"#!/bin/bash\n{script}\n")
        path.chmod(0o755)

    def user(self, uid: int, *, sudo: bool = False) -> None:
        self.program("id", f"echo {uid}")
        if sudo:
            self.program(
                "sudo",
                'echo "sudo" >>calls; while [[ $1 == -* ]]; do shift; done; exec "$@"',
            )

    def calls(self) -> list[str]:
        path = self.directory / "calls"
        return path.read_text().splitlines() if path.exists() else []

    def run(self, *groups: str, **variables: str) -> subprocess.CompletedProcess[str]:
        """Without a terminal, not even the one that the tests were started from."""
        return subprocess.run(
            [self.directory / "scripts/system-packages.sh", *groups],
            env={"PATH": str(self.bin), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            start_new_session=True,
        )

    def run_on_terminal(self, answer: str) -> tuple[int, str]:
        ours, theirs = pty.openpty()
        child = subprocess.Popen(
            [self.directory / "scripts/system-packages.sh", "run"],
            env={"PATH": str(self.bin)},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(theirs, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        os.write(ours, answer.encode())
        output = read_all(ours)
        return child.wait(), output


def read_all(terminal: int) -> str:
    output = b""
    while True:
        try:
            output += os.read(terminal, 4096)
        except OSError:  # EIO: the last process has closed its end
            os.close(terminal)
            return output.decode()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_nothing_missing_says_nothing_and_needs_no_rights(machine: Machine) -> None:
    machine.user(1000)
    (machine.directory / "lacking.installed").touch()
    result = machine.run("run")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_root_installs_what_is_missing_and_says_why(machine: Machine) -> None:
    result = machine.run("run", http_proxy="http://proxy.example:3128")
    assert result.returncode == 0
    assert machine.calls() == INSTALLED
    listed, installing = result.stdout.split("==>", 1)
    assert "lacking" in listed and "shows the list" in listed
    assert "present" not in result.stdout and "other" not in result.stdout
    assert "apt-get install lacking" in installing
    environment = (machine.directory / "environment").read_text()
    assert "frontend=noninteractive proxy=http://proxy.example:3128" in environment


def test_all_groups_are_installed_at_once(machine: Machine) -> None:
    assert machine.run("run", "develop").returncode == 0
    assert machine.calls()[-1].endswith(" lacking other")


def test_yes_goes_ahead_with_sudo(machine: Machine) -> None:
    machine.user(1000, sudo=True)
    assert machine.run("run", YES="1").returncode == 0
    assert [call for call in machine.calls() if call != "sudo"][1:] == INSTALLED
    assert machine.calls().count("sudo") == 3


def without_apt(machine: Machine) -> None:
    (machine.bin / "apt-get").unlink()


def without_sudo(machine: Machine) -> None:
    machine.user(1000)


def with_sudo_that_refuses(machine: Machine) -> None:
    machine.user(1000, sudo=True)
    machine.program("sudo", "echo 'sudo: a password is required' >&2; exit 1")


@pytest.mark.parametrize("lack", [without_apt, without_sudo, with_sudo_that_refuses])
def test_without_apt_or_rights_one_message_has_the_list(
    machine: Machine, lack: Callable[[Machine], None]
) -> None:
    lack(machine)
    result = machine.run("run", YES="1")
    assert result.returncode == 3
    assert "shows the list" in result.stdout
    assert result.stderr.count("hostbench:") == 1
    assert "apt-get install --no-install-recommends lacking\n" in result.stderr


def test_without_terminal_it_does_not_ask(machine: Machine) -> None:
    machine.user(1000, sudo=True)
    result = machine.run("run")
    assert result.returncode == 3
    assert "YES=1" in result.stderr
    assert machine.calls() == []


@pytest.mark.parametrize(("answer", "status"), [("\n", 0), ("y\n", 0), ("n\n", 3), ("\x04", 3)])
def test_on_a_terminal_it_asks_once(machine: Machine, answer: str, status: int) -> None:
    machine.user(1000, sudo=True)
    returncode, output = machine.run_on_terminal(answer)
    assert returncode == status, output
    assert output.count("[Y/n]") == 1
    assert bool(machine.calls()) == (status == 0)


def test_waits_while_another_apt_holds_a_lock(machine: Machine) -> None:
    machine.program(
        "apt-get",
        """[ -e waited ] || { : >waited; echo "E: Could not get lock /var/lib/apt"; exit 100; }"""
        + APT_GET,
    )
    result = machine.run("run")
    assert result.returncode == 0
    assert machine.calls() == INSTALLED
    assert result.stdout.count("another apt-get is at work") == 1


def test_broken_source_does_not_stop_the_installation(machine: Machine) -> None:
    machine.program("apt-get", '[ "$1" = update ] && { echo "E: no key"; exit 100; }' + APT_GET)
    result = machine.run("run")
    assert result.returncode == 0
    assert "E: no key" in result.stderr


def test_failure_shows_what_apt_printed(machine: Machine) -> None:
    machine.program("apt-get", 'echo "E: Unable to locate package $4"; exit 100')
    result = machine.run("run")
    assert result.returncode == 1
    assert "E: Unable to locate package lacking" in result.stderr
    assert "build/system-packages.log" in result.stderr


def test_says_so_when_a_package_does_not_help(machine: Machine) -> None:
    machine.program("apt-get", "exit 0")
    result = machine.run("run")
    assert result.returncode == 3
    assert "lacking" in result.stderr and "Debian 12" in result.stderr


def test_every_package_has_group_reason_and_proof() -> None:
    lines = (ROOT / "scripts/packages.txt").read_text().splitlines()
    rows = [line.split("|", 3) for line in lines if line and not line.startswith("#")]
    for group, package, why, proof in rows:
        assert group.strip() in GROUPS
        assert package.strip() and why.strip() and proof.strip()
