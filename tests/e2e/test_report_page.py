"""The report's page in a real browser: it opens at once, without a complaint, on every width, in
both themes and on paper, and it breaks none of the rules for accessible pages."""

import itertools
import re
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from hostbench.decisions.pair_rounds import matchings
from hostbench.decisions.pairs import pair_matrix
from hostbench.page.comparison import comparison_report
from hostbench.page.fleet import fleet_report
from hostbench.page.history import history_report
from hostbench.page.job import report_of
from hostbench.page.pairs import pairs_report
from hostbench.report.html import html
from tests.accessible import broken_rules
from tests.unit.disk_documents import disk_run
from tests.unit.gpu_documents import gpu_run
from tests.unit.memory_documents import memory_run
from tests.unit.net_documents import net_run
from tests.unit.report_documents import full_run, sampled_run
from tests.unit.test_comparison_page import compared
from tests.unit.test_fleet_page import made as campaign
from tests.unit.test_fleet_pairs import network
from tests.unit.test_history_page import made

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None,
        reason="NO BROWSER, the report's page is not tested: scripts/system-packages.sh browser",
    ),
    pytest.mark.exhaustive,
]
WIDTHS = (380, 768, 1280, 1600)
# Pages of decisions.
DECISIONS = ("history", "comparison", "fleet", "pairs")
OPENS_WITHIN_S = 2.0
# Of the charts that are shown, in pixels.
TEXT_HEIGHTS = """[...document.querySelectorAll('svg')].filter((svg) => svg.checkVisibility())
    .map((svg) => 11.5 * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width)"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # In a container as root, Chromium cannot have its sandbox.
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield one
        one.close()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    directory = tmp_path_factory.mktemp("pages")
    documents = {
        "full": full_run(),
        # axe takes time with every element: fewer cases, all kinds of content.
        "few": full_run(trials=2, workloads=("fma", "compare", "linpack")),
        "samples": sampled_run(),
        "memory": memory_run(trials=2),
        "disk": disk_run(trials=2),
        "net": net_run(trials=2),
        "gpu": gpu_run(),
    }
    reports = {name: report_of(one, "result.json") for name, one in documents.items()}
    reports["history"] = history_report(made())
    reports["comparison"] = comparison_report([compared(), compared(changed=1.0)])
    reports["fleet"] = fleet_report(campaign())
    own = network(node003=0.7, rack2=0.6)
    found = [m for one in matchings(own.nodes, 8, own.racks) for m in own.measured(one)]
    reports["pairs"] = pairs_report(pair_matrix(found, own.racks, title="net.tcp_stream"))
    for name, report in reports.items():
        (directory / f"{name}.html").write_text(html(report), encoding="utf-8")
    return {name: directory / f"{name}.html" for name in reports}


class Opened:
    """A page with whatever it complained of and whatever it requested from the network."""

    def __init__(self, context: BrowserContext, path: Path) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page: Page = context.new_page()
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        began_s = time.perf_counter()
        self.page.goto(path.as_uri())
        self.page.evaluate("document.body.offsetHeight")
        self.opened_s = time.perf_counter() - began_s


@pytest.mark.parametrize("name", ["full", "samples", "memory", "disk", "net", "gpu", *DECISIONS])
def test_it_opens_at_once_and_alone(browser: Browser, pages: dict[str, Path], name: str) -> None:
    context = browser.new_context()
    opened = Opened(context, pages[name])
    context.close()
    assert opened.complaints == []
    assert [url for url in opened.requests if not url.startswith("data:")] == [pages[name].as_uri()]
    assert opened.opened_s < OPENS_WITHIN_S


@pytest.mark.parametrize("name", ["few", "samples", "memory", "disk", "net", "gpu", "history"])
def test_accessibility(browser: Browser, pages: dict[str, Path], name: str) -> None:
    context = browser.new_context()
    found = broken_rules(Opened(context, pages[name]).page)
    context.close()
    assert found == {}


def each_width(page: Page) -> Iterator[int]:
    """Give the page each width in turn."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        yield width


