"""Bodies of every kind of damage, registrations and jobs: none costs an orchestrator an error, its
memory or its answer.

`make fuzz-api` goes on for HOSTBENCH_API_FUZZ_S, which are ten minutes there.
"""

import copy
import json
import os
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.faults.stack import StackParts
from tests.stack.orchestrator_process import API_KEY, SERVICE_KEY

SECONDS = float(os.environ.get("HOSTBENCH_API_FUZZ_S", "8"))
SEED = int(os.environ.get("HOSTBENCH_API_FUZZ_SEED", "20261125"))
MEMORY_MOST_KIB = 256 << 10
BODY_BYTES_MOST = 1 << 20
REGISTRATION: dict[str, Any] = {
    "host": "bench-9", "subsystem": "cpu", "url": "http://127.0.0.1:9",
    "instance": "5d41402abc4b2a76", "fence": 7, "held_by": None,
}  # fmt: skip
JOB: dict[str, Any] = {
    "suite": {
        "name": "fuzzed",
        "idle": {"policy": "force"},
        "repeats": {"min_trials": 1, "max_trials": 1},
        "cases": [{"workload": "cpu.fma", "grid": {"threads": [1, 2], "dtype": ["fp64"]}}],
        "published": {"tables": [{"rows": [[1, "a"]]}]},
    },
    "hosts": ["nowhere"],
    "priority": 3,
}
ODD: list[Any] = [
    None, True, -1, 0, 10**400, 1e308, "", "\0", "\ud800", "é" * 5000, "../../etc/passwd", [], {},
    [[[[]]]], {"": ""}, "http://[", "unix:/", "9" * 5000, -0.0, 2**63, {"workload": "cpu.fma"},
]  # fmt: skip
Place = tuple[Any, Any]


def places(value: Any) -> list[Place]:
    """Every container with an index in it."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    found: list[Place] = []
    for index, one in inner:
        found.append((value, index))
        if isinstance(one, dict | list):
            found += places(one)
    return found


def damaged(chance: random.Random, whole: dict[str, Any]) -> bytes:
    """A body with some values replaced, removed, repeated or nested, then some bytes changed."""
    body = json.loads(json.dumps(whole))
    for _ in range(chance.randint(0, 3)):
        if not (spots := places(body)):
            break
        container, index = chance.choice(spots)
        how = chance.randrange(5)
        if how == 0:
            del container[index]
        elif how == 1:
            container[index] = [container[index]] * chance.choice((2, 50, 2000))
        elif how == 2 and isinstance(container, dict):
            container[chance.choice(("x" * 300, "", "__class__", "name"))] = copy.deepcopy(
                chance.choice(ODD)
            )
        elif how == 3:
            container[index] = {str(one): container[index] for one in range(chance.randint(1, 200))}
        else:
            container[index] = copy.deepcopy(chance.choice(ODD))
    text = bytearray(json.dumps(body).encode()[:BODY_BYTES_MOST])
    for _ in range(chance.choice((0, 0, 0, 1, 5))):
        text[chance.randrange(len(text))] = chance.randrange(256)
    if chance.random() < 0.05:
        del text[chance.randrange(len(text)) :]
    return bytes(text)


def peak_kib(pid: int) -> int:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


@pytest.mark.timeout(SECONDS + 100)
def test_fuzzed_bodies(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    statuses: Counter[int] = Counter()
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator()
        until = time.monotonic() + SECONDS
        while time.monotonic() < until:
            path, whole, key = chance.choice(
                (("/hosts", REGISTRATION, SERVICE_KEY), ("/jobs", JOB, API_KEY))
            )
            body = damaged(chance, whole)
            headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
            answer = orchestrator.client.post(path, content=body, headers=headers)
            assert answer.status_code < 500, (SEED, answer.text, body[:2000])
            statuses[answer.status_code] += 1
        peak = peak_kib(orchestrator.pid)
        print(f"seed {SEED}: {dict(statuses)}, at most {peak >> 10} MiB")  # noqa: T201
        assert peak < MEMORY_MOST_KIB
        assert "Traceback" not in orchestrator.log
