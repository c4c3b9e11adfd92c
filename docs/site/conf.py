"""The site of `make docs`: Sphinx with the pages of docs/ and those they lead to.

Sphinx and not MkDocs: MyST parses with markdown-it, as the console and code-hosting sites do, so a
page reads the same in all three, and its search needs no server.
"""

import gc
import re
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx

# All pages stay in memory until the site is made. Looking for garbage among them only takes time.
gc.disable()

ROOT = Path(__file__).parents[2]
INDEX = "docs/index"

project = "hostbench"
extensions = ["myst_parser"]
root_doc = INDEX
# Links between the pages are relative to their files, so the sources keep their places.
include_patterns = [
    "docs/*.md",
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "GOVERNANCE.md",
    "SECURITY.md",
    "*/README.md",
    "services/*/README.md",
    "services/gpu/kernels/README.md",
]
# What Sphinx need not search for pages.
exclude_patterns = [
    ".*",
    "build",
    "dist",
    "results",
    "harness",
    "hostbench",
    "orchestrator",
    "tests",
]
myst_heading_anchors = 4
# The console and code-hosting sites leave quotes as they are, too.
smartquotes = False
myst_enable_extensions = ["html_image"]
highlight_language = "none"
# Examples leave lines out with an ellipsis, which no language has.
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = "hostbench"
html_favicon = "../../orchestrator/console/static/icon.svg"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_js_files = [("search.js", {"priority": 600})]
templates_path = ["templates"]
html_additional_pages = {"index": "start.html"}
html_copy_source = False
html_show_sphinx = False
html_show_copyright = False
html_use_index = False

_CHAPTER = re.compile(r"^## (.+)$", re.MULTILINE)
_ENTRY = re.compile(r"^- \[(.+?)\]\((.+?)\.md\)", re.MULTILINE)


def add_navigation(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Make the site's navigation of the lists of docs/index.md."""
    if docname != INDEX:
        return
    _, *chapters = _CHAPTER.split(source[0])
    for caption, text in zip(chapters[::2], chapters[1::2], strict=True):
        entries = "\n".join(f"{title} <{page}>" for title, page in _ENTRY.findall(text))
        source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"


def name_sources(_app: Sphinx, doctree: nodes.document) -> None:
    """Show links to files of the source as text with the path: the site does not hold them."""
    here = Path(doctree["source"]).parent
    links: list[Any] = [
        *doctree.findall(addnodes.download_reference),
        *doctree.findall(addnodes.pending_xref),
    ]
    for link in links:
        path = (here / link["reftarget"]).resolve()
        # A page is a pending_xref too, with its name instead of its file.
        if path.is_relative_to(ROOT) and path.exists() and path.suffix != ".md":
            shown = nodes.raw(
                "", f'<span title="{path.relative_to(ROOT)}">{link.astext()}</span>', format="html"
            )
            link.replace_self(shown)


def setup(app: Sphinx) -> dict[str, bool]:
    """Connect both; neither keeps anything, so pages may be made beside one another."""
    app.connect("source-read", add_navigation)
    # Before Sphinx notes which files it must copy.
    app.connect("doctree-read", name_sources, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
