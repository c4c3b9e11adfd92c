"""The figures of the cases of a job that begins, in earlier jobs of its host."""

import sqlite3
from pathlib import Path

from hostbench.base.errors import UsageError
from hostbench.decisions.figures import facts_of, machine_of
from hostbench.decisions.index import FigureIndex
from hostbench.decisions.sets import EARLIER_MOST
from hostbench.model.decision import CaseFigure
from hostbench.model.result import SessionRecord
from hostbench.results.ids import job_ids

# Only so many of the newest jobs are looked at, so that a results directory whose index is missing
# does not hold up a job: the documents of these are read, and those of older jobs are not.
LOOKED_AT = 200


def earlier_figures(root: Path, session: SessionRecord) -> dict[str, list[CaseFigure]]:
    """Return for each case of a session its figures in earlier jobs, the newest first.

    Those of the newest EARLIER_MOST jobs that have the case, ran on the same machine, and differ in
    no fact that both have: another kernel or program may measure something else. Empty if the index
    cannot be used.
    """
    machine = machine_of(session.host)
    facts = facts_of(
        session.model_dump(mode="json", include={"hostbench", "programs", "far_host"}), session.host
    )
    try:
        newest = [job for job in job_ids(root) if job != session.job][-LOOKED_AT:]
        if not newest:
            return {}
        with FigureIndex(root) as index:
            alike = [
                head.job
                for head in index.heads(newest)
                if head.machine == machine
                and all(head.facts.get(name, value) == value for name, value in facts.items())
            ]
            return {
                case.case: index.newest_of_case(case.case, alike, EARLIER_MOST)
                for case in session.cases
            }
    except (sqlite3.Error, UsageError):
        return {}
