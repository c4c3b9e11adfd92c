"""The document of a job, as it is stored, or else as far as the job has measured.

python -m orchestrator.results.document RESULTS JOB json|csv      it on standard output
"""

import sys
from pathlib import Path

from hostbench.results.csv import case_table
from hostbench.results.store import JobDirectory
from orchestrator.results.making import print_made


def main(results: str, job_id: str, form: str) -> int:
    """Print the document, or its table."""

    def made() -> bytes:
        document = JobDirectory(Path(results) / job_id).load()
        text = case_table(document) if form == "csv" else document.model_dump_json(indent=1)
        return text.encode()

    return print_made(made)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
