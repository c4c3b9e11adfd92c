"""What axe finds wrong with a page in the browser."""

from typing import Any, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

# It opens whatever is folded. axe takes time with every element, and rows of a table with the same
# elements and classes are alike.
ONE_ROW_OF_A_KIND = """() => {
    document.querySelectorAll('details').forEach((one) => { one.open = true; });
    document.querySelectorAll('tbody').forEach((body) => {
        const seen = new Set();
        for (const row of [...body.rows]) {
            const plain = row.innerHTML.replace(/>[^<]*/g, '');
            const kind = plain.replace(/(id|href|d|title)="[^"]*"/g, '');
            if (seen.has(kind)) row.remove();
            seen.add(kind);
        }
    });
}"""


# All rules in one theme. What the other one changes of a page is its colours.
RULES_OF_THEMES: dict[Literal["light", "dark"], dict[str, Any]] = {
    "light": {},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}},
}


def broken_rules(page: Page) -> dict[str, Any]:
    """The rules for accessible pages that a page breaks, each with its theme and an element. The
    page has fewer rows afterwards, and the last theme."""
    page.evaluate(ONE_ROW_OF_A_KIND)
    broken = {}
    for theme, rules in RULES_OF_THEMES.items():
        page.emulate_media(media="screen", color_scheme=theme)
        found = Axe().run(page, options={"resultTypes": ["violations"], **rules}).response
        for rule in found["violations"]:
            broken[f"{rule['id']}, {theme}"] = rule["nodes"][0]["html"]
    return broken
