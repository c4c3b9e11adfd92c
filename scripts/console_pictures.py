#!/usr/bin/env python3
"""Makes the pictures of the console that docs/console.md shows, from jobs that it runs on a stack.

usage: python scripts/console_pictures.py URL KEY_FILE docs [SUITE]

Runs the suite (quick) twice and then one long trial, which takes ten minutes on an idle host. The
stack's only host measures; KEY_FILE is secrets/api_key, and SUITE a suite that the stack has.
"""

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, sync_playwright

from hostbench.model.jobs import TERMINAL

WIDTH, HEIGHT_MOST = 1100, 900
LOOK_S = 1.0
LONG: dict[str, Any] = {"workload": "cpu.fma", "params": {"duration_s": 60}, "trials": 1}
# So many samples of a second make a chart.
SAMPLES = 25


def main(url: str, key_file: str, directory: str, suite: str = "quick") -> None:
    """Run the jobs, and take a picture of each page."""
    key = Path(key_file).read_text().strip()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with (
        httpx.Client(base_url=url, headers={"Authorization": f"Bearer {key}"}) as api,
        sync_playwright() as playwright,
    ):
        first, second = (_run(api, {"suite": suite}) for _ in range(2))
        # In a container as root, Chromium cannot have its sandbox.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(
            base_url=url, viewport={"width": WIDTH, "height": 800}, color_scheme="light"
        )
        page.goto("/ui/login")
        page.get_by_label("Key").fill(key)
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url("**/ui/hosts")
        page.goto(f"/ui/compare?a={first}&b={second}")
        _keep(page, Path(directory, "console-compare.png"))
        page.goto("/ui/hosts")
        _keep(page, Path(directory, "console-hosts.png"))
        job = _submit(api, LONG)
        page.goto(f"/ui/jobs/{job}")
        while (live := api.get(f"/ui/jobs/{job}.json").json()["live"]) is not None:
            if len(live["samples"]) >= SAMPLES:
                break
            time.sleep(LOOK_S)
        _keep(page, Path(directory, "console-job.png"))
        _wait(api, job)
        browser.close()


def _submit(api: httpx.Client, spec: dict[str, Any]) -> str:
    answer = api.post("/jobs", json=spec)
    if answer.is_error:
        raise SystemExit(answer.text)
    return str(answer.json()["id"])


def _wait(api: httpx.Client, job: str) -> None:
    while api.get(f"/jobs/{job}").json()["state"] not in TERMINAL:
        time.sleep(LOOK_S)


def _run(api: httpx.Client, spec: dict[str, Any]) -> str:
    job = _submit(api, spec)
    _wait(api, job)
    return job


def _keep(page: Page, picture: Path) -> None:
    height = min(HEIGHT_MOST, int(page.evaluate("document.documentElement.scrollHeight")))
    page.screenshot(
        path=picture, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}, full_page=True
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
