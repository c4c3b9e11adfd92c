"""The pages of docs/ as HTML, and what their tables say of words."""

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markupsafe import Markup, escape

from hostbench.base.place import CHECKOUT

DOCS = CHECKOUT / "docs"
ADDRESS = "/ui/help"
# What pages show besides text.
PICTURES = {".png": "image/png", ".svg": "image/svg+xml"}
_INDEX = "index"
_NAME = re.compile(r"[a-z0-9][a-z0-9-]*", re.ASCII)
_NO_SLUG = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Document:
    """A page of docs/. `lead`: its first paragraph; `headings`: (anchor, title) of its chapters."""

    name: str
    title: str
    lead: str
    body: Markup
    headings: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Meaning:
    """What a word means, as the docs have it, and where they say more. `kind`: what it is a word
    for."""

    word: str
    kind: str
    body: Markup
    address: str


@dataclass(frozen=True)
class Entry:
    """A page in the contents: the words that docs/index.md has for it. `about`: what it is for."""

    name: str
    title: str
    about: str


@functools.cache
def contents() -> tuple[tuple[str, tuple[Entry, ...]], ...]:
    """Return the chapters of docs/index.md with their pages, those alone that the console has."""
    if document(_INDEX) is None:
        return ()
    chapters: list[tuple[str, list[Entry]]] = []
    tokens = _tokens(_INDEX)
    for number, token in enumerate(tokens):
        if token.type == "heading_open" and token.tag == "h2":
            chapters.append((_plain(tokens[number + 1]), []))
        elif token.type == "list_item_open":
            # A link, then a colon and the words.
            parts = tokens[number + 2].children or []
            name = str(parts[0].attrs["href"]).removesuffix(".md")
            if document(name) is not None:
                about = _text(parts[3:]).removeprefix(": ")
                chapters[-1][1].append(Entry(name, parts[1].content, about))
    return tuple((title, tuple(entries)) for title, entries in chapters if entries)


def names() -> list[str]:
    """Return the names of all pages; the one that lists them is Help itself."""
    return sorted(path.stem for path in DOCS.glob("*.md") if path.stem != _INDEX)


def document(name: str) -> Document | None:
    """Return a page; None: there is none of this name."""
    return _document(name) if _NAME.fullmatch(name) and (DOCS / f"{name}.md").is_file() else None


def picture(name: str) -> Path | None:
    """Return a picture of the docs; None: there is none of this name."""
    path = DOCS / name
    known = {one.name for one in DOCS.iterdir() if one.suffix in PICTURES} if DOCS.is_dir() else ()
    return path if name in known else None


@functools.cache
def _document(name: str) -> Document:
    tokens = _tokens(name)
    _name_headings(tokens)
    titles = [
        (token.tag, str(token.attrs["id"]), _plain(tokens[number + 1]))
        for number, token in enumerate(tokens)
        if token.type == "heading_open"
    ]
    leads = (
        _plain(tokens[number + 1])
        for number, token in enumerate(tokens)
        if token.type == "paragraph_open"
    )
    # The layout has the title.
    skipped = 3 if tokens and tokens[0].tag == "h1" else 0
    return Document(
        name=name,
        title=titles[0][2] if titles else name,
        lead=next(leads, ""),
        body=_html(tokens[skipped:], ""),
        headings=tuple((anchor, title) for tag, anchor, title in titles if tag == "h2"),
    )


def _tokens(name: str) -> list[Token]:
    return _markdown().parse((DOCS / f"{name}.md").read_text(encoding="utf-8"))


@functools.cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": True}, renderer_cls=_Renderer).enable("table")


def _html(tokens: Sequence[Token], page: str) -> Markup:
    """Return tokens as HTML. `page`: the address before anchors in the same page."""
    markdown = _markdown()
    return Markup(markdown.renderer.render(tokens, markdown.options, {"page": page}))  # noqa: S704


def inline(text: str) -> Markup:
    """Return a text with code in it as HTML."""
    return Markup(_markdown().renderInline(text))  # noqa: S704


def prose(text: str) -> Markup:
    """Return the description of a model as HTML: paragraphs, lists and code."""
    return _html(_markdown().parse(text), "")


class _Renderer(RendererHTML):
    """Writes what the console's policy allows: no styles in a page, and links that lead
    somewhere."""

    def html_block(self, *_rest: Any) -> str:
        """Leave out comments, the only HTML in our pages."""
        return ""

    def html_inline(self, *_rest: Any) -> str:
        """The same within a line."""
        return ""

    def table_open(self, _tokens: Any, _number: int, _options: Any, env: Any) -> str:
        """Have a wide table scrolled by itself, under a name of its own."""
        env["tables"] = count = env.get("tables", 0) + 1
        name = f"Table {count}"
        return f'<div class="scroll" tabindex="0" role="region" aria-label="{name}"><table>'

    def table_close(self, *_rest: Any) -> str:
        """Close it."""
        return "</table></div>"

    def fence(self, tokens: Sequence[Token], number: int, *_rest: Any) -> str:
        """Have a wide block of code scrolled by itself."""
        return (
            f'<pre class="command" tabindex="0"><code>{escape(tokens[number].content)}</code></pre>'
        )

    def renderToken(  # noqa: N802
        self, tokens: Sequence[Token], number: int, options: Any, env: Any
    ) -> str:
        """Replace the style of a cell by a class, and links of files by those of pages."""
        token = tokens[number]
        if token.type in ("th_open", "td_open") and token.attrs.pop("style", ""):
            token.attrs["class"] = "figure"
        if token.type == "th_open":
            token.attrs["scope"] = "col"
        if token.type == "link_open":
            address = _address(str(token.attrs.get("href", "")), env.get("page", ""))
            if address is None:
                # What is not here: a file of the source.
                return f'<span class="quiet" title="{escape(token.attrs["href"])}">'
            token.attrs["href"] = address
            token.meta["closes"] = "a"
        if token.type == "link_close" and _opening(tokens, number) is None:
            return "</span>"
        return super().renderToken(tokens, number, options, env)

    def image(self, tokens: Sequence[Token], number: int, options: Any, env: Any) -> str:
        """Show a picture of the docs."""
        token = tokens[number]
        token.attrs["src"] = f"{ADDRESS}/files/{token.attrs['src']}"
        return str(super().image(tokens, number, options, env))


