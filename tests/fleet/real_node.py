"""A real node of a cluster: a kubelet with containerd on this machine, in namespaces of its own.

Several of them run at once. What a node mounts and sets of the kernel is its own. All its processes
end with it, and its control groups are removed."""

import contextlib
import functools
import json
import os
import select
import shlex
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Self

import yaml
from lightkube.core.exceptions import ApiError

from hostbench.fleet.kubernetes.objects import HOST_LOCK_DIRECTORY
from tests.fleet import cluster as control_plane
from tests.fleet.cluster import PROGRAMS, Cluster
from tests.fleet.image import NAME as IMAGE
from tests.fleet.image import make_image
from tests.patience import wait_until
from tests.stack.ports import free_port

NEEDED = ("containerd", "runc", "ctr", "gcc", "ip", "socat", "unshare")
PLUGINS = Path("/usr/lib/cni")
CGROUPS = Path("/sys/fs/cgroup")
# Known to kubelet, containerd and plugins by these names: each node has its own.
OWN_DIRECTORIES = (
    "/run/containerd",
    "/run/netns",
    "/var/lib/cni",
    "/var/log/containers",
)
# The same, but on a disk: volumes of pods are below it.
KUBELET = "/var/lib/kubelet"
# Kubelet and the plugin for bridges set these. They are the host's, so a node sets a copy of them.
KERNEL_SETTINGS = (
    *("vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops"),
    *("kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes", "net/ipv4/ip_forward"),
)
# The address of a pod ends in one of these, by the number of its node.
FIRST_ADDRESS, ADDRESSES = 16, 48


def unable() -> str | None:
    """Why this machine has no real nodes, whatever is installed; None: it can have them."""
    if os.geteuid() != 0:
        return "real nodes need root"
    if not all(os.access(hierarchy, os.W_OK) for hierarchy in _hierarchies()):
        return f"real nodes make control groups, and {CGROUPS} cannot be written"
    if len(os.sched_getaffinity(0)) < 2:
        return "real nodes need two CPUs: each keeps one for all else"
    spaces = subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], capture_output=True)
    if spaces.returncode != 0:
        return f"real nodes need namespaces: {spaces.stderr.decode().strip()}"
    return None


def missing() -> str | None:
    """What real nodes need and this machine lacks, with the remedy; None: nothing."""
    if not (PLUGINS / "bridge").exists():
        return f"there is no {PLUGINS}/bridge: scripts/system-packages.sh cluster"
    return control_plane.missing(*NEEDED)


