"""A real Kubernetes on this machine: etcd, API server, controllers and scheduler, and nodes that
kwok simulates. `real_node.py` adds nodes that run something."""

import contextlib
import os
import shutil
import signal
import ssl
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Self, TypeVar

import yaml
from lightkube import Client, KubeConfig
from lightkube.models.core_v1 import (
    DaemonEndpoint,
    NodeAddress,
    NodeCondition,
    NodeDaemonEndpoints,
    NodeSpec,
    NodeStatus,
    NodeSystemInfo,
    Taint,
)
from lightkube.models.meta_v1 import ObjectMeta
from lightkube.resources.core_v1 import Node, ServiceAccount
from lightkube.types import on_error_retry

from tests.fleet.pod_logs import pod_logs
from tests.patience import PATIENCE_S
from tests.stack.ports import free_port

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = REPOSITORY / "build/kubernetes"
BUILT = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok")
STAGES = (
    PROGRAMS / "stages/node/fast/node-initialize.yaml",
    PROGRAMS / "stages/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml",
    PROGRAMS / "stages/pod/fast/pod-ready.yaml",
    Path(__file__).parent / "pod-complete.yaml",
    Path(__file__).parent / "pod-delete.yaml",
)
# Of a pod on a simulated node: how it ends (pod-complete.yaml). Without an exit code it runs on.
DURATION = "simulated.hostbench.dev/duration"
EXIT_CODE = "simulated.hostbench.dev/exit-code"
MESSAGE = "simulated.hostbench.dev/message"
# Of a node that kwok simulates.
SIMULATED = "kwok.x-k8s.io/node"
NOT_READY = "node.kubernetes.io/not-ready"
CAPACITY = {"cpu": "64", "memory": "256Gi", "pods": "110"}
SYSTEM = NodeSystemInfo(
    architecture="amd64",
    bootID="simulated-boot",
    containerRuntimeVersion="",
    kernelVersion="6.1.0-simulated",
    kubeProxyVersion="",
    kubeletVersion="",
    machineID="",
    operatingSystem="linux",
    osImage="",
    systemUUID="",
)
STOP_S = 20.0
# Locally administered.
BRIDGE_ADDRESS = "02:00:00:00:00:01"
# Debian's etcd lacks what lists by watches need. Who tries them again and again sees a new node ten
# seconds late: no client asks for them, and the API server takes no watch for one.
WITHOUT_WATCH_LISTS = {"KUBE_FEATURE_WatchListClient": "false"}
# As many calls a second as come up: those of a thousand Jobs wait for nothing but the API server.
UNTHROTTLED = ("--kube-api-qps=1000", "--kube-api-burst=2000")

Kind = TypeVar("Kind")


def missing(*programs: str) -> str | None:
    """What a cluster needs and this machine lacks, with the remedy; None: nothing."""
    if any(shutil.which(program) is None for program in ("etcd", "openssl", *programs)):
        return "etcd and what else a cluster needs is missing: scripts/system-packages.sh cluster"
    if not all((PROGRAMS / program).exists() for program in BUILT):
        return "Kubernetes is not built here: scripts/kubernetes.sh builds it in ten minutes"
    return None


