"""Takes and ends jobs as fast as it can, beside others that do the same: a process of its own.

    python -m tests.orchestrator.contender URL

until none is left in the queue.

Prints one JSON line a job: its id, hosts, fence, and when it held them by the monotonic clock.
"""

import json
import random
import sys
import time

from hostbench.model.jobs import StackState
from orchestrator.queue.connection import connect
from orchestrator.queue.jobs import JobStore

HELD_S = 0.004


def main(url: str) -> None:
    store = JobStore(connect(url))
    owner = f"{random.getrandbits(32):08x}"
    while store.queued():
        for job in store.dispatch(owner, 3):
            begun_s = time.monotonic()
            found = store.task(job.id)
            assert found is not None
            assert store.record(job, number=1, fields={"begun": "1"})
            time.sleep(random.random() * HELD_S)
            assert store.renew(job) == "held"
            ended_s = time.monotonic()
            assert store.finish(job, StackState.SUCCEEDED, None, {})
            line = {"id": job.id, "hosts": found[0].hosts, "fence": job.fence}
            sys.stdout.write(json.dumps({**line, "begun_s": begun_s, "ended_s": ended_s}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
