"""The benchmark programs of this host: where they are, what they can do, and which build they
are."""

import contextlib
import hashlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from hostbench.base.errors import ResourceError, shown
from hostbench.base.place import PROGRAMS, REBUILD
from hostbench.model.registry import find_subsystem
from hostbench.model.result import ProgramVersion
from hostbench.model.subsystem import Subsystem
from hostbench.model.table import Table

# Drivers of several unused GPUs take seconds to start.
LIST_TIMEOUT_S = 30.0
# A table has at most 100 KB.
OUTPUT_BYTES_MOST = 4 << 20
READ_BYTES = 1 << 16
_REINSTALL = "install the package of its subsystem again"

Fingerprint = tuple[int, int, int]


@dataclass(frozen=True)
class Program:
    """One program with its table. `fingerprint` shows whether its file was replaced since."""

    path: Path
    table: Table
    sha256: str
    fingerprint: Fingerprint

    @staticmethod
    def fingerprint_of(status: os.stat_result) -> Fingerprint:
        """Return inode, size in bytes and time of change in nanoseconds."""
        return (status.st_ino, status.st_size, status.st_mtime_ns)

    @property
    def version(self) -> ProgramVersion:
        """The program as the result document names it."""
        return ProgramVersion(
            name=self.table.program,
            subsystem=self.table.subsystem,
            version=self.table.version,
            sha256=self.sha256,
        )


def find_program(subsystem: str) -> Path:
    """Return the file of a subsystem's program, such as `cpu-bench`.

    It is in HOSTBENCH_PROGRAMS if that is set, else in build/release of the checkout or in the
    wheel, else on PATH; or in the subsystem's own directory, if it names one. Raise UsageError for
    an unknown subsystem, and ResourceError when there is no program.
    """
    declared = find_subsystem(subsystem)
    name = declared.program
    given = os.environ.get("HOSTBENCH_PROGRAMS")
    if given and _is_executable(Path(given) / name):
        return (Path(given) / name).resolve()
    if declared.directory is not None:
        return _own_program(declared.directory / name)
    if given:
        raise ResourceError(
            f"{Path(given) / name} is not an executable file; "
            "set HOSTBENCH_PROGRAMS to the directory of the programs, or unset it"
        )
    built = PROGRAMS / name
    if _is_executable(built):
        return built
    found = shutil.which(name)
    if found:
        return Path(found).resolve()
    raise ResourceError(
        f"{name} is neither in {built.parent} nor on PATH; "
        f"{REBUILD}, or set HOSTBENCH_PROGRAMS to its directory"
    )


def _own_program(path: Path) -> Path:
    """Return the program that comes with the package of its subsystem. Raise ResourceError."""
    if _is_executable(path):
        return path.resolve()
    raise ResourceError(
        f"{path} is not an executable file; {_REINSTALL}, "
        "or set HOSTBENCH_PROGRAMS to the directory of the program"
    )


def remedy_for(subsystem: Subsystem) -> str:
    """Return how to repair its program."""
    return REBUILD if subsystem.directory is None else _REINSTALL


def _is_executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def load_program(subsystem: str) -> Program:
    """Return the program of a subsystem with its table. Raise ResourceError when it is not
    usable."""
    path, remedy = find_program(subsystem), remedy_for(find_subsystem(subsystem))
    fingerprint = Program.fingerprint_of(path.stat())
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    table = _read_table(path, remedy)
    if table.subsystem != subsystem:
        raise ResourceError(
            f"{path} --list says it is for {table.subsystem}, not {subsystem}; {remedy}"
        )
    return Program(path=path, table=table, sha256=sha256, fingerprint=fingerprint)


def load_programs(subsystems: Iterable[str]) -> dict[str, Program]:
    """Return the programs of several subsystems."""
    return {subsystem: load_program(subsystem) for subsystem in sorted(set(subsystems))}


def stated_version(path: Path, remedy: str = REBUILD) -> str:
    """Return `cpu-bench 1.0.0`, as the program prints it; unlike for its table, it does not look at
    the host. Raise ResourceError that ends with `remedy`."""
    answer = output_of(path, "--version", remedy).decode("utf-8", "replace").split()
    if len(answer) != 2 or answer[0] != path.name:
        raise ResourceError(f"{path} --version prints no version; {remedy}")
    return " ".join(answer)


def _read_table(path: Path, remedy: str) -> Table:
    try:
        return Table.model_validate_json(output_of(path, "--list", remedy))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = [".".join(str(part) for part in first["loc"])] if first["loc"] else []
        why = ": ".join([*where, first["msg"]])
        raise ResourceError(f"{path} --list is not a workload table: {why}; {remedy}") from None


def output_of(path: Path, option: str, remedy: str = REBUILD) -> bytes:
    """Return what the program prints. Raise ResourceError that names `remedy`."""
    try:
        process = subprocess.Popen(
            [path, option],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise ResourceError(f"cannot start {path}: {error.strerror}; {remedy}") from None
    with process:
        try:
            output, errors = _read_both(process)
            exit_code = process.wait(LIST_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise ResourceError(
                f"{path} {option} did not answer within {LIST_TIMEOUT_S:.0f} s; {remedy}"
            ) from None
        except OverflowError:
            raise ResourceError(
                f"{path} {option} prints more than {OUTPUT_BYTES_MOST >> 20} MiB; {remedy}"
            ) from None
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    if exit_code != 0:
        how = f"was killed by signal {-exit_code}"
        if exit_code > 0:
            how = f"ended with exit code {exit_code}"
        last = errors.decode("utf-8", "replace").strip()[-400:]
        raise ResourceError(
            f"{path} {option} {how}; {remedy}; its output: {shown(last) if last else 'none'}"
        )
    return output


def _read_both(process: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
    """Return its standard output and error. Raise TimeoutExpired, or OverflowError if they are
    longer than any output of our programs."""
    assert process.stdout is not None and process.stderr is not None
    kept = {process.stdout: bytearray(), process.stderr: bytearray()}
    deadline_s = time.monotonic() + LIST_TIMEOUT_S
    with selectors.DefaultSelector() as selector:
        for stream, read in kept.items():
            selector.register(stream, selectors.EVENT_READ, read)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline_s - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired(process.args, LIST_TIMEOUT_S)
            for key, _ in ready:
                if not (piece := os.read(key.fd, READ_BYTES)):
                    selector.unregister(key.fileobj)
                key.data.extend(piece)
            if sum(map(len, kept.values())) > OUTPUT_BYTES_MOST:
                raise OverflowError
    output, errors = kept.values()
    return bytes(output), bytes(errors)
