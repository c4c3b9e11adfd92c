"""The console in a real browser: from the login to the end of a job, at every width, in both
themes, without a complaint, and by the rules for accessible pages."""

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote

import pytest
from markupsafe import escape
from playwright.sync_api import Browser, BrowserContext, Page, Route, expect, sync_playwright

from hostbench.base.place import CHECKOUT
from hostbench.decisions.index import FigureIndex
from hostbench.model.events import SampleEvent
from hostbench.model.job_events import SampleTakenEvent
from orchestrator.queue.connection import key
from tests.accessible import broken_rules
from tests.console.real_console import BOARDS, HOST, KEYS, LONG, SHORT, WATCHED, ConsoleStack
from tests.console.stored_series import store_series
from tests.each import each
from tests.patience import PATIENCE_S

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
pytestmark = [
    pytest.mark.skipif(
        CHROMIUM is None,
        reason="NO BROWSER, the console is not tested in one: scripts/system-packages.sh browser",
    ),
    pytest.mark.exhaustive,
]
BOARD_FILES = sorted((CHECKOUT / "grafana/dashboards").glob("*.json"))
SERIES, CASE = "series-1", "cpu.fma fp64 avx2 2 threads"
WIDTHS = (380, 768, 1440)
# The width of A4 between its margins, in pixels of CSS.
PAPER = 720
PATIENCE_MS = PATIENCE_S * 1000
REDUCED = "document.documentElement.scrollWidth"


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # In a container as root, Chromium cannot have its sandbox.
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        expect.set_options(timeout=PATIENCE_MS)
        yield one
        one.close()


class Visit:
    """A window with whatever it complained of, and every address that it requested."""

    def __init__(self, chromium: Browser, console: ConsoleStack, **options: Any) -> None:
        self.console = console
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.context: BrowserContext = chromium.new_context(base_url=console.url, **options)
        self.page: Page = self.context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        # The console also has what the policy of a page forbade.
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))

    def __enter__(self) -> "Visit":
        return self

    def __exit__(self, *exception: object) -> None:
        self.context.close()
        if exception[0] is None:
            assert self.complaints == []
            assert [url for url in self.requests if not url.startswith(self.console.url)] == []

    def log_in(self, name: str = "bob") -> Page:
        self.page.goto("/ui/login")
        self.page.get_by_label("Key").fill(KEYS[name][1])
        self.page.get_by_role("button", name="Log in").click()
        self.page.wait_for_url("**/ui/hosts")
        return self.page


def test_log_in_submit_and_watch_to_the_end(chromium: Browser, console: ConsoleStack) -> None:
    with Visit(chromium, console) as visit:
        page = visit.log_in()
        page.get_by_role("navigation").get_by_role("link", name="New measurement").click()
        page.get_by_label("Or one workload").select_option("cpu.clock")
        page.get_by_label("Duration").fill("2")
        page.get_by_label("Duration").press("Tab")
        page.get_by_label("Number of threads").select_option("1") if page.locator(
            "select#p-threads"
        ).count() else page.get_by_label("Number of threads").fill("1")
        page.locator("#p-sample_interval_s").fill("0.5")
        page.locator("#p-sample_interval_s").press("Tab")
        page.locator("summary", has_text="How").click()
        page.get_by_label("Trials per case").fill("2")
        page.get_by_label("Trials per case").press("Tab")
        page.get_by_label("When the host is not idle").select_option("force")
        expect(page.locator("#plan")).to_contain_text("1 case, 2 trials", timeout=PATIENCE_MS)
        page.get_by_role("button", name="Start the measurement").click()
        page.wait_for_url("**/ui/jobs/*")
        expect(page.locator("#figure")).to_contain_text("Hz", timeout=PATIENCE_MS)
        # Two charts, one above the other, whose time axes are the same.
        plots = page.locator(".chart .u-over")
        expect(plots).to_have_count(2, timeout=PATIENCE_MS)
        figure, disturbed = (plots.nth(number).bounding_box() for number in (0, 1))
        assert figure is not None and disturbed is not None
        assert (figure["x"], figure["width"]) == (disturbed["x"], disturbed["width"])
        assert figure["y"] < disturbed["y"]
        # The page becomes that of an ended job by itself.
        page.get_by_role("link", name="Read the report").wait_for(timeout=PATIENCE_MS)
        assert "succeeded" in page.locator("#status").inner_text()
        page.get_by_role("link", name="Read the report").click()
        assert "ad-hoc on bench-1" in page.get_by_role("heading", level=1).inner_text()


