"""A page begins with its title; every relative link leads to a file, and to a heading of it."""

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    ROOT / "benchmarks/README.md",
    *ROOT.glob("docs/*.md"),
    *ROOT.glob("services/**/README.md"),
]
LINK = re.compile(r"\]\(([^()\s]+)\)")
OTHER_SITE = re.compile(r"[a-z]+:")


def prose(page: Path) -> str:
    """The text without code, in which brackets are no links."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.sub(r"`[^`\n]*`", "", text)


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub and GitLab make them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return frozenset(
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", title))
        .strip()
        .lower()
        .replace(" ", "-")
        for title in titles
    )


def broken(page: Path) -> list[str]:
    found = []
    for target in LINK.findall(prose(page)):
        if OTHER_SITE.match(target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        if not file.exists() or (anchor and file.suffix == ".md" and anchor not in anchors(file)):
            found.append(f"{page.relative_to(ROOT)}: {target}")
    return found


def test_every_page_begins_with_its_title() -> None:
    untitled = [page.name for page in PAGES if not page.read_text().startswith("# ")]
    assert untitled == []


def test_links_lead_somewhere() -> None:
    assert len(PAGES) > 25
    assert [one for page in PAGES for one in broken(page)] == []


def test_every_claim_of_the_readme_names_its_table() -> None:
    _, _, rest = (ROOT / "README.md").read_text().partition("\n## How good is it?\n")
    claims = re.findall(r"^- .*", rest.partition("\n## ")[0], re.MULTILINE)
    assert len(claims) > 5
    assert [one for one in claims if "](benchmarks/README.md#" not in one] == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Top\n[a](#top) [b](#away) [c](no.md) `[d](no.md)` [e](https://example.org)\n"
    )
    assert LINK.findall(prose(page)) == ["#top", "#away", "no.md", "https://example.org"]
    assert anchors(page) == {"top"}
