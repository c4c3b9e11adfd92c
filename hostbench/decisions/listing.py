"""Stored results as a list, from the index of figures: no document is read."""

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hostbench.decisions.baseline import headline_workloads
from hostbench.decisions.index import NEWEST_OF_EACH_CASE, reading
from hostbench.model.decision import FAR_HOST_FACT, CaseFigure, JobFigures
from hostbench.model.result import StoredModel, Verdict


@dataclass(frozen=True)
class ResultFilter:
    """Which results are listed; None: any.

    - `host`, `suite`: names.
    - `case`: words of a case's title, or the beginning of its hash; a result has such a case.
    - `verdict`: a case has it: one that `case` means, if it is given.
    - `since_unix_s`, `until_unix_s`: begun at or after, and before.
    """

    host: str | None = None
    suite: str | None = None
    case: str | None = None
    verdict: Verdict | None = None
    since_unix_s: float | None = None
    until_unix_s: float | None = None


@dataclass(frozen=True)
class Measurement:
    """A case in one job, and the hosts of that job."""

    figure: CaseFigure
    hosts: tuple[str, ...]


class ListedResult(StoredModel):
    """A result. `verdicts`: how many cases have each, or are `unfinished`; `measured`: the case
    that the filter means, if it is one."""

    job: str
    host: str
    suite: str
    begun_unix_s: float
    cases: int
    verdicts: dict[str, int]
    measured: Measurement | None = None


class ResultsFound(StoredModel):
    """A part of the results that a filter leaves, the newest first; `count` of all of them.
    `cases`: titles of the cases that the filter means; None: it names none."""

    results: tuple[ListedResult, ...]
    count: int
    cases: tuple[str, ...] | None = None


def listed_results(root: Path, wanted: ResultFilter, first: int, most: int) -> ResultsFound:
    """Return the results from number `first` (from 0) on, at most `most`. Raise sqlite3.Error if
    there is no index that can be read."""
    with reading(root) as connection:
        meant = None if wanted.case is None else _meant(connection, wanted.case)
        where, values = _condition(wanted, meant)
        (count,) = connection.execute(f"SELECT COUNT(*) FROM results{where}", values).fetchone()  # noqa: S608
        rows = connection.execute(
            "SELECT job, host, suite, begun, cases, verdicts FROM results"  # noqa: S608
            f"{where} ORDER BY begun DESC, job DESC LIMIT ? OFFSET ?",
            (*values, most, first),
        ).fetchall()
        only = meant[0].case if meant is not None and len(meant) == 1 else None
        return ResultsFound(
            results=tuple(
                ListedResult(
                    job=job,
                    host=host,
                    suite=suite,
                    begun_unix_s=begun,
                    cases=cases,
                    verdicts=json.loads(verdicts),
                    measured=None if only is None else _newest(connection, only, [job]),
                )
                for job, host, suite, begun, cases, verdicts in rows
            ),
            count=count,
            cases=None if meant is None else tuple(one.title for one in meant),
        )


def listed_names(root: Path) -> tuple[list[str], list[str]]:
    """Return the names of all hosts with a result, and of all suites. Raise sqlite3.Error as
    `listed_results`."""
    with reading(root) as connection:
        hosts = connection.execute("SELECT DISTINCT host FROM results ORDER BY host")
        suites = connection.execute("SELECT DISTINCT suite FROM results ORDER BY suite")
        return [name for (name,) in hosts], [name for (name,) in suites]


def newest_result(root: Path, host: str) -> JobFigures | None:
    """Return the newest result of a host, without its figures; None: it has none. Raise
    sqlite3.Error as `listed_results`."""
    with reading(root) as connection:
        row = connection.execute(
            "SELECT head FROM jobs WHERE job = (SELECT job FROM results WHERE host = ? "
            "ORDER BY begun DESC, job DESC LIMIT 1)",
            (host,),
        ).fetchone()
        return None if row is None else JobFigures.model_validate_json(row[0])