def test_cancel(chromium: Browser, console: ConsoleStack) -> None:
    job = console.orchestrator.submit(**LONG)
    with Visit(chromium, console) as visit:
        page = visit.log_in()
        page.goto(f"/ui/jobs/{job}")
        page.get_by_role("button", name="Cancel").click()
        page.get_by_text("cancelled by request").or_(
            page.locator("#status .mark.cancelled")
        ).first.wait_for(timeout=PATIENCE_MS)
        page.get_by_role("button", name="Resume").wait_for(timeout=PATIENCE_MS)


def test_a_fold_stays_open_and_keeps_the_focus_when_the_cases_are_loaded_again(
    chromium: Browser, console: ConsoleStack
) -> None:
    job = console.orchestrator.submit(**LONG)
    console.service.wait_for_program()
    with Visit(chromium, console) as visit:
        page = visit.log_in()
        page.goto(f"/ui/jobs/{job}")
        fold = page.locator("details.repeat")
        fold.locator("summary").focus()
        page.keyboard.press("Enter")
        expect(fold.locator("pre").first).to_be_visible()

        def load_again() -> None:
            fold.evaluate("one => { one.dataset.old = 'yes'; }")
            page.evaluate("htmx.trigger('#status', 'anew')")
            expect(page.locator("details.repeat:not([data-old])")).to_have_count(1)

        load_again()
        expect(fold.locator("pre").first).to_be_visible()
        expect(fold.locator("summary")).to_be_focused()
        # What was folded again stays so, too.
        page.keyboard.press("Enter")
        expect(fold.locator("pre").first).to_be_hidden()
        load_again()
        expect(fold.locator("pre").first).to_be_hidden()


# So that a test can count what each chart holds.
KEEP_CHARTS = """
window.charts = [];
let made;
Object.defineProperty(window, "uPlot", {
  get: () => made,
  set: (own) => {
    made = class extends own {
      constructor(...given) { super(...given); window.charts.push(this); }
    };
  },
});
"""
KEPT = "window.charts.map((one) => one.data[0].length)"
ELEMENTS = "document.getElementsByTagName('*').length"


def test_ten_thousand_samples_leave_the_page_as_it_was(
    chromium: Browser, console: ConsoleStack
) -> None:
    # Its own samples stay away.
    params = {**LONG["params"], "sample_interval_s": 60}
    job = console.orchestrator.submit(**{**LONG, "params": params})
    console.service.wait_for_program()
    path = f"/ui/jobs/{job}"
    events = (event for _, event in console.orchestrator.events(job))
    (case,) = next(event["cases"] for event in events if event["event"] == "plan")
    with Visit(chromium, console) as visit:
        page = visit.log_in()
        page.add_init_script(KEEP_CHARTS)
        page.goto(path)
        plots = page.locator(".chart .u-over")
        with console.redis.client() as client:

            def publish(numbers: range) -> None:
                for number in numbers:
                    client.publish(key("live", job), f" {sample_text(case['case'], number)}")

            publish(range(1000, 1001))
            expect(plots).to_have_count(2)
            elements = page.evaluate(ELEMENTS)
            publish(range(1001, 11_001))
        expect(page.locator("#figure")).to_have_text("11.00 kHz")
        assert page.evaluate(KEPT) == [600, 600]
        assert page.evaluate(ELEMENTS) < elements + 20
        # A page that is opened now gets as many, and the twin fewer.
        page.reload()
        expect(page.locator("#figure")).to_have_text("11.00 kHz")
        expect(plots).to_have_count(2)
        assert page.evaluate(KEPT) == [600, 600]
        samples = console.orchestrator.client.get(f"{path}.json").json()["live"]["samples"]
        assert len(samples) == 60 and samples[-1][1] == 11_000.0
        page.get_by_role("button", name="Cancel").click()
        page.locator("#status .mark.cancelled").wait_for()