class RealNode:
    """One whose pods have all CPUs but `reserved_cpus`; `number`, from 0 on, distinguishes it from
    those of the cluster's other nodes."""

    def __init__(self, cluster: Cluster, name: str, number: int, reserved_cpus: str) -> None:
        self.cluster = cluster
        self.name = name
        self.root = cluster.root / name
        self._number = number
        self._reserved_cpus = reserved_cpus
        self._cgroup = f"hostbench-{os.getpid()}-{name}"
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.root.mkdir()
            for directory in (*OWN_DIRECTORIES, KUBELET):
                Path(directory).mkdir(parents=True, exist_ok=True)
            make_image(self.root / "image.tar")
            self.cluster.add_pod_network()
            lock_directory(self.cluster).mkdir(exist_ok=True)
            lock_directory(self.cluster).chmod(0o1777)
            stack.callback(self._remove_cgroups)
            self._make_cgroups()
            self._configure()
            stack.callback(self._end)
            self.cluster.start(
                self.name, "unshare", "--mount", "--pid", "--fork", "--kill-child",
                "--mount-proc", "bash", self.root / "node.sh",
            )  # fmt: skip
            self.cluster.wait_for_nodes([self.name])
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def _end(self) -> None:
        """Kill all of the node's processes, and forget it."""
        with contextlib.ExitStack() as files:
            first = self._first_process()
            ended = files.enter_context(_process(first)) if first else None
            self.cluster.stop(self.name, signal.SIGKILL)
            if ended is not None:
                # The first process of a namespace ends when all others have.
                select.select([ended], [], [])
        with contextlib.suppress(ApiError):
            self.cluster.delete_node(self.name)

    def _first_process(self) -> int | None:
        outside = self.cluster.pid(self.name)
        children = Path(f"/proc/{outside}/task/{outside}/children")
        # None is left where a Ctrl-C has reached them, too.
        found = children.read_text().split() if children.exists() else []
        return int(found[0]) if found else None

    # ---- files ----

    def _configure(self) -> None:
        self.cluster.make_kubeconfig(
            self.root / "kubeconfig", f"system:node:{self.name}", group="system:nodes"
        )
        (self.root / "kubelet.yaml").write_text(yaml.safe_dump(self._kubelet()))
        (self.root / "containerd.toml").write_text(self._containerd())
        (self.root / "cni").mkdir()
        (self.root / "cni/network.conflist").write_text(json.dumps(self._network()))
        (self.root / "node.sh").write_text(self._script())

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "authentication": {
                "anonymous": {"enabled": False},
                "x509": {"clientCAFile": str(self.cluster.root / "keys/ca.pem")},
            },
            "port": free_port(),
            "healthzPort": 0,
            "failCgroupV1": False,
            "failSwapOn": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self._cgroup}",
            "cpuManagerPolicy": "static",
            "reservedSystemCPUs": self._reserved_cpus,
            "containerRuntimeEndpoint": "unix:///run/containerd/containerd.sock",
            "podLogsDir": str(self.root / "pods"),
            "volumePluginDir": str(self.root / "volumeplugins"),
            # A full disk of this machine is no matter of these tests.
            "evictionHard": {"memory.available": "100Mi"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            # Where a pod's name servers come from: it needs none.
            "resolvConf": "",
        }

    def _containerd(self) -> str:
        return f"""
            version = 2
            root = "{self.root}/containerd"
            [plugins."io.containerd.grpc.v1.cri"]
            sandbox_image = "{IMAGE}"
            # Where this is not the first of all namespaces no process may be made safer.
            restrict_oom_score_adj = true
            [plugins."io.containerd.grpc.v1.cri".cni]
            bin_dir = "{PLUGINS}"
            conf_dir = "{self.root}/cni"
        """

    def _network(self) -> dict[str, Any]:
        first = FIRST_ADDRESS + self._number * ADDRESSES
        addresses = {
            "subnet": self.cluster.address("0/24"),
            "rangeStart": self.cluster.address(str(first)),
            "rangeEnd": self.cluster.address(str(first + ADDRESSES - 1)),
            "gateway": self.cluster.address("1"),
        }
        bridge = {
            "type": "bridge",
            "bridge": self.cluster.bridge,
            "ipam": {
                "type": "host-local",
                "ranges": [[addresses]],
                "routes": [{"dst": "0.0.0.0/0"}],
            },
        }
        return {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}

    def _script(self) -> str:
        root = shlex.quote(str(self.root))
        kernel = "\n".join(
            f'cat /proc/sys/{one} >"$copies/{one.replace("/", "-")}"\n'
            f'mount --bind "$copies/{one.replace("/", "-")}" /proc/sys/{one}'
            for one in KERNEL_SETTINGS
        )
        return f"""
            set -euo pipefail
            for directory in {" ".join(OWN_DIRECTORIES)}; do
                mount -t tmpfs own "$directory"
            done
            mkdir {root}/kubelet
            mount --bind {root}/kubelet {KUBELET}
            mount --bind {shlex.quote(str(lock_directory(self.cluster)))} {HOST_LOCK_DIRECTORY}
            copies={root}/kernel
            mkdir "$copies"
            {kernel}
            containerd --config {root}/containerd.toml >{root}/containerd.log 2>&1 &
            until ctr --namespace k8s.io images import --no-unpack {root}/image.tar \\
                >{root}/import.log 2>&1; do
                kill -0 %1
                sleep 0.1
            done
            {shlex.quote(str(PROGRAMS / "kubelet"))} --config {root}/kubelet.yaml \\
                --kubeconfig {root}/kubeconfig --hostname-override {self.name} &
            # Both or none.
            wait -n
        """

    # ---- control groups ----

    def _make_cgroups(self) -> None:
        for hierarchy in _hierarchies():
            group = hierarchy / self._cgroup
            group.mkdir()
            # Of version 1 a new one has none, and nothing runs in it before it has.
            for file in ("cpuset.cpus", "cpuset.mems"):
                if (group / file).exists() and (hierarchy / "cpuset.cpus").exists():
                    (group / file).write_text((hierarchy / file).read_text())

    def _remove_cgroups(self) -> None:
        for hierarchy in _hierarchies():
            group = hierarchy / self._cgroup
            for directory, _, _ in os.walk(group, topdown=False):
                # The kernel takes a moment to see that the last process is gone.
                wait_until(functools.partial(_removed, Path(directory)))


@contextlib.contextmanager
def two_nodes(cluster: Cluster) -> Iterator[tuple[str, str]]:
    """Two nodes by name: one may not use the first CPU, the other not the second."""
    first, second, *_ = sorted(os.sched_getaffinity(0))
    with (
        RealNode(cluster, "real-0", 0, reserved_cpus=str(first)),
        RealNode(cluster, "real-1", 1, reserved_cpus=str(second)),
    ):
        yield "real-0", "real-1"


def lock_directory(cluster: Cluster) -> Path:
    """Where all nodes of a cluster have the host's lock: they are one host, but what they measure
    keeps no run off this machine, nor is it kept off."""
    return cluster.root / "lock"


def _removed(directory: Path) -> bool:
    try:
        directory.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def _hierarchies() -> list[Path]:
    """Where control groups are made: one directory with version 2, else one a controller."""
    if (CGROUPS / "cgroup.controllers").exists():
        return [CGROUPS]
    return [one for one in CGROUPS.iterdir() if one.is_dir() and not one.is_symlink()]


@contextlib.contextmanager
def _process(pid: int) -> Iterator[int]:
    """A descriptor that can be read when the process has ended."""
    descriptor = os.pidfd_open(pid)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