def _opening(tokens: Sequence[Token], number: int) -> str | None:
    """Return where the link leads that ends here; links do not contain others."""
    opened = next(one for one in reversed(tokens[:number]) if one.type == "link_open")
    return "a" if opened.meta.get("closes") else None


def _address(target: str, page: str) -> str | None:
    """Return where a link of a page leads in the console; None: nowhere."""
    if target.startswith("#"):
        return page + target
    if target.startswith(("https://", "http://")):
        return target
    file, _, anchor = target.partition("#")
    name = file.removesuffix(".md")
    if name == file or not (DOCS / file).is_file() or not _NAME.fullmatch(name):
        return None
    path = ADDRESS if name == _INDEX else f"{ADDRESS}/{name}"
    return path + (f"#{anchor}" if anchor else "")


def _name_headings(tokens: Sequence[Token]) -> None:
    """Give each heading the anchor that links between the pages use."""
    used: dict[str, int] = {}
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            slug = _NO_SLUG.sub("", _plain(tokens[number + 1]).lower()).replace(" ", "-")
            count = used[slug] = used.get(slug, -1) + 1
            token.attrs["id"] = f"{slug}-{count}" if count else slug


def _plain(token: Token) -> str:
    return _text(token.children or ())


def _text(parts: Iterable[Token]) -> str:
    return "".join(
        one.content if one.type in ("text", "code_inline") else " " * (one.type == "softbreak")
        for one in parts
    )


# ---- words ----

# Which tables explain words: by the page and the titles of the first two columns, what the words
# are for.
_TABLES: dict[tuple[str, ...], str] = {
    ("measurement", "in a result", "what it says"): "in a result",
    ("measurement", "verdict", "when"): "verdict of a case",
    ("measurement", "condition", "its share"): "condition of the host",
    ("comparing", "word", "meaning"): "word for a change",
    ("comparing", "word for a host", "meaning"): "word for a host",
    ("api", "state", "meaning"): "state of a job",
}


WORKLOAD = "workload"
_WORKLOADS = "workloads"


@functools.cache
def meanings() -> Mapping[str, tuple[Meaning, ...]]:
    """Return what the docs' tables say of verdicts, conditions, changes, hosts and states, and of
    each workload with its figure. A word may be of several kinds."""
    found: dict[str, tuple[Meaning, ...]] = {}
    for name in dict.fromkeys(table[0] for table in _TABLES):
        if document(name) is not None:
            for one in _words(name):
                found[one.word] = (*found.get(one.word, ()), one)
    if document(_WORKLOADS) is not None:
        found |= {one.word: (one,) for one in _workloads()}
    return found


def _words(name: str) -> Iterator[Meaning]:
    tokens, anchor, page = _tokens(name), "", f"{ADDRESS}/{name}"
    _name_headings(tokens)
    columns: tuple[str, ...] = ()
    cells: list[Token] = []
    for number, token in enumerate(tokens):
        if token.type == "heading_open":
            anchor = str(token.attrs["id"])
        elif token.type == "tr_open":
            cells = []
        elif token.type in ("th_open", "td_open"):
            cells.append(tokens[number + 1])
        elif token.type == "tr_close" and tokens[number + 1].type == "thead_close":
            columns = tuple(_plain(cell) for cell in cells[:2])
        elif token.type == "tr_close" and (kind := _TABLES.get((name, *columns))):
            for word in _plain(cells[0]).split(", "):
                yield Meaning(word, kind, _clause([cells[1]], page), f"{page}#{anchor}")


def _workloads() -> Iterator[Meaning]:
    """Yield each workload: its first paragraph, and the metric in bold."""
    tokens, page = _tokens(_WORKLOADS), f"{ADDRESS}/{_WORKLOADS}"
    _name_headings(tokens)
    starts = [
        number
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.tag == "h3"
    ]
    for start, end in itertools.pairwise([*starts, len(tokens)]):
        about = next(one for one in tokens[start + 3 : end] if one.type == "inline")
        body = _clause([about], page)
        for number in range(start, end):
            if any(one.type == "strong_open" for one in tokens[number].children or ()):
                # The first cell of four; between two of them are an end and a beginning.
                name, meaning = _html([tokens[number]], page), _clause([tokens[number + 9]], page)
                body += Markup(". Its figure, {}: {}").format(name, meaning)
                break
        anchor = tokens[start].attrs["id"]
        yield Meaning(_plain(tokens[start + 1]), WORKLOAD, body, f"{page}#{anchor}")


def _clause(tokens: Sequence[Token], page: str) -> Markup:
    """Return a sentence as HTML without its full stop."""
    return _html(tokens, page).rstrip(".")
