"""What `hostbench doctor` asks for the cpu subsystem alone."""

import shutil

from hostbench.doctor.check import (
    CPU,
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
)
from hostbench.doctor.view import View
from hostbench.models.doctor import Evidence
from services.cpu.microarchitecture import CpuIdentity, Unknown, identify
from services.cpu.peers import PACKAGES

OPENBLAS, OPENBLAS_PACKAGE = "libopenblas.so.0", "libopenblas0-pthread"
LIBRARY_DIRECTORIES = ("/usr/lib", "/usr/lib/*", "/usr/lib64", "/usr/local/lib", "/lib/*")


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
    """Whether the tools are there that figures can be held against."""
    del view  # tools are found as a run finds them
    missing = {tool: package for tool, package in PACKAGES.items() if shutil.which(tool) is None}
    seen = [
        Evidence(source=tool, value=shutil.which(tool), reason=_not_found(tool in missing))
        for tool in PACKAGES
    ]
    if not missing:
        return ok("all are installed", *seen)
    advice = Advice(f"apt-get install {' '.join(missing.values())}", Reach.INSTALLED)
    return notice(f"without {', '.join(missing)}", *seen, advice=advice)


def _not_found(missing: bool) -> str | None:
    return "not on PATH" if missing else None


def openblas(view: View) -> Outcome:
    """Whether the library is there that dense linear algebra is measured with."""
    found = [
        path for directory in LIBRARY_DIRECTORIES for path in view.find(f"{directory}/{OPENBLAS}")
    ]
    if found:
        return ok("installed", Evidence(source=found[0], value="there"))
    missing = Evidence(source=f"{', '.join(LIBRARY_DIRECTORIES)}/{OPENBLAS}", reason="no such file")
    advice = Advice(f"apt-get install {OPENBLAS_PACKAGE}", Reach.INSTALLED)
    return notice(f"no {OPENBLAS}", missing, advice=advice)


CHECKS = (
    Check("micro_architecture", Topic.CORES, "Processor model", (CPU,), micro_architecture),
    Check("peers", Topic.INSTALLATION, "Peers", (CPU,), peers),
    Check("openblas", Topic.INSTALLATION, "OpenBLAS", (CPU,), openblas),
)
