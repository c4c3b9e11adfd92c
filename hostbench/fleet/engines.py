"""The engines that campaigns run on: the one list of them."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from hostbench.base.errors import ResourceError, UsageError
from hostbench.base.interrupt import Interrupt
from hostbench.fleet.campaign import Engine, PostTo
from hostbench.fleet.pair.end import no_lease
from hostbench.model.campaign import EngineName, LockName


@dataclass(frozen=True)
class EngineOptions:
    """The options of an engine, beside what a campaign measures.

    Kubernetes: `namespace`, `image`, `queue` (Kueue's), `priority` (a class), `lock`,
    `service_account`, `tolerate` (taints), `annotations` (of pods). Slurm: `shared`, a directory
    that all nodes see, `queue` (a partition), `priority` (a QOS), `reservation`, `account`, and
    `program`, the command hostbench as nodes find it. Both: `post`, where nodes post documents.
    """

    namespace: str | None = None
    image: str | None = None
    queue: str | None = None
    priority: str | None = None
    lock: LockName = "lease"
    service_account: str | None = None
    tolerate: tuple[str, ...] = ()
    annotations: Mapping[str, str] = field(default_factory=dict)
    shared: Path | None = None
    reservation: str | None = None
    account: str | None = None
    program: str = "hostbench"
    post: PostTo | None = None


def engine(name: EngineName, options: EngineOptions) -> Engine:
    """Return the engine. Raise ResourceError where what it needs is not installed."""
    return ENGINES[name](options)


def needs_lightkube() -> None:
    """Raise ResourceError where the library that calls Kubernetes is not installed."""
    if find_spec("lightkube") is None:
        raise ResourceError(
            "Kubernetes needs the Python package lightkube; where hostbench is: pip install "
            "lightkube, or with pipx: pipx inject hostbench lightkube"
        )


def node_lease(
    lock: LockName, campaign: str, node: str, say: Callable[[str], None]
) -> Callable[[Interrupt], AbstractContextManager[object]]:
    """Return what holds the node's Lease object, where that is the lock. Raise ResourceError
    without lightkube."""
    if lock != "lease":
        return no_lease
    needs_lightkube()
    from hostbench.fleet.kubernetes.lease import held_lease

    return lambda interrupt: held_lease(campaign, node, interrupt, say)


def _kubernetes(options: EngineOptions) -> Engine:
    needs_lightkube()
    from hostbench.fleet.kubernetes.engine import KubernetesEngine
    from hostbench.fleet.kubernetes.objects import PodOptions

    if options.image is None:
        return KubernetesEngine(options.namespace, None)
    pods = PodOptions(
        image=options.image,
        queue=options.queue,
        priority=options.priority,
        lock=options.lock,
        service_account=options.service_account,
        tolerate=options.tolerate,
        annotations=options.annotations,
        post=options.post,
    )
    return KubernetesEngine(options.namespace, pods)


def _slurm(options: EngineOptions) -> Engine:
    from hostbench.fleet.slurm.engine import SlurmEngine
    from hostbench.fleet.slurm.scripts import SlurmOptions

    if options.shared is None:
        raise UsageError(
            "--engine slurm needs --shared DIRECTORY or HOSTBENCH_SHARED: a directory that this "
            "machine and all nodes share"
        )
    jobs = SlurmOptions(
        program=options.program,
        partition=options.queue,
        reservation=options.reservation,
        account=options.account,
        qos=options.priority,
        post=options.post,
    )
    return SlurmEngine(options.shared, jobs)


ENGINES: Mapping[EngineName, Callable[[EngineOptions], Engine]] = {
    "kubernetes": _kubernetes,
    "slurm": _slurm,
}
