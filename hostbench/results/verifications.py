"""Stored verifications: one JSON file each, in `verify/` of the results directory."""

from pathlib import Path

from pydantic import ValidationError

from hostbench.base.errors import ResourceError, UsageError, did_you_mean, shown
from hostbench.model.verification import Verification
from hostbench.results.store import LATEST, write_whole

DIRECTORY = "verify"


class VerificationStore:
    """All verifications below a results directory."""

    def __init__(self, results: Path) -> None:
        self._directory = results / DIRECTORY

    def path(self, verification_id: str) -> Path:
        """Return the file of a verification."""
        return self._directory / f"{verification_id}.json"

    def store(self, verification: Verification) -> None:
        """Write it in place of what was there. Raise ResourceError."""
        path = self.path(verification.id)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, verification.model_dump_json(indent=1).encode())
        except OSError as error:
            raise ResourceError(
                f"cannot write {path}: {error.strerror}; "
                "choose another directory with --results or HOSTBENCH_RESULTS"
            ) from None

    def load(self, verification_id: str) -> Verification:
        """Return the one with this id, or the latest. Raise UsageError."""
        ids = sorted(path.stem for path in self._directory.glob("*.json"))
        if verification_id == LATEST and ids:
            verification_id = ids[-1]
        if verification_id not in ids:
            raise UsageError(
                f"there is no verification {shown(verification_id)} in {self._directory}; "
                f"{did_you_mean(verification_id, ids)}leave out --resume to begin a new one"
            )
        path = self.path(verification_id)
        try:
            return Verification.model_validate_json(path.read_bytes())
        except (OSError, ValidationError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not a verification"
            raise UsageError(
                f"cannot read {path}: {why}; leave out --resume to begin a new one"
            ) from None
