"""Texts from outside (host names, labels, output of tools) as plain text of one line."""

import unicodedata

# Unicode's general categories of characters that are not text: control characters, those that are
# invisible or change the direction of writing, and unassigned ones.
_NO_TEXT = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def one_line(text: str) -> str:
    """Return `text` with spaces for line ends, and a sign in place of every character that is not
    text."""
    # A printable text has no such characters: most texts are printable, and there are many.
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\r\t":
        return " "
    is_text = unicodedata.category(character) not in _NO_TEXT
    return character if is_text else "\N{REPLACEMENT CHARACTER}"
