"""A real Slurm on this machine: munged, slurmctld and several slurmd, each a node of its own.

Everything is in one directory and ends with the context: the daemons, and whatever jobs are left.
"""

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.faults.command import CHECKOUT, PROGRAMS
from tests.patience import comes_true, wait_until

NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel", "sinfo")
# Daemons are in directories that not every user's PATH names.
DAEMONS = ("/usr/sbin", "/sbin")
REMEDY = "install Slurm: apt install slurm-wlm munge (make packages of the group cluster)"
CLUSTER = "hostbench-test"
PARTITION = "all"
# Without accounts Slurm takes any QOS for one that exists: its plugin for Lua refuses others than
# this one, as Slurm itself does where it keeps accounts.
QOS = "high"
JOB_SUBMIT = f"""
function slurm_job_submit(job, partitions, user)
    if job.qos == nil or job.qos == "{QOS}" then return slurm.SUCCESS end
    return 2066 -- ESLURM_INVALID_QOS
end
function slurm_job_modify(job, record, partitions, user) return slurm.SUCCESS end
return slurm.SUCCESS
"""
KEY_BYTES = 128


def require_slurm() -> None:
    """Skip, or fail where HOSTBENCH_CLUSTER=required, without the programs."""
    missing = [name for name in NEEDED if _find(name) is None]
    if not missing:
        return
    reason = f"{', '.join(missing)} missing; {REMEDY}"
    if os.environ.get("HOSTBENCH_CLUSTER") == "required":
        pytest.fail(reason)
    pytest.skip(reason)


def _find(name: str) -> str | None:
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), *DAEMONS]))


