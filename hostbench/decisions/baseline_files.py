"""Baselines as files: where they are found, read, checked and written."""

import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pydantic import ValidationError

from hostbench.base.errors import ResourceError, UsageError, shown
from hostbench.base.place import HOME
from hostbench.decisions.baseline import described, measured_job, merged, refuse_faults
from hostbench.decisions.hostcheck import check_host
from hostbench.model.baseline import (
    BASELINE_SCHEMA,
    KIND,
    Baseline,
    BaselineFile,
    BaselineList,
    HostCheck,
    HostKey,
    MeasuredJob,
)
from hostbench.model.result import ResultDocument

FOLDER = "baselines"
PATTERN = "*.json"
SCHEMA_FILE = "baseline.schema.json"
SALT_BYTES = 16
BYTES_MOST = 64 << 20
REMEDY = "make it again with: hostbench baseline make"


def folders(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders of baselines: ./baselines, the user's folders, the package's."""
    home = Path(environment.get("HOME") or "~").expanduser()
    data = Path(environment.get("XDG_DATA_HOME") or home / ".local/share")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    found = [
        Path(FOLDER),
        data / "hostbench" / FOLDER,
        config / "hostbench" / FOLDER,
        HOME / FOLDER,
    ]
    return list({path.absolute(): path for path in found}.values())


def files(environment: Mapping[str, str]) -> list[Path]:
    """Return the files in these folders. Folders that cannot be read are left out."""
    found: list[Path] = []
    for folder in folders(environment):
        try:
            found += sorted(path for path in folder.glob(PATTERN) if path.name != SCHEMA_FILE)
        except OSError:
            continue
    return found


def read_baseline(path: Path) -> Baseline:
    """Return the baseline in a file, computed again. Raise UsageError, in one line, if it cannot be
    read, is damaged, has another schema, or is not sound."""
    return refuse_faults(parsed(path), str(path))


def parsed(path: Path) -> Baseline:
    """Return the baseline in a file, without checking its figures. Raise UsageError."""
    try:
        if path.stat().st_size > BYTES_MOST:
            raise UsageError(
                f"{path} has more than {BYTES_MOST >> 20} MiB and is no baseline; give a file that "
                "hostbench baseline made"
            )
        content = path.read_bytes()
    except FileNotFoundError:
        raise UsageError(
            f"there is no {path}; hostbench baseline list shows the baselines that are found"
        ) from None
    except OSError as error:
        raise UsageError(
            f"cannot read {path}: {error.strerror}; give a file that hostbench baseline made"
        ) from None
    try:
        return Baseline.model_validate_json(content)
    except ValidationError as error:
        raise _not_a_baseline(error, content, path) from None


def _not_a_baseline(error: ValidationError, content: bytes, path: Path) -> UsageError:
    first = error.errors(include_url=False)[0]
    if first["type"] == "json_invalid":
        return UsageError(
            f"{path} is cut short or damaged: its {len(content)} bytes are not one JSON document; "
            f"{REMEDY}"
        )
    by_place = {".".join(map(str, one["loc"])): one for one in error.errors(include_url=False)}
    if (kind := by_place.get("kind")) is not None:
        return UsageError(f"{path} is a {shown(kind['input'])} and not a {KIND!r}; {REMEDY}")
    if (schema := by_place.get("schema")) is not None:
        found = schema["input"]
        newer = isinstance(found, int) and found > BASELINE_SCHEMA
        return UsageError(
            f"{path} has schema {shown(found)}, and this hostbench reads {BASELINE_SCHEMA}; "
            f"{'read it with a newer hostbench, or ' if newer else ''}{REMEDY}"
        )
    where = ".".join(map(str, first["loc"])) or "the whole"
    return UsageError(f"{path} is not a baseline: {where}: {first['msg']}; {REMEDY}")


def known_baselines(environment: Mapping[str, str]) -> BaselineList:
    """Return every file in these folders: its model, or why it is not used."""
    return BaselineList(
        baselines=tuple(_described(path) for path in files(environment)),
        folders=tuple(map(str, folders(environment))),
    )


def _described(path: Path) -> BaselineFile:
    try:
        one = read_baseline(path)
    except UsageError as error:
        return BaselineFile(file=str(path), error=error.message)
    return described(one, str(path))


def found_for(
    key: HostKey, environment: Mapping[str, str]
) -> tuple[list[Path], Baseline | None, list[str]]:
    """Return the files of a model, all their hosts as one baseline, and what could not be used, as
    sentences."""
    fitting: list[tuple[Path, Baseline]] = []
    problems: list[str] = []
    for path in files(environment):
        try:
            one = parsed(path)
            if one.key == key:
                fitting.append((path, refuse_faults(one, str(path))))
        except UsageError as error:
            problems.append(f"A baseline was not used: {error.message}.")
    if not fitting:
        return [], None, problems
    try:
        together = merged([(str(path), one) for path, one in fitting])
    except UsageError as error:
        names = " and ".join(str(path) for path, _ in fitting)
        problems.append(f"{names} were not used together: {error.message}.")
        return [], None, problems
    return [path for path, _ in fitting], together, problems


def checked_host(document: ResultDocument, environment: Mapping[str, str]) -> HostCheck:
    """Compare the host of a job with all baselines of its model that are found. The notes list
    those that could not be used."""
    return checked_jobs([measured_job(document)], environment)


def checked_jobs(jobs: Sequence[MeasuredJob], environment: Mapping[str, str]) -> HostCheck:
    """Do the same for several jobs of one host, oldest first."""
    _, together, problems = found_for(jobs[-1].key, environment)
    check = check_host(jobs, together)
    return check.model_copy(update={"notes": (*check.notes, *problems)})


def content_of(baseline: Baseline) -> bytes:
    """Return the content of the file: equal baselines have equal bytes."""
    return (baseline.model_dump_json(indent=1) + "\n").encode()


def user_salt(environment: Mapping[str, str]) -> bytes:
    """Return this user's secret for anonymous hosts.

    It is made only once, so that a second export uses the same names and merges with the first.
    Raise ResourceError.
    """
    home = Path(environment.get("HOME") or "~").expanduser()
    base = Path(environment.get("XDG_DATA_HOME") or home / ".local/share")
    path = base / "hostbench" / "baseline-salt"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            salt = path.read_bytes()
        else:
            salt = secrets.token_bytes(SALT_BYTES)
            with os.fdopen(descriptor, "wb") as file:
                file.write(salt)
    except OSError as error:
        raise ResourceError(
            f"cannot keep the secret {path}: {error.strerror}; set XDG_DATA_HOME to a directory "
            "that may be written"
        ) from None
    if len(salt) != SALT_BYTES:
        raise ResourceError(
            f"{path} has {len(salt)} bytes and not {SALT_BYTES}; remove it, and hosts that were "
            "exported before get new names"
        )
    return salt


def read_all(paths: Sequence[Path]) -> Iterator[tuple[str, Baseline]]:
    """Yield the baselines in these files, each with its name. Raise UsageError."""
    for path in paths:
        yield str(path), read_baseline(path)
