"""Lists in pages, cut by the orchestrator and not by the browser."""

from collections.abc import Sequence
from typing import TypeVar

from pydantic import BaseModel

Item = TypeVar("Item")


class Pages(BaseModel):
    """Which part of a list a page shows: the items from `first` to `last`, counted from 1."""

    page: int
    pages: int
    first: int
    last: int
    items: int


def paged(items: Sequence[Item], page: int, size: int) -> tuple[Sequence[Item], Pages]:
    """Return the items of one page, counted from 1, and where it is. Beyond the last page, it is
    the last one."""
    pages = where(len(items), page, size)
    return items[max(0, pages.first - 1) : pages.last], pages


def where(count: int, page: int, size: int) -> Pages:
    """Return where a page is in a list of `count` items."""
    pages = max(1, -(-count // size))
    page = min(page, pages)
    start = (page - 1) * size
    return Pages(
        page=page,
        pages=pages,
        first=start + 1 if start < count else 0,
        last=min(start + size, count),
        items=count,
    )
