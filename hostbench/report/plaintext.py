"""Texts from outside (host names, labels, what tools printed) as plain text of one line."""

import unicodedata

# Control characters, those that turn the direction of writing around or do not show at all, and
# what is no character: Unicode's general categories.
_NO_TEXT = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def one_line(text: str) -> str:
    """`text` with spaces for line ends, and a sign in place of every character that is no text."""
    # What is printable is of no other category: most texts are, and there are many.
    if text.isprintable():
        return text
    return "".join(_shown(character) for character in text)


def _shown(character: str) -> str:
    if character in "\n\r\t":
        return " "
    is_text = unicodedata.category(character) not in _NO_TEXT
    return character if is_text else "\N{REPLACEMENT CHARACTER}"