def newest_cases(root: Path, host: str) -> list[str]:
    """Return the titles of the cases in the newest result of a host. Raise sqlite3.Error as
    `listed_results`."""
    with reading(root) as connection:
        rows = connection.execute(
            "SELECT json_extract(figure, '$.title') FROM figures WHERE job = (SELECT job "
            "FROM results WHERE host = ? ORDER BY begun DESC, job DESC LIMIT 1)",
            (host,),
        )
        return sorted(title for (title,) in rows)


def newest_measurements(root: Path, jobs: Mapping[str, Sequence[str]]) -> dict[str, Measurement]:
    """Return each case in the newest of the jobs that are given for it, if any of them has it.
    Raise sqlite3.Error as `listed_results`."""
    with reading(root) as connection:
        found = {case: _newest(connection, case, ids) for case, ids in jobs.items()}
    return {case: one for case, one in found.items() if one is not None}


def headline_figures(root: Path, jobs: Iterable[str]) -> dict[str, list[CaseFigure]]:
    """Return the figures of the headline workloads in each of these jobs, without naive ones. Raise
    sqlite3.Error as `listed_results`."""
    workloads = json.dumps(headline_workloads())
    with reading(root) as connection:
        found = {
            job: [
                CaseFigure.model_validate_json(figure)
                for (figure,) in connection.execute(
                    "SELECT figure FROM figures WHERE job = ? AND json_extract(figure, "
                    "'$.workload') IN (SELECT value FROM json_each(?))",
                    (job, workloads),
                )
            ]
            for job in jobs
        }
    return {job: [one for one in theirs if not one.naive] for job, theirs in found.items()}


def _meant(connection: sqlite3.Connection, text: str) -> list[CaseFigure]:
    """Return the newest figure of each case that a text means: that with this title or workload
    alone, if there is one."""
    words = text.casefold().split()
    plain = " ".join(words)
    found = [
        one
        for one in (
            CaseFigure.model_validate_json(figure)
            for (figure,) in connection.execute(NEWEST_OF_EACH_CASE)
        )
        if one.case.startswith(plain) or all(word in one.title.casefold() for word in words)
    ]
    exact = [one for one in found if one.title.casefold() == plain]
    return exact or found


def _condition(
    wanted: ResultFilter, meant: Sequence[CaseFigure] | None
) -> tuple[str, tuple[Any, ...]]:
    parts: list[tuple[str, Any]] = [
        ("host = ?", wanted.host),
        ("suite = ?", wanted.suite),
        ("begun >= ?", wanted.since_unix_s),
        ("begun < ?", wanted.until_unix_s),
    ]
    if meant is not None:
        cases = json.dumps([one.case for one in meant])
        having = 'job IN (SELECT job FROM figures WHERE "case" IN (SELECT value FROM json_each(?))'
        if wanted.verdict is None:
            parts.append((f"{having})", cases))
        else:
            verdict = f" AND json_extract(figure, '$.verdict') = '{wanted.verdict}')"
            parts.append((having + verdict, cases))
    elif wanted.verdict is not None:
        parts.append(("json_extract(verdicts, '$.' || ?) > 0", str(wanted.verdict)))
    used = [(text, value) for text, value in parts if value is not None]
    where = " AND ".join(text for text, _ in used)
    return f" WHERE {where}" if where else "", tuple(value for _, value in used)


def _newest(connection: sqlite3.Connection, case: str, jobs: Sequence[str]) -> Measurement | None:
    """Return a case in the newest of these jobs that has it."""
    row = connection.execute(
        "SELECT figure, json_extract(head, '$.host'), json_extract(head, ?) "
        'FROM figures JOIN jobs USING (job) WHERE "case" = ? '
        "AND job IN (SELECT value FROM json_each(?)) ORDER BY job DESC LIMIT 1",
        (f'$.facts."{FAR_HOST_FACT}"', case, json.dumps(jobs)),
    ).fetchone()
    if row is None:
        return None
    return Measurement(CaseFigure.model_validate_json(row[0]), tuple(filter(None, row[1:])))
