"""Find the result documents that an expression such as `latest`, `2026*-quick-*` or a path
means."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from hostbench.base.errors import UsageError
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.sets import JobFilter, jobs_of
from hostbench.model.result import ResultDocument
from hostbench.results.ids import job_ids
from hostbench.results.sealed import read_document
from hostbench.results.store import DOCUMENT, ResultsStore

REMEDY = "give a result.json that hostbench wrote"


def documents_of(expressions: Sequence[str], root: Path) -> list[ResultDocument]:
    """Return the documents of some sets of jobs, each document once.

    A set is what `hostbench compare` takes: ids, patterns, files and directories, separated by
    commas. Raise UsageError.
    """
    found: dict[str, ResultDocument] = {}
    with FigureIndex(root) as index:
        for part in (part.strip() for text in expressions for part in text.split(",")):
            if part.endswith(".json") or "/" in part or Path(part).is_dir():
                for path in _paths(Path(part)):
                    one = read_document(_read(path), str(path), REMEDY)
                    found.setdefault(_name(one), one)
            else:
                for job in jobs_of(part, index, JobFilter()):
                    one = ResultsStore(root).job(job.job).load()
                    found.setdefault(_name(one), one)
    return list(found.values())


def _name(document: ResultDocument) -> str:
    """Return what identifies a document: jobs of many hosts may have the same id."""
    return document.digest or document.job.id


def _paths(path: Path) -> Iterator[Path]:
    """Yield a document, the document of a job's directory, or those of a directory of jobs or of
    directories of jobs, such as that of a campaign."""
    if not path.is_dir():
        yield path
    elif (path / DOCUMENT).exists():
        yield path / DOCUMENT
    else:
        below = sorted(one for one in path.iterdir() if one.is_dir())
        found = [place / job / DOCUMENT for place in (path, *below) for job in job_ids(place)]
        there = [one for one in found if one.exists()]
        if not there:
            raise UsageError(
                f"{path} holds no job with a result; give a results directory, a job's directory, "
                "or a result.json"
            )
        yield from there


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}; {REMEDY}") from None