@pytest.mark.parametrize("name", ["full", "memory", "disk", "net", "gpu", *DECISIONS])
def test_nothing_is_wider_than_the_window(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    context = browser.new_context()
    page = Opened(context, pages[name]).page
    reached = [page.evaluate("document.documentElement.scrollWidth") for _ in each_width(page)]
    assert reached == [*WIDTHS]
    context.close()


@pytest.mark.parametrize(("name", "marked", "unmarked"), [("pairs", 3, 0), ("fleet", 0, 3)])
def test_tables_show_all_their_cells_on_a_phone(
    browser: Browser, pages: dict[str, Path], name: str, marked: int, unmarked: int
) -> None:
    context = browser.new_context(viewport={"width": min(WIDTHS), "height": 900})
    page = Opened(context, pages[name]).page
    widths = page.evaluate(
        """() => {
            document.querySelectorAll('details').forEach((one) => one.open = true);
            return [...document.querySelectorAll('.scroll')].map(
                (one) => [one.querySelectorAll('.mark').length, one.scrollWidth - one.clientWidth]
            );
        }"""
    )
    assert sum(marks > 0 for marks, _ in widths) == marked
    assert [hidden for _, hidden in widths] == [0] * (marked + unmarked)
    context.close()


@pytest.mark.parametrize("name", ["full", "history"])
def test_the_answer_stands_apart_from_what_is_above_and_below(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    context = browser.new_context()
    page = Opened(context, pages[name]).page
    for width in each_width(page):
        boxes = page.evaluate(
            """[...document.querySelector('header').children].filter((one) => one.checkVisibility())
               .map((one) => [one.className, one.getBoundingClientRect()])"""
        )
        (place,) = [at for at, (kind, _) in enumerate(boxes) if kind.startswith("answer")]
        for (_, above), (_, below) in itertools.pairwise(boxes[place - 1 : place + 2]):
            assert below["top"] - above["bottom"] >= 8, width
    context.close()


@pytest.mark.parametrize("name", ["samples", "memory", "disk", "net", "gpu", "history"])
def test_the_text_of_charts_is_readable(
    browser: Browser, pages: dict[str, Path], name: str
) -> None:
    """Charts are scaled; of the two drawings exactly one is shown."""
    context = browser.new_context()
    page = Opened(context, pages[name]).page
    for width in each_width(page):
        heights = page.evaluate(TEXT_HEIGHTS)
        shown = page.locator("svg:visible").count()
        assert shown == page.locator("figure").count() == len(heights), width
        assert all(10 <= height <= 18 for height in heights), (width, heights)
    context.close()


def test_the_themes_differ_and_paper_is_light(browser: Browser, pages: dict[str, Path]) -> None:
    context = browser.new_context(color_scheme="dark")
    page = Opened(context, pages["samples"]).page
    background = "getComputedStyle(document.body).backgroundColor"
    bar = "getComputedStyle(document.querySelector('svg path')).fill"
    dark = (page.evaluate(background), page.evaluate(bar))
    page.emulate_media(media="print")
    paper = (page.evaluate(background), page.evaluate(bar))
    page.emulate_media(media="screen", color_scheme="light")
    light = (page.evaluate(background), page.evaluate(bar))
    assert paper == light != dark
    assert light[0] == "rgb(255, 255, 255)"
    context.close()


def test_paper(browser: Browser, pages: dict[str, Path], tmp_path: Path) -> None:
    """A4, and no more pages than somebody would print."""
    context = browser.new_context()
    page = Opened(context, pages["samples"]).page
    path = tmp_path / "page.pdf"
    page.pdf(path=path, prefer_css_page_size=True)
    content = path.read_bytes()
    assert b"/MediaBox [0 0 594.95996 841.91998]" in content
    assert 3 <= len(re.findall(rb"/Type /Page\b", content)) <= 12
    context.close()


def test_with_the_keyboard_alone(browser: Browser, pages: dict[str, Path]) -> None:
    context = browser.new_context(viewport={"width": 380, "height": 900})
    page = Opened(context, pages["samples"]).page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "To the figures"
    reached = set()
    for _ in range(60):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate("document.activeElement.tagName + document.activeElement.className")
        )
    assert {"A", "SUMMARY", "DIVscroll"} <= reached
    folded = page.locator("summary").first
    folded.focus()
    page.keyboard.press("Enter")
    assert page.evaluate("document.querySelector('details').open")
    context.close()
