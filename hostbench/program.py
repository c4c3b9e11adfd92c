"""The benchmark programs of this host: where they are, what they can do, which build they are."""

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hostbench.errors import ResourceError
from hostbench.models.result import ProgramVersion
from hostbench.models.table import Table

# Those that have a program by now.
SUBSYSTEMS = ("cpu", "mem", "disk", "net", "gpu")
CHECKOUT = Path(__file__).resolve().parent.parent
# Drivers of several GPUs that nothing has used yet take seconds to begin.
LIST_TIMEOUT_S = 30.0
_REMEDY = "build it again with make programs"

Fingerprint = tuple[int, int, int]


@dataclass(frozen=True)
class Program:
    """One program with its table. `fingerprint` tells whether its file was replaced since."""

    path: Path
    table: Table
    sha256: str
    fingerprint: Fingerprint

    @staticmethod
    def fingerprint_of(status: os.stat_result) -> Fingerprint:
        """Inode, size in bytes and time of change in nanoseconds."""
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def version(self) -> ProgramVersion:
        """What the result document says about it."""
        return ProgramVersion(
            name=self.table.program,
            subsystem=self.table.subsystem,
            version=self.table.version,
            sha256=self.sha256,
        )


def find_program(subsystem: str) -> Path:
    """The file of `cpu-bench` and its like: in HOSTBENCH_PROGRAMS when that is set, otherwise in
    build/release of the checkout, otherwise on PATH. Raises ResourceError when it is nowhere."""
    name = f"{subsystem}-bench"
    given = os.environ.get("HOSTBENCH_PROGRAMS")
    if given:
        path = Path(given) / name
        if _is_executable(path):
            return path.resolve()
        raise ResourceError(
            f"{path} is not an executable file; "
            "set HOSTBENCH_PROGRAMS to the directory of the programs, or unset it"
        )
    built = CHECKOUT / "build" / "release" / name
    if _is_executable(built):
        return built
    found = shutil.which(name)
    if found:
        return Path(found).resolve()
    raise ResourceError(
        f"{name} is neither in {built.parent} nor on PATH; "
        "build it with make programs, or set HOSTBENCH_PROGRAMS to its directory"
    )


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def load_program(subsystem: str) -> Program:
    """The program of a subsystem with its table. Raises ResourceError when it is not usable."""
    path = find_program(subsystem)
    fingerprint = Program.fingerprint_of(path.stat())
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    table = _read_table(path)
    if table.subsystem != subsystem:
        raise ResourceError(
            f"{path} --list says it is for {table.subsystem}, not {subsystem}; build it again "
            "with make programs"
        )
    return Program(path=path, table=table, sha256=sha256, fingerprint=fingerprint)


def load_programs(subsystems: Iterable[str]) -> dict[str, Program]:
    """The programs of several subsystems."""
    return {subsystem: load_program(subsystem) for subsystem in sorted(set(subsystems))}


def stated_version(path: Path) -> str:
    """`cpu-bench 0.1.0`, as the program says by itself: unlike its table it takes no look at the
    host. Raises ResourceError."""
    answer = _answer(path, "--version").decode("utf-8", "replace").split()
    if len(answer) != 2 or answer[0] != path.name:
        raise ResourceError(f"{path} --version does not say a version; {_REMEDY}")
    return " ".join(answer)


def _read_table(path: Path) -> Table:
    try:
        return Table.model_validate_json(_answer(path, "--list"))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ResourceError(
            f"{path} --list is not a workload table: {where}: {first['msg']}; {_REMEDY}"
        ) from None


def _answer(path: Path, option: str) -> bytes:
    """What it prints. Raises ResourceError."""
    try:
        answer = subprocess.run(
            [path, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            start_new_session=True,
            timeout=LIST_TIMEOUT_S,
        )
    except OSError as error:
        raise ResourceError(f"cannot start {path}: {error.strerror}; {_REMEDY}") from None
    except subprocess.TimeoutExpired:
        raise ResourceError(
            f"{path} {option} did not answer within {LIST_TIMEOUT_S:.0f} s; {_REMEDY}"
        ) from None
    if answer.returncode != 0:
        said = answer.stderr.decode("utf-8", "replace")[-400:]
        raise ResourceError(
            f"{path} {option} ended with exit code {answer.returncode}; {_REMEDY}; it said: {said}"
        )
    return answer.stdout
