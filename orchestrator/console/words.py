"""Words that explain themselves: verdicts, conditions, changes and states."""

from markupsafe import Markup

from hostbench.report.plaintext import one_line
from orchestrator.console.documents import WORKLOAD, Meaning, meanings


def slug(word: str) -> str:
    """Return a word as a part of ids and of classes."""
    return word.lower().replace(" ", "-").replace(".", "-")


def mark(word: str, text: str = "") -> Markup:
    """Return a word with the colour that says the same. Where the docs explain it, it is a button
    that shows what they say; the layout has these texts once a page."""
    shown = text or word
    if word not in meanings():
        return Markup('<span class="mark {}">{}</span>').format(slug(word), shown)
    return Markup(
        '<button type="button" class="mark {0} word" popovertarget="word-{0}">{1}</button>'
    ).format(slug(word), shown)


def term(word: str, text: str) -> Markup:
    """Return the title of a column or the like, which explains itself in the same way."""
    if word not in meanings():
        return Markup("{}").format(text)
    return Markup(
        '<button type="button" class="term word" popovertarget="word-{0}">{1}</button>'
    ).format(slug(word), text)


def with_code(text: str) -> Markup:
    """Return a text of a program's table, in which ` stands before and after code."""
    parts = one_line(text).split("`")
    return Markup("").join(
        Markup("<code>{}</code>").format(part) if number % 2 else part
        for number, part in enumerate(parts)
    )


def explained(page: str) -> list[tuple[str, tuple[Meaning, ...]]]:
    """Return the words that a page's content has, with what they mean; all of them for a page of
    which parts are loaded again."""
    changes = "hx-get=" in page
    return [
        (f"word-{slug(word)}", meaning)
        for word, meaning in meanings().items()
        if (changes and meaning[0].kind != WORKLOAD) or f'popovertarget="word-{slug(word)}"' in page
    ]
