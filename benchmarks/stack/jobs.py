"""Jobs through a running stack, for the benchmarks of this directory.

HOSTBENCH_URL and HOSTBENCH_API_KEY_FILE say where it is; by default the one that `make up` started.
"""

import os
import time
from pathlib import Path
from typing import Any

import httpx

from hostbench.model.jobs import TERMINAL

URL = os.environ.get("HOSTBENCH_URL", "http://127.0.0.1:8000")
KEY_FILE = Path(os.environ.get("HOSTBENCH_API_KEY_FILE", "secrets/api_key"))
# Long, so that polling does not disturb the running trial.
POLL_S = 1.0

Job = dict[str, Any]


def client(url: str = URL) -> httpx.Client:
    """Return a client of the orchestrator."""
    headers = {"Authorization": f"Bearer {KEY_FILE.read_text().strip()}"}
    return httpx.Client(base_url=url, headers=headers, timeout=30.0)


def submit(api: httpx.Client, spec: Job) -> str:
    """Submit a job and return its id."""
    answer = api.post("/jobs", json=spec)
    if answer.status_code != httpx.codes.ACCEPTED:
        raise SystemExit(f"POST /jobs: {answer.status_code}: {answer.text}")
    return str(answer.json()["id"])


def ended(api: httpx.Client, job: str) -> Job:
    """Wait until the job has ended and return it."""
    while True:
        view: Job = api.get(f"/jobs/{job}").raise_for_status().json()
        if view["state"] in TERMINAL:
            return view
        time.sleep(POLL_S)


def result(api: httpx.Client, spec: Job) -> Job:
    """Submit a job, wait for it and return its result document. Raise SystemExit when it does not
    succeed."""
    job = submit(api, spec)
    view = ended(api, job)
    if view["state"] != "succeeded":
        raise SystemExit(f"job {job} {view['state']}: {view['reason']}")
    document: Job = api.get(f"/jobs/{job}/result").raise_for_status().json()
    return document
