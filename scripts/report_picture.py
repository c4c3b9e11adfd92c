#!/usr/bin/env python3
"""Makes the picture of a report that README shows: its first screen, in the browser of the tests.

usage: python scripts/report_picture.py results/JOB/report.html docs/report.png
"""

import shutil
import sys
from pathlib import Path

from playwright.sync_api import sync_playwright

WIDTH = 1100
# Below what it shows, as at its sides.
MARGIN = 20


def main(page_path: str, picture: str) -> None:
    """Open the page and keep its head."""
    program = shutil.which("chromium") or shutil.which("google-chrome")
    with sync_playwright() as playwright:
        # In a container as root, Chromium cannot have its sandbox.
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 800}, color_scheme="light")
        page.goto(Path(page_path).absolute().as_uri())
        box = page.locator("header").bounding_box()
        assert box is not None
        height = box["y"] + box["height"] + MARGIN
        page.screenshot(
            path=picture, clip={"x": 0, "y": 0, "width": WIDTH, "height": height}, full_page=True
        )
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
