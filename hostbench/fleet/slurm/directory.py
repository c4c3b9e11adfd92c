"""The directory of a campaign, which all nodes and clients share:

SHARED/NAME/campaign.json           what it measures
SHARED/NAME/slurm.json              how its jobs are submitted
SHARED/NAME/1.json, 2.json …        its jobs: the first ones and those of each retry
SHARED/NAME/logs/                   the output of the jobs
SHARED/NAME/nodes/NODE/message      the Digest of the node's document, or why there is none
SHARED/NAME/nodes/NODE/end.json     how its job ended, if the node could not report it
SHARED/NAME/nodes/NODE/JOB/         the document and its journal
"""

import contextlib
import fcntl
import os
import re
import secrets
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from hostbench.base.errors import ResourceError
from hostbench.fleet.campaign import Campaign, Digest, NodeState, NodeStatus
from hostbench.fleet.node import CAMPAIGN, read_campaign, read_message
from hostbench.fleet.pair.secret import new_secret
from hostbench.fleet.slurm.scripts import (
    CAMPAIGN_FILE,
    FAR_MESSAGE_FILE,
    MESSAGE_FILE,
    OPTIONS,
    SECRET_DIRECTORY,
    SlurmOptions,
)
from hostbench.results.store import ResultsStore, write_whole

OPTIONS_FILE, LOCK_FILE, END_FILE = "slurm.json", "lock", "end.json"
_SUBMISSION = re.compile(r"(\d{1,4})\.json", re.ASCII)


@dataclass(frozen=True)
class Submission:
    """The jobs of some units, all of one name. `token` makes the name new; `jobs`, in the order of
    `units`, is empty until all are submitted. A job that never was is an empty text."""

    number: int
    token: str
    units: tuple[str, ...]
    jobs: tuple[str, ...] = ()

    def job_name(self, campaign: str) -> str:
        """Return the name of the jobs."""
        return f"hostbench.{campaign}.{self.token}"


def new_submission(number: int, units: tuple[str, ...]) -> Submission:
    """Return a submission that has no jobs yet."""
    return Submission(number, secrets.token_hex(4), units)


SUBMISSION: TypeAdapter[Submission] = TypeAdapter(Submission)
STATUS: TypeAdapter[NodeStatus] = TypeAdapter(NodeStatus)


