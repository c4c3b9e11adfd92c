"""The site of `make docs`: built without a warning, then opened in a real browser from files and
from a web server, narrow and wide, without a complaint and without a request to anywhere else."""

import functools
import http.server
import re
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Request, expect, sync_playwright

from tests.machine_code import ROOT
from tests.patience import PATIENCE_S

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
# Six lanes at once make the build of the site take minutes.
pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(400)]
NARROW, WIDE = 380, 1440


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files and logs nothing."""

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site, made with the options of the Makefile."""
    (options,) = re.findall(r"^SITE_OPTIONS := (.+)$", (ROOT / "Makefile").read_text(), re.M)
    directory, trees = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("trees")
    ended = subprocess.run(
        [sys.executable, "-m", "sphinx", *options.split(), "-d", trees, ".", directory],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    return directory


@pytest.fixture(scope="module")
def addresses(site: Path) -> Iterator[tuple[str, str]]:
    """The site as files, and on a web server below a path."""
    handler = functools.partial(Quiet, directory=site.parent)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield site.as_uri(), f"http://127.0.0.1:{server.server_port}/{site.name}"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("NO BROWSER, the site is not opened: scripts/system-packages.sh browser")
    with sync_playwright() as playwright:
        # In a container as root, Chromium cannot have its sandbox.
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


def test_home_tutorial_and_search(chromium: Browser, addresses: tuple[str, str]) -> None:
    files, server = addresses
    for address, width in ((files, NARROW), (files, WIDE), (server, WIDE)):
        context = chromium.new_context(viewport={"width": width, "height": 900})
        page = context.new_page()
        page.set_default_timeout(PATIENCE_S * 1000)
        complaints, elsewhere = noted(page, address)
        walk(page, address, width)
        context.close()
        assert (complaints, elsewhere) == ([], []), (address, width)


def noted(page: Page, address: str) -> tuple[list[str], list[str]]:
    """What a page complains of from now on, and what it asks for outside the site."""
    complaints: list[str] = []
    elsewhere: list[str] = []
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))

    def note(request: Request) -> None:
        if not request.url.startswith((address, "data:")):
            elsewhere.append(request.url)

    page.on("request", note)
    return complaints, elsewhere


def walk(page: Page, address: str, width: int) -> None:
    """From the front page to the tutorial, and on by a search; no page is wider than the window."""
    page.goto(f"{address}/index.html")
    page.wait_for_url("**/docs/index.html")
    expect(page.locator("h1")).to_contain_text("hostbench")
    page.get_by_role("main").get_by_role("link", name="Tutorial").click()
    page.wait_for_url("**/docs/tutorial.html")
    expect(page.locator("article pre").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    # The field of a narrow window is behind a button.
    page.goto(f"{address}/search.html?q=pointer_chase")
    found = page.locator("#search-results li a").filter(has_text="Workloads")
    found.first.click()
    page.wait_for_url("**/docs/workloads.html*")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_page_leads_out_of_the_site_or_loads_from_elsewhere(site: Path) -> None:
    for file in site.rglob("*.html"):
        text = file.read_text()
        loaded = re.findall(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="(https?:[^"]*)"', text)
        assert loaded == [], file
        for target in re.findall(r'<a [^>]*href="(?![a-z]+:)([^"#?]+)', text):
            assert (file.parent / target).is_file(), f"{file.relative_to(site)}: {target}"