def sample_text(case: str, number: int) -> str:
    """A sample after so many seconds, as the orchestrator publishes it."""
    sample = SampleEvent(
        event="sample",
        t_s=float(number),
        dt_s=1.0,
        metrics={"clock_hertz": float(number), "clean_slice_ratio": 1.0},
    )
    return SampleTakenEvent(case=case, sample=sample).model_dump_json()


def test_without_scripts(chromium: Browser, console: ConsoleStack) -> None:
    job = console.orchestrator.submit(**WATCHED)
    with Visit(chromium, console, java_script_enabled=False) as visit:
        page = visit.log_in()
        page.goto(f"/ui/new?workload=cpu.clock&host={HOST}&p.duration_s=0.05")
        page.get_by_role("button", name="Show the plan").click()
        assert "1 case" in page.locator("#plan").inner_text()
        console.orchestrator.wait_for(job)
        page.goto(f"/ui/jobs/{job}")
        assert "Hz" in page.locator("table.cases").inner_text()


def series(console: ConsoleStack) -> list[str]:
    """Results of a host that became slower."""
    jobs = store_series(console.orchestrator.results, SERIES, [1.0] * 12 + [0.9] * 12)
    with FigureIndex(console.orchestrator.results) as index:
        index.refresh()
    return jobs


def test_compare_two_sides_and_reach_a_job_by_its_point(
    chromium: Browser, console: ConsoleStack
) -> None:
    jobs = series(console)
    with Visit(chromium, console) as visit:
        page = visit.log_in()
        page.goto(f"/ui/results?host={SERIES}")
        for job in (*jobs[4:8], *jobs[-4:]):
            page.get_by_label(f"Compare {job}").check()
        page.get_by_role("button", name="Compare").click()
        page.wait_for_url("**/ui/compare?*")
        assert "worse" in page.locator(".answer .verdict").inner_text().lower()
        assert page.locator("svg.wide").is_visible() and not page.locator("svg.narrow").is_visible()
        # A word says what it means where it stands.
        word = page.locator("table button.word", has_text="worse").first
        meaning = page.locator("#word-worse")
        expect(meaning).to_be_hidden()
        word.hover()
        expect(meaning).to_be_visible()
        expect(meaning).to_contain_text("interval of the ratio does not contain 1")
        page.mouse.move(2, 2)
        expect(meaning).to_be_hidden()
        # On paper, too.
        page.emulate_media(media="print")
        expect(word).to_be_visible()
        page.emulate_media(media="screen")
        word.focus()
        page.keyboard.press("Enter")
        expect(meaning).to_be_visible()
        page.keyboard.press("Escape")
        expect(meaning).to_be_hidden()
        page.goto(f"/ui/history?host={SERIES}&case={quote(CASE)}")
        assert "Changed once." in page.locator(".answer").inner_text()
        page.locator(f'svg.wide a[href="/ui/jobs/{jobs[12]}"]').click()
        page.wait_for_url(f"**/ui/jobs/{jobs[12]}")


def links_of(board: Any) -> Iterator[str]:
    """The addresses that a part of a board leads to."""
    if isinstance(board, dict) and isinstance(board.get("url"), str):
        yield board["url"]
    parts = board.values() if isinstance(board, dict) else board if isinstance(board, list) else ()
    for part in parts:
        yield from links_of(part)