class CampaignDirectory:
    """What is in the directory of one campaign. Raise ResourceError where it cannot be written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: tuple[int, ...] = ()

    # ---- what it measures ----

    @property
    def exists(self) -> bool:
        """Whether it holds a campaign."""
        return (self.path / CAMPAIGN_FILE).exists()

    def campaign(self) -> Campaign:
        """Return what the campaign measures."""
        return read_campaign(self.path / CAMPAIGN_FILE)

    def options(self) -> SlurmOptions:
        """Return how its jobs are submitted."""
        return OPTIONS.validate_json((self.path / OPTIONS_FILE).read_bytes())

    def make(self) -> None:
        """Make the directory."""
        make(self.path / "logs")

    def store(self, campaign: Campaign, options: SlurmOptions) -> None:
        """Store what the campaign measures."""
        if campaign.pairs:
            self._store_secret()
        store(self.path / OPTIONS_FILE, OPTIONS.dump_json(options))
        store(self.path / CAMPAIGN_FILE, CAMPAIGN.dump_json(campaign))

    def _store_secret(self) -> None:
        directory = self.path / SECRET_DIRECTORY
        try:
            # Of a client that was killed in here.
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir(mode=0o700)
            for name, content in new_secret().items():
                descriptor = os.open(directory / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
                with os.fdopen(descriptor, "w") as file:
                    file.write(content)
        except OSError as error:
            raise _cannot_write(directory, error) from None

    def remove(self) -> None:
        """Remove all of it."""
        try:
            shutil.rmtree(self.path)
        except OSError as error:
            raise ResourceError(f"cannot remove {error.filename}: {error.strerror}") from None

    @contextlib.contextmanager
    def alone(self) -> Iterator[None]:
        """Keep other clients out while jobs are submitted and released. The lock goes with its
        process, and with an sbatch that outlives it: else the next client would not see that job
        and submit one more."""
        descriptor = os.open(self.path / LOCK_FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            self._held = (descriptor,)
            yield
        finally:
            self._held = ()
            os.close(descriptor)

    @property
    def held(self) -> tuple[int, ...]:
        """The descriptors of the lock, for an sbatch."""
        return self._held

    # ---- its jobs ----

    def submissions(self) -> list[Submission]:
        """Return the submissions of a campaign, oldest first."""
        found = [
            SUBMISSION.validate_json(path.read_bytes())
            for path in self.path.glob("*.json")
            if _SUBMISSION.fullmatch(path.name)
        ]
        return sorted(found, key=lambda one: one.number)

    def plan(self, submission: Submission) -> None:
        """Keep a submission, in place of the one of its number."""
        store(self.path / f"{submission.number}.json", SUBMISSION.dump_json(submission))

    def last_line(self, job: str) -> str:
        """Return what a job wrote last, for a sentence about it."""
        log = self.path / "logs" / f"{job}.log"
        with contextlib.suppress(OSError, IndexError):
            return f": {log.read_text(errors='replace').strip().splitlines()[-1]}"
        return f", and there is no {log}: do all nodes share that directory?"

    # ---- its units ----

    def unit(self, unit: str) -> Path:
        """Return the directory of a unit."""
        return self.path / "nodes" / unit

    def results(self, unit: str) -> ResultsStore:
        """Return where the documents of a unit are."""
        return ResultsStore(self.unit(unit))

    def message(self, unit: str) -> Digest | str | None:
        """Return what the node, or the near end of a pair, reported; see read_message."""
        with contextlib.suppress(FileNotFoundError):
            return read_message((self.unit(unit) / MESSAGE_FILE).read_text(errors="replace"))
        return None

    def failure(self, unit: str) -> str | None:
        """Return the reason that a unit without a document reported. An end that fails ends the
        other one, so the far end's message is the cause."""
        with contextlib.suppress(FileNotFoundError):
            if text := (self.unit(unit) / FAR_MESSAGE_FILE).read_text(errors="replace").strip():
                return f"the far end: {text}"
        message = self.message(unit)
        return message if isinstance(message, str) else None

    def ends(self, units: Iterable[str]) -> dict[str, NodeStatus]:
        """Return the units that were measured or whose end was written down."""
        found = {}
        for unit in units:
            message = self.message(unit)
            if isinstance(message, Digest):
                found[unit] = NodeStatus(unit, NodeState.MEASURED, None, message)
                continue
            with contextlib.suppress(FileNotFoundError, ValidationError):
                found[unit] = STATUS.validate_json((self.unit(unit) / END_FILE).read_bytes())
        return found

    def remember(self, status: NodeStatus) -> NodeStatus:
        """Write down how a unit ended; Slurm forgets it. Return the same."""
        make(self.unit(status.node))
        store(self.unit(status.node) / END_FILE, STATUS.dump_json(status))
        return status

    def forget_end(self, unit: str) -> None:
        """Remove what is known of a unit's end."""
        for file in (MESSAGE_FILE, FAR_MESSAGE_FILE, END_FILE):
            (self.unit(unit) / file).unlink(missing_ok=True)


def make(directory: Path) -> None:
    """Make a directory. Raise ResourceError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _cannot_write(directory, error) from None


def store(path: Path, content: bytes) -> None:
    """Write a whole file. Raise ResourceError."""
    try:
        write_whole(path, content)
    except OSError as error:
        raise _cannot_write(path, error) from None


def _cannot_write(path: Path, error: OSError) -> ResourceError:
    return ResourceError(
        f"cannot write {path}: {error.strerror}; free space or rights in the shared directory"
    )