class Cluster:
    """One below `root`, on ports of its own. All that it starts ends with it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.kubeconfig = root / "kubeconfig"
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._etcd_port = free_port()
        # Of the pods of real nodes, and as long as a name may be.
        self.bridge = f"hb-{os.getpid()}-{self.port % 1000}"[:15]
        self._has_pod_network = False
        # What pods of simulated nodes have written, by namespace and name; a test sets it.
        self.log_of: Callable[[str, str], str] = lambda namespace, pod: ""
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            stack.callback(self._end_all)
            self._make_keys()
            self._start_etcd()
            self.start_apiserver()
            self.client = stack.enter_context(
                Client(KubeConfig.from_file(self.kubeconfig), trust_env=False)
            )
            self._start_controllers()
            self._log_port = stack.enter_context(self._pod_logs())
            self._start_kwok()
            # Before it is there no pod is let in.
            self.wait_for(ServiceAccount, lambda accounts: "default" in accounts)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *exception: Any) -> None:
        self._stack.__exit__(*exception)

    def _end_all(self) -> None:
        # The last one first: a server ends after its clients. Nothing is to be kept.
        for name in reversed(self._processes):
            self.stop(name, signal.SIGKILL)

    # ---- parts ----

    def start(self, name: str, *command: str | Path) -> subprocess.Popen[bytes]:
        """Start a part of the cluster; its words go to `name`.log below the root."""
        with (self.root / f"{name}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.root,
                # No proxies: all of it is on this machine.
                env={"PATH": os.environ["PATH"], "HOME": str(self.root), **WITHOUT_WATCH_LISTS},
            )
        self._processes[name] = process
        return process

    def stop(self, name: str, how: signal.Signals = signal.SIGTERM) -> None:
        """End a part, if it runs."""
        process = self._processes[name]
        process.send_signal(how)
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def pids(self) -> list[int]:
        """The ids of all processes that it has started and not ended."""
        return [process.pid for process in self._processes.values() if process.poll() is None]

    def pid(self, name: str) -> int:
        """The process id of a part."""
        return self._processes[name].pid

    def memory_mb(self) -> dict[str, float]:
        """What each part has in memory now."""
        found = {}
        for name, process in self._processes.items():
            with contextlib.suppress(FileNotFoundError):
                status = Path(f"/proc/{process.pid}/status").read_text()
                found[name] = int(status.split("VmRSS:")[1].split()[0]) * 1024 / 1e6
        return found

    def _start_etcd(self) -> None:
        peer = f"http://127.0.0.1:{free_port()}"
        own = f"http://127.0.0.1:{self._etcd_port}"
        self.start(
            "etcd", "etcd", "--unsafe-no-fsync", f"--data-dir={self.root / 'etcd'}",
            f"--listen-client-urls={own}", f"--advertise-client-urls={own}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}",
            f"--initial-cluster=default={peer}",
        )  # fmt: skip

    def start_apiserver(self) -> None:
        """Start the API server and wait until it is ready."""
        keys = self.root / "keys"
        process = self.start(
            "apiserver", PROGRAMS / "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd_port}",
            "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1",
            f"--secure-port={self.port}",
            f"--tls-cert-file={keys}/server.pem", f"--tls-private-key-file={keys}/server.key",
            f"--client-ca-file={keys}/ca.pem",
            f"--kubelet-client-certificate={keys}/admin.pem",
            f"--kubelet-client-key={keys}/admin.key",
            "--kubelet-preferred-address-types=InternalIP",
            "--service-account-issuer=https://kubernetes.default.svc",
            f"--service-account-key-file={keys}/accounts.pub",
            f"--service-account-signing-key-file={keys}/accounts.key",
            f"--service-cluster-ip-range={self.address('0/28')}", "--endpoint-reconciler-type=none",
            "--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction",
            # kwok's watches ask for it and fail with this etcd, whatever its client requests: it
            # would see pods and nodes only when it lists them again, each time later.
            "--feature-gates=WatchList=false",
        )  # fmt: skip
        self._wait_until_ready(process)

    def _wait_until_ready(self, process: subprocess.Popen[bytes]) -> None:
        trusted = ssl.create_default_context(cafile=str(self.root / "keys/ca.pem"))
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusted)
        )
        until_s = time.monotonic() + PATIENCE_S
        while time.monotonic() < until_s:
            assert process.poll() is None, (self.root / "apiserver.log").read_text()[-5000:]
            with contextlib.suppress(urllib.error.URLError, ConnectionError):
                opener.open(f"{self.url}/readyz").close()
                return
            time.sleep(0.05)
        raise TimeoutError(f"the API server at {self.url} is not ready")

    def stop_apiserver(self) -> None:
        """Kill the API server: an orderly end waits for all that watch. All it has is in etcd."""
        self.stop("apiserver", signal.SIGKILL)

    def restart_apiserver(self) -> None:
        """Kill the API server and start it again, at the same address."""
        self.stop_apiserver()
        self.start_apiserver()

    def _start_controllers(self) -> None:
        keys = self.root / "keys"
        common = (f"--kubeconfig={self.kubeconfig}", "--leader-elect=false", "--secure-port=0")
        self.start(
            "controllers", PROGRAMS / "kube-controller-manager", *common, *UNTHROTTLED,
            f"--root-ca-file={keys}/ca.pem",
            f"--service-account-private-key-file={keys}/accounts.key",
        )  # fmt: skip
        self.start("scheduler", PROGRAMS / "kube-scheduler", *common, *UNTHROTTLED)

    def _pod_logs(self) -> contextlib.AbstractContextManager[int]:
        keys = self.root / "keys"
        return pod_logs(keys / "server.pem", keys / "server.key", lambda *pod: self.log_of(*pod))

    def _start_kwok(self) -> None:
        stages = self.root / "stages.yaml"
        stages.write_text("\n---\n".join(stage.read_text() for stage in STAGES))
        self.start(
            "kwok", PROGRAMS / "kwok", f"--kubeconfig={self.kubeconfig}", f"--config={stages}",
            "--manage-all-nodes=false",
            f"--manage-nodes-with-annotation-selector={SIMULATED}=fake",
            "--node-lease-duration-seconds=40",
        )  # fmt: skip

    # ---- what real nodes share ----

    def address(self, last: str) -> str:
        """An address of services and pods, by its last part. The networks are for benchmarks
        (RFC 2544), so no machine has addresses of them."""
        return f"198.18.{self.port % 256}.{last}"

    def add_pod_network(self) -> None:
        """Have a network of the pods of real nodes. In it the API server has the address that
        Kubernetes tells to pods, where no kube-proxy is needed then."""
        if self._has_pod_network:
            return
        self._has_pod_network = True
        # With an address of its own: else it has that of a port, another one when a pod ends, and
        # the others reach the API server only when their neighbour entries have expired.
        _ip("link", "add", self.bridge, "address", BRIDGE_ADDRESS, "type", "bridge")
        self._stack.callback(_ip, "link", "delete", self.bridge)
        _ip("address", "add", self.address("1/24"), "dev", self.bridge)
        _ip("link", "set", self.bridge, "up")
        self.start(
            "forwarder", "socat", f"TCP-LISTEN:443,bind={self.address('1')},fork,reuseaddr",
            f"TCP:127.0.0.1:{self.port}",
        )  # fmt: skip

    # ---- keys ----

    def _make_keys(self) -> None:
        keys = self.root / "keys"
        keys.mkdir(parents=True)
        self._certify(
            "ca", "/CN=ca", "basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign"
        )
        self._certify(
            "server", "/CN=kube-apiserver", f"subjectAltName=IP:127.0.0.1,IP:{self.address('1')}"
        )
        _openssl("genrsa", "-out", f"{keys}/accounts.key", "2048")
        _openssl("rsa", "-in", f"{keys}/accounts.key", "-pubout", "-out", f"{keys}/accounts.pub")
        self.make_kubeconfig(self.kubeconfig, "admin", group="system:masters")

    def make_kubeconfig(self, path: Path, user: str, group: str) -> None:
        """Write a file by which a client is `user` of `group`, with a certificate of its own."""
        name = user.replace(":", "-")
        self._certify(name, f"/O={group}/CN={user}")
        keys = self.root / "keys"
        authority, certificate, key = keys / "ca.pem", keys / f"{name}.pem", keys / f"{name}.key"
        one = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "test",
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": user}}],
            "clusters": [
                {
                    "name": "test",
                    "cluster": {"server": self.url, "certificate-authority": str(authority)},
                }
            ],
            "users": [
                {
                    "name": user,
                    "user": {"client-certificate": str(certificate), "client-key": str(key)},
                }
            ],
        }
        path.write_text(yaml.safe_dump(one))

    def _certify(self, name: str, subject: str, *extensions: str) -> None:
        """Make a key and a certificate of it: of the cluster's authority, or that authority."""
        keys = self.root / "keys"
        signer = [] if name == "ca" else ["-CA", f"{keys}/ca.pem", "-CAkey", f"{keys}/ca.key"]
        extensions = extensions if name == "ca" else (*extensions, "basicConstraints=CA:FALSE")
        _openssl(
            "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
            "-days", "2", "-subj", subject, "-keyout", f"{keys}/{name}.key",
            "-out", f"{keys}/{name}.pem", *signer,
            *(word for extension in extensions for word in ("-addext", extension)),
        )  # fmt: skip

    # ---- what tests do with it ----

    def kubectl(self, *arguments: str, given: str | None = None) -> str:
        """What kubectl prints; `given` is its input. Fails the test where kubectl fails."""
        done = subprocess.run(
            [PROGRAMS / "kubectl", f"--kubeconfig={self.kubeconfig}", *arguments],
            input=given,
            capture_output=True,
            text=True,
            env={"PATH": os.environ["PATH"], "HOME": str(self.root)},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def watched(
        self,
        kind: type[Kind],
        labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
    ) -> Iterator[tuple[str, Kind]]:
        """Yield what is there of a kind, then each change, with what became of it (DELETED, say).

        What never comes is ended by the time limit of the test."""
        there, version = self._list(kind, labels, namespace)
        for one in there:
            yield "ADDED", one
        yield from self._changes(kind, labels, namespace, version)

    def wait_for(
        self,
        kind: type[Kind],
        hold: Callable[[Mapping[str, Kind]], object],
        labels: Mapping[str, str] | None = None,
        namespace: str | None = None,
    ) -> dict[str, Kind]:
        """Watch objects until something holds of those that there are, by name; return these."""
        there, version = self._list(kind, labels, namespace)
        found: dict[str, Kind] = {name_of(one): one for one in there}
        changes = self._changes(kind, labels, namespace, version)
        while not hold(found):
            event, one = next(changes)
            if event == "DELETED":
                found.pop(name_of(one), None)
            else:
                found[name_of(one)] = one
        return found

    def _list(
        self, kind: type[Kind], labels: Mapping[str, str] | None, namespace: str | None
    ) -> tuple[list[Kind], str]:
        """What there is, and the version of that list."""
        client: Any = self.client
        place = {} if namespace is None else {"namespace": namespace}
        there = client.list(kind, labels=labels, **place)
        return list(there), there.resourceVersion

    def _changes(
        self,
        kind: type[Kind],
        labels: Mapping[str, str] | None,
        namespace: str | None,
        version: str,
    ) -> Iterator[tuple[str, Kind]]:
        """What became of what since a list. Without its version, a watch would wait for words that
        an etcd of 3.4 lacks; after a restart of the API server it goes on."""
        client: Any = self.client
        place = {} if namespace is None else {"namespace": namespace}
        yield from client.watch(
            kind, labels=labels, resource_version=version, on_error=on_error_retry, **place
        )

    def add_nodes(
        self,
        names: Iterable[str],
        capacity: Mapping[str, str] | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Add nodes that kwok simulates, and wait until they are ready. `capacity` adds to what
        they have, such as {"nvidia.com/gpu": "8"}."""
        names = list(names)
        has = {**CAPACITY, **(capacity or {})}
        for name in names:
            kubelet = DaemonEndpoint(Port=self._log_port)
            status = NodeStatus(
                capacity=has,
                allocatable=has,
                addresses=[NodeAddress("127.0.0.1", "InternalIP"), NodeAddress(name, "Hostname")],
                daemonEndpoints=NodeDaemonEndpoints(kubeletEndpoint=kubelet),
                nodeInfo=SYSTEM,
            )
            metadata = ObjectMeta(
                name=name,
                annotations={SIMULATED: "fake"},
                labels={"kubernetes.io/hostname": name, **(labels or {})},
            )
            self.client.create(Node(metadata=metadata, spec=NodeSpec(), status=status))
        self.wait_for_nodes(names)

    def wait_for_nodes(self, names: Iterable[str]) -> None:
        """Wait until nodes are ready for pods."""
        awaited = set(names)
        for _, node in self.watched(Node):
            if ready(node):
                awaited.discard(name_of(node))
            if not awaited:
                return

    def delete_node(self, name: str) -> None:
        """Delete a node; a minute later the controllers delete the pods that it had."""
        self.client.delete(Node, name)

    def cordon(self, name: str, on: bool = True) -> None:
        """Let no new pod come to a node, or let them come again."""
        self.client.patch(Node, name, {"spec": {"unschedulable": on}})

    def taint(self, name: str, key: str, value: str = "", effect: str = "NoSchedule") -> None:
        """Add a taint, as somebody else does."""
        self.kubectl("taint", "node", name, f"{key}={value}:{effect}")

    def untaint(self, name: str, key: str) -> None:
        """Remove the taints of a key."""
        self.kubectl("taint", "node", name, f"{key}-")


def ready(node: Node) -> bool:
    """Whether pods can come to a node: it is ready, and the controllers know it."""
    conditions: list[NodeCondition] = (node.status and node.status.conditions) or []
    taints: list[Taint] = (node.spec and node.spec.taints) or []
    return any(one.type == "Ready" and one.status == "True" for one in conditions) and not any(
        one.key == NOT_READY for one in taints
    )


def name_of(one: Any) -> str:
    """The name that an object has in its namespace."""
    name: str = one.metadata.name
    return name


def _openssl(*arguments: str) -> None:
    _run("openssl", *arguments)


def _ip(*arguments: str) -> None:
    _run("ip", *arguments)


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
