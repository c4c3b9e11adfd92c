"""What axe finds wrong with a page in the browser."""

from typing import Any

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


def broken_rules(page: Page) -> dict[str, Any]:
    """The rules for accessible pages that a page breaks, each with an element. The page has fewer
    rows afterwards."""
    page.evaluate(ONE_ROW_OF_A_KIND)
    found = Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    return {rule["id"]: rule["nodes"][0]["html"] for rule in found}
