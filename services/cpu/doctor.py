"""What `hostbench doctor` checks for the cpu subsystem only."""

from hostbench.doctor.check import (
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
)
from hostbench.doctor.installed import library_installed, peers_installed
from hostbench.doctor.view import View
from hostbench.host.microarchitecture import CpuIdentity, Unknown, identify
from hostbench.model.doctor import Evidence
from services.cpu.peers import PACKAGES


def micro_architecture(view: View) -> Outcome:
    """Whether theoretical limits are known for this processor, or its model is hidden."""
    allowed = view.allowed_cpus or view.host.allowed_cpus
    identity = CpuIdentity.of(view.host, allowed)
    found = identify(identity)
    seen = Evidence(source="/proc/cpuinfo", value=str(identity))
    if isinstance(found, Unknown):
        text = f"limits will be empty: {found.reason}"
        advice = Advice("show the guest the host's CPU model (QEMU: -cpu host)", Reach.HARDWARE)
        return notice(text, seen, advice=advice if view.is_virtual else None)
    if found.how != identity.claim:
        text = f"hidden behind another model; by its flags it is {found.microarchitecture.title}"
        return notice(text, Evidence(source="/proc/cpuinfo", value=found.how))
    return ok(found.microarchitecture.title, seen)


def peers(view: View) -> Outcome:
    """Whether the tools are installed that figures can be compared with."""
    del view
    return peers_installed(PACKAGES)


def openblas(view: View) -> Outcome:
    """Whether the library is installed that measures dense linear algebra."""
    return library_installed(view, "libopenblas.so.0", "libopenblas0-pthread")


CHECKS = (
    Check("micro_architecture", Topic.CORES, "Processor model", ("cpu",), micro_architecture),
    Check("peers", Topic.INSTALLATION, "Peers of the CPU", ("cpu",), peers),
    Check("openblas", Topic.INSTALLATION, "OpenBLAS", ("cpu",), openblas),
)