class Slurm:
    """`nodes` nodes of this machine's CPUs, node1 and so on, in the partition `all`.
    `topology`: the text of topology.conf."""

    def __init__(self, directory: Path, nodes: int = 4, topology: str = "") -> None:
        self.directory = directory
        self.nodes = tuple(f"node{index}" for index in range(1, nodes + 1))
        self.topology = topology
        self.shared = directory / "shared"
        self.shared.mkdir(parents=True)
        self.configuration = directory / "slurm.conf"
        self.environment = os.environ | {"SLURM_CONF": str(self.configuration)}
        self._daemons: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []

    def __enter__(self) -> "Slurm":
        try:
            self._start()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_exception: object) -> None:
        self._end()

    def _start(self) -> None:
        key, munge = self.directory / "munge.key", self.directory / "munge.socket"
        key.write_bytes(os.urandom(KEY_BYTES))
        key.chmod(0o400)
        self._write_configuration(munge)
        self._daemon(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={munge}",
            f"--pid-file={self.directory / 'munged.pid'}",
            f"--seed-file={self.directory / 'munged.seed'}",
            f"--log-file={self.directory / 'munged.own.log'}",
        )  # fmt: skip
        wait_until(munge.exists, self.logs)
        self._controller = self._daemon("slurmctld", "-D", "-f", str(self.configuration))
        for node in self.nodes:
            self._daemon("slurmd", "-D", "-N", node, "-f", str(self.configuration))
        wait_until(self._all_idle, self.logs)

    def _write_configuration(self, munge: Path) -> None:
        user, cpus = getpass.getuser(), os.cpu_count()
        first = _free_ports(len(self.nodes) + 1)
        ports = f"{first + 1}-{first + len(self.nodes)}"
        for node in self.nodes:
            (self.directory / node).mkdir()
        (self.directory / "state").mkdir()
        (self.directory / "topology.conf").write_text(self.topology)
        (self.directory / "job_submit.lua").write_text(JOB_SUBMIT)
        self.configuration.write_text(f"""\
ClusterName={CLUSTER}
SlurmctldHost={socket.gethostname()}(127.0.0.1)
SlurmctldPort={first}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
StateSaveLocation={self.directory}/state
SlurmdSpoolDir={self.directory}/%n
SlurmctldPidFile={self.directory}/slurmctld.pid
SlurmdPidFile={self.directory}/%n/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
TopologyPlugin=topology/{"tree" if self.topology else "none"}
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
SchedulerParameters=bf_interval=1,sched_min_interval=0
JobSubmitPlugins=lua
KillWait=5
NodeName=node[1-{len(self.nodes)}] NodeHostname=localhost NodeAddr=127.0.0.1 \
Port=[{ports}] CPUs={cpus} State=UNKNOWN
PartitionName={PARTITION} Nodes=ALL Default=YES MaxTime=INFINITE State=UP
""")

    def _daemon(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        program = _find(name)
        assert program is not None
        log = (self.directory / f"{name}.{len(self._daemons)}.log").open("wb")
        self._logs.append(log)
        daemon = subprocess.Popen(
            [program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=self.environment,
            cwd=self.directory,
        )
        self._daemons.append(daemon)
        return daemon

    @contextlib.contextmanager
    def settings(self, text: str) -> Iterator[None]:
        """Let all daemons read more lines of slurm.conf for a while."""
        before = self.configuration.read_text()
        try:
            self.configuration.write_text(f"{before}{text}\n")
            self.run("scontrol", "reconfigure")
            yield
        finally:
            self.configuration.write_text(before)
            self.run("scontrol", "reconfigure")

    def resume(self) -> None:
        """Bring back the nodes that start nothing."""
        for line in self.run("sinfo", "-h", "-N", "-o", "%N %T").splitlines():
            node, state = line.split()
            if state.startswith(("down", "drain")):
                self.run("scontrol", "update", f"NodeName={node}", "State=RESUME")

    def forget(self) -> None:
        """Start the controller anew, without any state: it knows no job any more."""
        self._controller.terminate()
        self._controller.wait()
        self._daemons.remove(self._controller)
        self._controller = self._daemon("slurmctld", "-D", "-c", "-f", str(self.configuration))
        wait_until(self._all_idle, self.logs)

    def _all_idle(self) -> bool:
        with contextlib.suppress(subprocess.CalledProcessError):
            return self.run("sinfo", "-h", "-N", "-o", "%T").split() == ["idle"] * len(self.nodes)
        return False

    def logs(self) -> str:
        """The ends of the daemons' logs, for a test that failed."""
        return "\n".join(
            f"{path.name}: {path.read_text(errors='replace')[-500:]}"
            for path in sorted(self.directory.glob("*.log"))
        )

    def run(self, *arguments: str) -> str:
        """Run one of Slurm's commands; return its output."""
        return subprocess.run(
            arguments, check=True, capture_output=True, text=True, env=self.environment
        ).stdout

    def processes(self) -> Iterator[int]:
        """What was started here or by a job and lives: the configuration is in its environment."""
        mark = f"SLURM_CONF={self.configuration}".encode()
        for entry in Path("/proc").glob("[0-9]*"):
            pid = int(entry.name)
            with contextlib.suppress(OSError):
                if pid != os.getpid() and mark in (entry / "environ").read_bytes().split(b"\0"):
                    yield pid

    def _end(self) -> None:
        # The nodes first, munged last: a slurmd ends without asking anybody.
        for daemon in reversed(self._daemons):
            daemon.terminate()
        until_s = time.monotonic() + 10
        for daemon in self._daemons:
            try:
                daemon.wait(max(0.1, until_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        for log in self._logs:
            log.close()
        # A step's slurmstepd and the programs below it are children of no process here.
        for pid in self.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        assert comes_true(lambda: not list(self.processes())), list(self.processes())


@contextlib.contextmanager
def running(directory: Path, nodes: int, topology: str = "") -> Iterator[Slurm]:
    """A Slurm that engines of this process use."""
    require_slurm()
    with Slurm(directory, nodes, topology) as one, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(one.configuration))
        patch.setenv("HOSTBENCH_PROGRAMS", str(PROGRAMS))
        # All nodes are this host: one lock, as on a host with several jobs.
        patch.setenv("HOSTBENCH_LOCK", str(directory / "host.lock"))
        patch.setenv("PYTHONPATH", str(CHECKOUT))
        yield one


def _free_ports(count: int) -> int:
    """The first of so many neighbouring ports that nothing listens at."""
    for first in range(20_000 + os.getpid() % 1000 * 20, 60_000, count):
        with contextlib.ExitStack() as held, contextlib.suppress(OSError):
            for port in range(first, first + count):
                one = held.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                one.bind(("127.0.0.1", port))
            return first
    raise AssertionError("no ports are free")