def test_from_a_job_to_the_boards_and_back(chromium: Browser, console: ConsoleStack) -> None:
    job = console.orchestrator.submit(**SHORT)
    console.orchestrator.wait_for(job)
    boards = {board["uid"]: board for board in map(json.loads, map(Path.read_text, BOARD_FILES))}
    values = {"${api}": console.url, "${__value.text}": job}
    target, report = (
        re.sub(r"\$\{[^}]*\}", lambda one: values[one[0]], link)
        for link in sorted({url for url in links_of([*boards.values()]) if "${api}" in url})
    )
    requested: list[str] = []

    def board(route: Route) -> None:
        """No Grafana runs here: this page has the boards' link to a job, filled in as there."""
        requested.append(route.request.url)
        route.fulfill(body=f'<a href="{escape(target)}">{job}</a>', content_type="text/html")

    with Visit(chromium, console) as visit:
        visit.context.route(f"{BOARDS}/d/**", board)
        page = visit.log_in()
        page.goto(f"/ui/jobs/{job}")
        page.get_by_role("link", name="Samples on the boards").click()
        page.get_by_role("link", name=job).click()
        # The login holds: boards and console are of the same site.
        page.wait_for_url(f"**/ui/jobs/{job}")
        expect(page.get_by_role("link", name="Read the report")).to_be_visible()
        page.goto(report)
        expect(page.get_by_role("heading", level=1)).to_have_text("ad-hoc on bench-1")
        visit.requests = [url for url in visit.requests if url not in requested]
    # The board is there, and has the variables that were chosen.
    (path, _, query) = requested.pop().partition("?")
    named = {one["name"] for one in boards[path.rpartition("/")[2]]["templating"]["list"]}
    chosen = {name: value for name, value in parse_qs(query).items() if name.startswith("var-")}
    assert chosen == {"var-job": [job], "var-host": [HOST]}
    assert {name.removeprefix("var-") for name in chosen} <= named


