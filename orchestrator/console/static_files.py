"""The files that pages load, all from this package and the report's. Their addresses change with
their content, so that browsers may keep them for ever."""

import functools
import hashlib
from pathlib import Path

from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from hostbench.report.html import BLOCKS, THEME

DIRECTORY = Path(__file__).with_name("static")
PATH = "/ui/static"
_OF_REPORTS = {path.name: path for path in (THEME, BLOCKS)}
_FOR_EVER = "public, max-age=31536000, immutable"


@functools.cache
def address(name: str) -> str:
    """Return the address of a file: of static/, or a style sheet of the report."""
    path = _OF_REPORTS.get(name, DIRECTORY / name)
    return f"{PATH}/{name}?v={hashlib.sha256(path.read_bytes()).hexdigest()[:12]}"


class Files(StaticFiles):
    """The files themselves."""

    def __init__(self) -> None:
        super().__init__(directory=DIRECTORY)

    async def get_response(self, path: str, scope: Scope) -> Response:
        """Return a file. Raise HTTPException when there is none."""
        if (shared := _OF_REPORTS.get(path)) is not None:
            answer = self.file_response(shared, shared.stat(), scope)
        else:
            answer = await super().get_response(path, scope)
        if b"v=" in scope["query_string"]:
            answer.headers["Cache-Control"] = _FOR_EVER
        return answer
