"""Help: the docs and the API's description as pages, and words that explain themselves."""

import re
from typing import Any

from hostbench.model.baseline import HostWord
from hostbench.model.decision import Word
from hostbench.model.jobs import StackState
from hostbench.model.result import ConditionState, Verdict
from orchestrator.console.documents import DOCS, contents, document, meanings, names
from orchestrator.console.words import mark, with_code
from tests.console.real_console import ConsoleStack
from tests.console.test_pages import text_of, twin
from tests.each import each


def test_the_docs_explain_each_word_that_the_console_marks() -> None:
    words = {
        "verdict of a case": Verdict,
        "condition of the host": ConditionState,
        "word for a change": Word,
        "word for a host": HostWord,
        "state of a job": StackState,
    }
    known = {(one.kind, word) for word, several in meanings().items() for one in several}
    assert {(kind, str(word)) for kind, all_of in words.items() for word in all_of} <= known
    assert "clock_hertz" in meanings()["cpu.clock"][0].body
    assert {f"cpu.{name}" for name in ("fma", "clock")} <= meanings().keys()
    for word in ("figure", "interval", "undisturbed", "delivered", "verdict", "condition"):
        assert word in meanings()


def test_a_word_of_the_docs_is_a_button_and_another_is_text() -> None:
    assert 'popovertarget="word-not-comparable"' in mark("not comparable")
    assert mark("<b>").startswith('<span class="mark ') and "<b>" not in mark("<b>")


def test_code_in_a_text_of_a_table() -> None:
    assert with_code("the fact `sum` of <b>") == "the fact <code>sum</code> of &lt;b&gt;"


def test_what_a_page_of_the_docs_is_for_has_its_code() -> None:
    about = {entry.name: entry.about for _, entries in contents() for entry in entries}
    assert about["maps"] == "the pictures of hostbench run maps, with sources and traps"


def test_every_page_of_the_docs_is_there(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    index = bob.page("/ui/help")
    assert names() == sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "index") != []
    listed = [one.name for _, entries in contents() for one in entries]
    assert sorted(listed) == names(), "each page of docs/ needs a line in docs/index.md"
    anchors: dict[str, set[str]] = {}
    links: set[tuple[str, str]] = set()
    for name in names():
        assert f'href="/ui/help/{name}"' in index
        page = bob.page(f"/ui/help/{name}")
        assert " style=" not in page and "<!--" not in page and page.count("<h1>") == 1, name
        anchors[name] = set(re.findall(r' id="([^"]+)"', page))
        for target in re.findall(r'href="/ui/help/([a-z-]*(?:#[^"]*)?)"', page):
            links.add((target.partition("#")[0], target.partition("#")[2]))
        links |= {(name, anchor) for anchor in re.findall(r'href="#([^"]+)"', page)}
    broken = {
        (name, anchor)
        for name, anchor in links
        if name in anchors and anchor and anchor not in anchors[name]
    }
    assert broken == set()
    assert {name for name, _ in links} - anchors.keys() <= {"", "api-reference"}


def test_pictures_of_the_docs(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    answer = bob.get("/ui/help/files/report.png")
    assert answer.status_code == 200 and answer.headers["content-type"] == "image/png"
    for name in ("report.md", "..%2FMakefile", "nothing.png"):
        assert bob.get(f"/ui/help/files/{name}").status_code == 404, name


@each("name", ["nothing", "..%2F..%2Fetc%2Fpasswd", "%3Cscript%3E", "measurment"])
def test_a_page_that_is_not_there(console: ConsoleStack, name: str) -> None:
    answer = console.logged_in("bob").get(f"/ui/help/{name}")
    assert answer.status_code == 404 and "<script>" not in answer.text
    if name == "measurment":
        assert "did you mean" in text_of(answer.text)


def test_the_reference_has_every_call(console: ConsoleStack) -> None:
    schema: dict[str, Any] = console.orchestrator.client.get("/openapi.json").json()
    view = twin(console, "/ui/help/api-reference.json")
    there = {
        (one["method"], one["path"]) for chapter in view["chapters"] for one in chapter["calls"]
    }
    assert there == {
        (method.upper(), path) for path, calls in schema["paths"].items() for method in calls
    }
    bob = console.logged_in("bob")
    page = bob.page("/ui/help/api-reference")
    assert "curl --header @secrets/authorization URL/jobs" in page and "--json" in page
    for name in schema["components"]["schemas"]:
        text = text_of(bob.page(f"/ui/help/api-reference/{name}"))
        assert all(
            field in text for field in schema["components"]["schemas"][name].get("properties", ())
        )
    assert bob.get("/ui/help/api-reference/Nothing").status_code == 404


def test_docs_of_the_api_lead_to_it_and_load_nothing_from_elsewhere(console: ConsoleStack) -> None:
    answer = console.browser().get("/docs")
    assert (answer.status_code, answer.headers["location"]) == (303, "/ui/help/api-reference")


def test_titles_of_pages() -> None:
    page = document("console")
    assert page is not None and page.title == "The console" and page.headings
