"""The builds of the programs that must keep the contract."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

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


VARIANTS = (
    Variant("release"),
    Variant("clang"),
    Variant("asan"),
    # The shadow memory of ThreadSanitizer does not bear the address layouts of newer kernels.
    Variant("tsan", ("setarch", os.uname().machine, "-R")),
    Variant("aarch64", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")),
)
SUBSYSTEMS = tuple(
    path.parent.name for path in sorted((CHECKOUT / "services").glob("*/bench")) if path.is_dir()
)


@pytest.fixture(params=VARIANTS, ids=lambda variant: variant.name)
def variant(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Variant:
    """Each build. One that is not there fails; a tool to run it that is not there skips."""
    one: Variant = request.param
    if one.prefix and shutil.which(one.prefix[0]) is None:
        pytest.skip(f"{one.prefix[0]} is not installed: the {one.name} build cannot run here")
    for subsystem in SUBSYSTEMS:
        assert one.program(subsystem).is_file(), (
            f"{one.program(subsystem)} is not built; make test builds it"
        )
    if one.name == "tsan":
        # Beneath it a driver of OpenCL takes seconds to load, which every call of gpu-bench does.
        monkeypatch.setenv("OCL_ICD_VENDORS", str(tmp_path))
    return one
