"""The page of a job.

python -m orchestrator.results.page RESULTS JOB      the page on standard output
"""

import sys
from pathlib import Path

from hostbench.page.output import Format, rendered
from hostbench.results.store import JobDirectory
from orchestrator.results.making import print_made


def main(results: str, job_id: str) -> int:
    """Print the page."""
    directory = JobDirectory(Path(results) / job_id)
    return print_made(lambda: rendered(directory, Format.HTML).encode())


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
