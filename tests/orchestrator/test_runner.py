"""A job that cannot be started, a report that is outdated, a clock for what is published."""

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from hostbench.results.store import JobDirectory
from orchestrator.queue.hosts import HostStore
from orchestrator.queue.jobs import JobStore
from orchestrator.queue.keeper import Keeper, now_s
from orchestrator.results.reporting import kept_page
from orchestrator.run.events import LivePublisher
from orchestrator.run.runner import Runner, Surroundings
from tests.orchestrator.jobs import queue, register

UNUSED = cast(Any, None)


@pytest.mark.parametrize("lacking", ["thread", "descriptor"])
def test_a_job_that_cannot_be_started_is_queued_again(
    store: JobStore, hosts: HostStore, monkeypatch: pytest.MonkeyPatch, lacking: str
) -> None:
    register(hosts, "a")
    job_id = queue(store, "a")
    (job,) = store.dispatch("one", 1)
    keeper = Keeper(store.renew)
    runner = Runner(
        Surroundings(
            store,
            hosts,
            UNUSED,
            UNUSED,
            UNUSED,
            keeper,
            UNUSED,
            outbox=None,
            decider=UNUSED,
            meter=UNUSED,
        )
    )

    def fails(*_arguments: Any) -> None:
        raise OSError(24, os.strerror(24)) if lacking == "descriptor" else RuntimeError("no thread")

    with monkeypatch.context() as lack:
        if lacking == "thread":
            lack.setattr(threading.Thread, "start", fails)
        else:
            lack.setattr(os, "pipe", fails)
        assert not runner.start(job, now_s())
    assert keeper.count == 0
    view = store.view(job_id)
    assert view is not None and view.state == "queued"
    assert view.reason is not None and "could not start it" in view.reason
    assert [one.id for one in store.dispatch("one", 1)] == [job_id], "its host is free"


def test_a_kept_page_is_served_as_long_as_it_is_newer_than_the_result(tmp_path: Path) -> None:
    directory = JobDirectory(tmp_path)
    for path, made_s in ((directory.document, 100), (directory.report, 101)):
        path.write_bytes(path.name.encode())
        os.utime(path, (made_s, made_s))
    assert kept_page(directory) == b"report.html"
    os.utime(directory.document, (102, 102))
    assert kept_page(directory) is None


def test_what_is_being_published_is_waited_for_before_what_ends_it_is_reported() -> None:
    publishing, go_on = threading.Event(), threading.Event()
    published: list[str] = []

    def publish(messages: Sequence[tuple[str, str]]) -> bool:
        publishing.set()
        assert go_on.wait(60)
        published.extend(event for _, event in messages)
        return True

    live = LivePublisher(publish)
    live.start()
    live.publish_soon("job", "sample")
    assert publishing.wait(60)
    threading.Timer(0.2, go_on.set).start()
    assert live.withdraw("job") == []
    assert published == ["sample"], "it was on its way, and has arrived"
    live.close()
