"""A stored job in the form that a client gets: its page, or the document or the table of its cases,
as far as the job has measured.

python -m orchestrator.results.forms RESULTS JOB html|json|csv prints it.
"""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from hostbench.page.output import Format, rendered
from hostbench.results.csv import case_table
from hostbench.results.store import JobDirectory
from orchestrator.results.making import print_made

FORMS: Mapping[str, Callable[[JobDirectory], str]] = {
    "html": lambda job: rendered(job, Format.HTML),
    "json": lambda job: job.load().model_dump_json(indent=1),
    "csv": lambda job: case_table(job.load()),
}


def main(results: str, job_id: str, form: str) -> int:
    """Print the job in this form; return the exit code."""
    job = JobDirectory(Path(results) / job_id)
    return print_made(lambda: FORMS[form](job).encode())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