def test_words_and_results_without_scripts(chromium: Browser, console: ConsoleStack) -> None:
    series(console)
    with Visit(chromium, console, java_script_enabled=False) as visit:
        page = visit.log_in()
        page.goto("/ui/results")
        page.get_by_label("Host").fill(SERIES)
        page.get_by_role("button", name="Show").click()
        assert "24 results" in page.locator("#choose").inner_text()
        word = page.locator("table button.word", has_text="clean").first
        word.click()
        expect(page.locator("#word-clean")).to_be_visible()
        # A figure of a host leads to the commands that measure its case again.
        page.goto(f"/ui/hosts?q={SERIES}")
        page.locator(".card a.cell").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/ui/jobs/*#chosen")
        expect(page.locator("#chosen pre").first).to_contain_text("hostbench submit --workload")
        expect(page.locator("#chosen pre").first).to_be_in_viewport()


def pages(console: ConsoleStack) -> dict[str, str]:
    """A page of each kind."""
    done, runs = console.orchestrator.submit(**SHORT), console.orchestrator.submit(**LONG)
    console.orchestrator.wait_for(done)
    console.service.wait_for_program()
    jobs = series(console)
    return {
        "hosts": "/ui/hosts",
        "form": f"/ui/new?workload=cpu.fma&host={HOST}&p.threads=0",
        "plan": f"/ui/new?suite=quick&host={HOST}",
        "ended": f"/ui/jobs/{done}",
        "a case of it": f"/ui/jobs/{jobs[0]}?case={quote(CASE)}",
        "running": f"/ui/jobs/{runs}",
        "results": f"/ui/results?host={SERIES}",
        "case": f"/ui/results?host={SERIES}&case={quote(CASE)}",
        "comparison": f"/ui/compare?a={','.join(jobs[:6])}&b={','.join(jobs[-6:])}",
        "sides": "/ui/compare",
        "history": f"/ui/history?host={SERIES}&case={quote(CASE)}",
        "headlines": f"/ui/history?host={SERIES}",
        "doctor": f"/ui/doctor?host={SERIES}",
        "help": "/ui/help",
        "document": "/ui/help/measurement",
        "reference": "/ui/help/api-reference",
        "schema": "/ui/help/api-reference/JobSpec",
    }


@pytest.mark.timeout(400)
def test_every_page_at_every_width_in_both_themes(chromium: Browser, console: ConsoleStack) -> None:
    with Visit(chromium, console) as visit:
        page = visit.page
        page.goto("/ui/login")
        found: dict[str, Any] = {"login": broken_rules(page)}
        visit.log_in()
        for name, path in pages(console).items():
            page.goto(path)
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                if (wide := page.evaluate(REDUCED)) != width:
                    found[f"{name} {width}"] = wide
            page.emulate_media(media="print")
            page.set_viewport_size({"width": PAPER, "height": 900})
            if (wide := page.evaluate(REDUCED)) != PAPER:
                found[f"{name} on paper"] = wide
            # A line may end at a space, and not at one before a percent sign.
            found[f"{name}, percent signs"] = re.findall(
                r"\d %(?!\w)", page.locator("body").inner_text()
            )
            found[name] = broken_rules(page)
        console.end_all()
    assert {name: wrong for name, wrong in found.items() if wrong} == {}


LINE = "one => getComputedStyle(one).textDecorationLine"
COLOUR_OF_LINE = "one => getComputedStyle(one).textDecorationColor"
COLOUR = "one => getComputedStyle(one).color"


@each("theme", ["light", "dark"])
def test_a_figure_looks_like_the_link_that_it_is(
    chromium: Browser, console: ConsoleStack, theme: str
) -> None:
    series(console)
    with Visit(chromium, console, color_scheme=theme) as visit:
        page = visit.log_in()
        page.goto(f"/ui/hosts?q={SERIES}")
        quiet = page.locator("p.quiet").first.evaluate(COLOUR)
        for figure in page.locator("a.cell").all():
            assert figure.evaluate(LINE) == "underline"
            assert figure.evaluate(COLOUR_OF_LINE) == quiet


WITHIN_TABLE = """one => {
  const own = one.getBoundingClientRect();
  const seen = one.closest(".scroll").getBoundingClientRect();
  return own.width > 0 && own.left >= seen.left && own.right <= seen.right + 1;
}"""


def test_commands_stay_in_sight_beside_a_wide_table(
    chromium: Browser, console: ConsoleStack
) -> None:
    jobs = series(console)
    with Visit(chromium, console) as visit:
        page = visit.log_in()
        for path in (
            f"/ui/jobs/{jobs[0]}",
            f"/ui/results?host={SERIES}&case={quote(CASE)}",
            f"/ui/compare?a={','.join(jobs[:6])}&b={','.join(jobs[-6:])}",
            f"/ui/history?host={SERIES}",
        ):
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 900})
                page.goto(path)
                fold = page.locator("details.repeat").nth(1)
                assert fold.locator("summary").evaluate(WITHIN_TABLE), (path, width)
                fold.locator("summary").click()
                expect(fold.locator("pre").first).to_be_visible()
                assert fold.locator("pre").first.evaluate(WITHIN_TABLE), (path, width)


def test_with_the_keyboard_alone(chromium: Browser, console: ConsoleStack) -> None:
    with Visit(chromium, console) as visit:
        page = visit.log_in()
        page.goto("/ui/hosts")
        page.keyboard.press("Tab")
        focused = "document.activeElement.textContent.trim()"
        assert page.evaluate(focused) == "Skip to content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.goto("/ui/hosts")
        reached = set()
        for _ in range(12):
            page.keyboard.press("Tab")
            reached.add(page.evaluate(focused))
            assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") not in (
                "none",
                "",
            )
        assert {"hostbench", "Hosts", "New measurement", "Log out"} <= reached


def test_the_first_page_is_light(chromium: Browser, console: ConsoleStack) -> None:
    with Visit(chromium, console) as visit:
        page = visit.log_in()
        sizes: list[int] = []
        page.on("response", lambda answer: sizes.append(len(answer.body())))
        page.goto("/ui/hosts", wait_until="load")
        assert sum(sizes) < 150_000, sizes
