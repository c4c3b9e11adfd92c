"""What pages cost the host that may be measuring."""

import contextlib
import re
import threading
import time
from pathlib import Path

from tests.console.real_console import LONG, ConsoleStack
from tests.patience import quickest, wait_until

WATCHERS = 5
WATCHED_S = 8.0
# Of one CPU, for the orchestrator with five watchers of samples that come five times a second; a
# loaded machine makes the same work cost more.
SHARE_MOST = 0.03


def cpu_s(pid: int) -> float:
    """The CPU time of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / 100


def test_five_watchers_of_a_trial_cost_next_to_nothing(console: ConsoleStack) -> None:
    """They are stubs: a browser beside a measurement would be measured with it."""
    params = {**LONG["params"], "sample_interval_s": 0.2}
    job = console.orchestrator.submit(**{**LONG, "params": params})
    console.service.wait_for_program()
    seen = [0] * WATCHERS
    over = threading.Event()

    def watch(number: int) -> None:
        bob = console.logged_in("bob")
        with (
            contextlib.suppress(Exception),
            bob.client.stream("GET", f"/ui/jobs/{job}/live") as answer,
        ):
            for line in answer.iter_lines():
                seen[number] += len(re.findall(r"\[1\d{9}\.", line))
                if over.is_set():
                    return

    threads = [threading.Thread(target=watch, args=(number,)) for number in range(WATCHERS)]
    for thread in threads:
        thread.start()

    def share() -> float:
        before, began_s, counted = cpu_s(console.orchestrator.pid), time.monotonic(), min(seen)
        time.sleep(WATCHED_S)
        used = cpu_s(console.orchestrator.pid) - before
        # They did get them: five a second.
        assert min(seen) - counted > WATCHED_S * 2
        return used / (time.monotonic() - began_s)

    try:
        wait_until(lambda: min(seen) > 5)
        # What the orchestrator does once after its start may fall into the first.
        assert quickest(share, SHARE_MOST, tries=4) < SHARE_MOST
    finally:
        over.set()
        for thread in threads:
            thread.join(30)
