"""The builds of the programs that must keep the contract."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostbench.model.registry import subsystem_names
from tests.builds import builds

CHECKOUT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Variant:
    """One build, and what it takes to run it. `prefix` stands before the program."""

    name: str
    prefix: tuple[str, ...] = ()

    def program(self, subsystem: str) -> Path:
        return CHECKOUT / "build" / self.name / f"{subsystem}-bench"

    def command(self, subsystem: str) -> list[str]:
        return [*self.prefix, str(self.program(subsystem))]


KNOWN = (
    Variant("release"),
    Variant("clang"),
    Variant("asan"),
    # The shadow memory of ThreadSanitizer does not bear the address layouts of newer kernels.
    Variant("tsan", ("setarch", os.uname().machine, "-R")),
    Variant("aarch64", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")),
)
VARIANTS = {variant.name: variant for variant in KNOWN}
SUBSYSTEMS = subsystem_names()


@pytest.fixture(params=builds(*VARIANTS))
def variant(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Variant:
    """Each build of this tier. One that is not there fails; one that no tool here can run skips."""
    one = VARIANTS[request.param]
    if one.prefix and shutil.which(one.prefix[0]) is None:
        pytest.skip(f"{one.prefix[0]} is not installed: the {one.name} build cannot run here")
    for subsystem in SUBSYSTEMS:
        assert one.program(subsystem).is_file(), (
            f"{one.program(subsystem)} is not built; make test-all builds it"
        )
    if one.name == "tsan":
        # Beneath it a driver of OpenCL takes seconds to load, which every call of gpu-bench does.
        monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    return one
