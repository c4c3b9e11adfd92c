"""hostbench with a count of its calls to the API of a cluster.

usage: python -m benchmarks.fleet.counted FILE ARGUMENT…
Runs `hostbench ARGUMENT…` and writes its HTTP requests by method into FILE as JSON.
"""

import json
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import httpx2

from hostbench.__main__ import main

calls: Counter[str] = Counter()


def count(client: type) -> None:
    """Count the requests of a class of clients."""
    send = client.send  # type: ignore[attr-defined]

    def counted(self: Any, request: httpx2.Request, **options: Any) -> Any:
        calls[request.method] += 1
        return send(self, request, **options)

    client.send = counted  # type: ignore[attr-defined]


if __name__ == "__main__":
    count(httpx2.Client)
    count(httpx2.AsyncClient)
    path, sys.argv[1:] = Path(sys.argv[1]), sys.argv[2:]
    code = main()
    path.write_text(json.dumps(calls))
    sys.exit(code)
