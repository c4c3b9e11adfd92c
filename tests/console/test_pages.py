"""The pages, as a browser without scripts gets them, and their JSON twins."""

import html
import itertools
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from markupsafe import escape

from hostbench.base.errors import shown
from hostbench.decisions.index import FigureIndex
from hostbench.model.result import ResultDocument
from hostbench.results.store import JobDirectory
from orchestrator.console.hosts import CARDS
from orchestrator.queue.connection import connect, key
from orchestrator.queue.hosts import HostStore
from tests.console.real_console import HOST, KEYS, LONG, SHORT, ConsoleStack, hidden
from tests.each import each
from tests.orchestrator.jobs import register
from tests.patience import wait_until
from tests.stack.orchestrator_process import API_KEY
from tests.unit.quick_documents import as_measured

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'"
ARABIC = "مضيف" * 50
TWO_CASES: dict[str, Any] = {
    "name": "two",
    "idle": {"policy": "force"},
    "repeats": {"min_trials": 1, "max_trials": 1},
    "cases": [
        {
            "workload": "cpu.clock",
            "label": "<b>bold</b>",
            "params": {"threads": 1, "duration_s": 0.05, "warmup_s": 0},
        },
        {"workload": "cpu.fma", "params": {"isa": "neon", "duration_s": 0.05}},
    ],
}


def stored(console: ConsoleStack, host: str, job_id: str) -> ResultDocument:
    """Put a real document of a host of this name among the results."""
    document = as_measured()
    job = replace(document.job, id=job_id, hostname=host)
    document = document.model_copy(
        update={"job": job, "host": document.host.model_copy(update={"hostname": host})}
    )
    directory = JobDirectory(console.orchestrator.results / job_id)
    directory.path.mkdir(parents=True, exist_ok=True)
    return directory.store(document)


def twin(console: ConsoleStack, path: str) -> Any:
    """What a program with the key gets."""
    answer = console.orchestrator.client.get(path)
    assert answer.status_code == 200, answer.text
    return answer.json()


def text_of(page: str) -> str:
    """What a reader sees of a page."""
    return " ".join(html.unescape(re.sub(r"<[^>]*>", " ", page)).split())


# ---- hosts ----


def register_hosts(console: ConsoleStack, *names: str) -> None:
    """Hosts whose services get no calls."""
    client = connect(console.redis.url)
    register(HostStore(client), *names)
    client.close()


def test_a_host_that_has_never_measured(console: ConsoleStack) -> None:
    register_hosts(console, "fresh-1")
    bob = console.logged_in("bob")
    wait_until(lambda: twin(console, "/ui/hosts.json?q=fresh")["hosts"])
    wait_until(lambda: not twin(console, "/ui/hosts.json?q=fresh")["reading"])
    page = bob.page("/ui/hosts?q=fresh")
    assert (
        "This host has not measured anything yet" in page and "suite=quick&amp;host=fresh-1" in page
    )
    (card,) = twin(console, "/ui/hosts.json?q=fresh")["hosts"]
    assert card["presence"] == "idle" and card["statuses"] == [] and "CPU" in card["what"]


def test_names_of_hosts_are_text(console: ConsoleStack) -> None:
    for number, name in enumerate((EVIL, ARABIC)):
        stored(console, name, f"20261101T00000{number}Z-quick-aaaa")
    bob = console.logged_in("bob")
    wait_until(
        lambda: {EVIL, ARABIC} <= {one["name"] for one in twin(console, "/ui/hosts.json")["hosts"]},
        seconds=100,
    )
    page = bob.page("/ui/hosts")
    assert "<script>alert" not in page and "<img src=x" not in page and ARABIC in page
    assert html.escape(EVIL, quote=False).split("&#")[0][:20] in page
    # Verdicts and conditions explain themselves here, too, also in the cells of the matrix.
    cards, _, matrix = page.partition('class="matrix"')
    assert matrix.count('popovertarget="word-disturbed"') >= 2
    assert 'popovertarget="word-shared"' in cards and 'id="word-shared"' in page
    # Also where a name stands in an address.
    assert "Show all hosts" in bob.page("/ui/hosts?q=%22%3E%3Cscript%3E")
    (card,) = twin(console, f"/ui/hosts.json?q={ARABIC[:60]}")["hosts"]
    lines = {one["subsystem"]: one for one in card["statuses"]}
    assert lines["cpu"]["figure"] > 0 and card["presence"] == "not registered"


def test_hosts_by_what_they_do(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    job = console.orchestrator.submit(**LONG)
    waits = console.orchestrator.submit(**SHORT)
    console.service.wait_for_program()
    wait_until(lambda: twin(console, "/ui/hosts.json?show=busy")["hosts"])
    (card,) = twin(console, "/ui/hosts.json?show=busy")["hosts"]
    assert (card["name"], card["job"], card["queued"]) == (HOST, job, 1)
    page = bob.page("/ui/hosts")
    assert "1 job waits for it" in text_of(page) and f"/ui/jobs/{job}" in page
    assert twin(console, "/ui/hosts.json")["jobs"] == 2 and waits in page


@each(
    ("query", "line"),
    [
        ("page=0", "page '0' is not allowed: give 1 or more"),
        ("page=x", "page 'x' is not allowed: give a whole number"),
        (
            "show=ide",
            "show 'ide' is not allowed: did you mean 'idle'? give 'all', 'attention', 'busy', "
            "'idle' or 'gone'",
        ),
        ("q=" + "x" * 65, f"q '{'x' * 65}' is not allowed: give at most 64 characters"),
    ],
)
def test_a_wrong_address_has_one_clear_line(console: ConsoleStack, query: str, line: str) -> None:
    bob = console.logged_in("bob")
    answer = bob.get(f"/ui/hosts?{query}")
    assert answer.status_code == 422
    assert f"{line[:1].upper()}{line[1:]}." in text_of(answer.text)
    as_json = console.orchestrator.client.get(f"/ui/hosts.json?{query}").json()
    assert (as_json["status"], as_json["code"], as_json["detail"]) == (422, "invalid", line)


PAGES = "open Hosts, New measurement, Results, Compare, History, Doctor or Help"


@each("path", ["/ui/nothing/here", "/ui/hosts/bench-1", "/ui/static/none.css", "/ui/x" + "y" * 99])
def test_an_address_without_a_page(console: ConsoleStack, path: str) -> None:
    line = f"here is no page {shown(path)}; {PAGES}"
    for browser in (console.logged_in("bob"), console.browser()):
        answer = browser.get(path)
        assert answer.status_code == 404 and "<h1>Not found</h1>" in answer.text
        assert f"T{line}." in text_of(answer.text)
        assert '<a class="button" href="/ui/hosts">' in answer.text
        for_programs = browser.get("/ui/nothing.json").json()
        assert for_programs["detail"] == f"there is no page '/ui/nothing.json'; {PAGES}"


def test_a_call_that_a_page_does_not_take(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    answer = bob.get("/ui/logout")
    assert answer.status_code == 405
    assert f"There is no page '/ui/logout'; {PAGES}." in text_of(answer.text)
    answer = bob.send("/ui/hosts", {})
    assert answer.status_code == 405
    assert f"'/ui/hosts' does not take POST; {PAGES}." in text_of(answer.text)


# ---- a new measurement ----


def test_from_the_form_to_the_report_without_scripts(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    chosen = {
        "workload": "cpu.clock",
        "p.threads": "1",
        "p.duration_s": "0.05",
        "p.warmup_s": "0",
        "trials": "2",
        "idle_policy": "force",
        "host": HOST,
    }
    page = bob.get("/ui/new", params=chosen).text
    assert "1 case, 2 trials, 1 s." in text_of(page)
    assert "hostbench submit --workload cpu.clock --param threads=1" in text_of(page)
    fields = hidden(page)
    assert {name: fields[name] for name in chosen} == chosen
    made = bob.send("/ui/new", fields)
    assert made.status_code == 303
    # The same form sent twice is one job.
    assert bob.send("/ui/new", fields).headers["location"] == made.headers["location"]
    path = made.headers["location"]
    job = path.rpartition("/")[2]
    assert console.orchestrator.wait_for(job)["state"] == "succeeded"
    ended = bob.page(path)
    assert "cpu.clock" in text_of(ended) and "Read the report" in ended
    view = twin(console, f"{path}.json")
    assert view["job"]["state"] == "succeeded" and view["has_result"] and not view["under_way"]
    (row,) = view["rows"]
    # The same once more, by a form and by a command.
    assert bob.get(view["again"]).text.count("Start the measurement") == 1
    assert twin(console, view["again"].replace("/new?", "/new.json?"))["chosen"] == chosen
    assert view["command"] in text_of(page) and view["command"] in text_of(ended)
    assert row["title"].startswith("cpu.clock 1 thread") and "Hz" in row["figure"]
    # One case by itself.
    words = shlex.split(row["repeat"]["command"])
    assert words[:4] == ["hostbench", "submit", "--workload", "cpu.clock"]
    assert all(f"<code>{escape(text)}</code>" in ended for text in row["repeat"].values())
    body = shlex.split(row["repeat"]["curl"])[-2]
    repeated = console.orchestrator.client.post("/jobs", content=body).json()["id"]
    assert console.orchestrator.wait_for(repeated)["state"] == "succeeded"
    report = bob.get(f"{path}/report")
    assert "<h1>ad-hoc on bench-1</h1>" in report.text
    document = bob.get(f"{path}/result").json()
    assert document["job"]["id"] == job and len(document["cases"][0]["trials"]) == 2
    (case,) = document["cases"]
    options = {word for flag, word in itertools.pairwise(words) if flag == "--param"}
    assert options == {f"{name}={case['params'][name]}" for name in case["given"]}
    # Repeated, it is the same case, and a comparison of both repeats it in the same way.
    assert bob.get(f"/ui/jobs/{repeated}/result").json()["cases"][0]["case"] == case["case"]
    compared = twin(console, f"/ui/compare.json?a={job}&b={repeated}")
    assert compared["repeats"] == {case["case"]: row["repeat"]}
    assert bob.get(f"{path}/result?format=csv").text.count("\n") >= 2


def test_the_parameters_are_those_of_the_table(console: ConsoleStack) -> None:
    view = twin(console, f"/ui/new.json?workload=cpu.fma&host={HOST}")
    tables = console.orchestrator.client.get("/workloads").json()["hosts"][HOST]
    (fma,) = [one for one in tables[0]["workloads"] if one["name"] == "fma"]
    expected = [one["name"] for one in fma["params"] if one["scope"] == "request"]
    assert [one["name"] for one in view["fields"]] == expected
    by_name = {one["name"]: one for one in view["fields"]}
    assert "fp64" in [one["value"] for one in by_name["dtype"]["choices"]]
    assert by_name["threads"]["allowed"].startswith("1 to ")


@each(
    ("query", "field", "words"),
    [
        ("workload=cpu.fma&p.threads=0", "p.threads", "is out of range; give 1 to"),
        ("workload=cpu.fma&p.dtype=fp9", "p.dtype", "is not known"),
        ("workload=cpu.fmaa", "workload", "did you mean"),
        ("workload=nothing", "workload", "has no subsystem"),
        ("suite=quik", "suite", "did you mean"),
        ("suite=../../etc/passwd", "suite", "there is no suite"),
        ("suite=quick&trials=0", "trials", "give a whole number from 1 to"),
        ("suite=quick&trials=%D9%A1", "trials", "give a whole number"),
        ("suite=quick&priority=99", "priority", "from -10 to 10"),
        ("suite=quick&scale=big", "scale", "scale"),
        ("suite=cs553/openstack-haswell&scale=bigger", "scale", "no scale"),
        ("workload=cpu.fma&peers=fio", "workload", "measures nothing comparable"),
        ("suite=quick&idle_policy=never", "idle_policy", "'never' is not allowed: give"),
    ],
)
def test_what_cannot_be_planned_is_reported_at_its_field(
    console: ConsoleStack, query: str, field: str, words: str
) -> None:
    view = twin(console, f"/ui/new.json?{query}&host={HOST}")
    assert view["preview"] is None and words in view["problem"], view["problem"]
    assert view["field"] == field
    page = console.logged_in("bob").page(f"/ui/new?{query}&host={HOST}")
    assert view["problem"][:30] in text_of(page)
    assert "Start the measurement" not in page


def test_what_would_be_skipped_is_reported_before(console: ConsoleStack) -> None:
    view = twin(console, f"/ui/new.json?workload=cpu.fma&p.isa=neon&p.dtype=fp64&host={HOST}")
    (skip,) = view["preview"]["skips"]
    assert skip["count"] == 1 and "neon" in skip["reason"]


def test_a_refused_form_shows_itself_again(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    fields = {"csrf": bob.csrf, "workload": "cpu.fma", "p.threads": "9999999", "host": HOST}
    answer = bob.send("/ui/new", fields)
    assert answer.status_code == 422
    assert "is out of range" in text_of(answer.text) and 'value="9999999"' in answer.text


# ---- a job ----


def test_labels_and_reasons_are_text(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    job = console.orchestrator.submit(suite=TWO_CASES, hosts=[HOST])
    console.orchestrator.wait_for(job)
    page = bob.page(f"/ui/jobs/{job}")
    assert "&lt;b&gt;bold" in page and "<b>bold" not in page
    view = twin(console, f"/ui/jobs/{job}.json")
    states = {row["title"]: row["state"] for row in view["rows"]}
    assert states["cpu.clock <b>bold</b>"] in ("clean", "noisy", "disturbed")
    assert "skipped" in states.values()
    # Why a case has its verdict, also when its figures come from the index.
    with FigureIndex(console.orchestrator.results) as index:
        index.refresh()
    cases = console.orchestrator.result(job)["cases"]
    (reason,) = (case["reasons"][0]["text"] for case in cases if case["verdict"] == "skipped")
    reasons = {row["state"]: row["reason"] for row in twin(console, f"/ui/jobs/{job}.json")["rows"]}
    assert reasons["skipped"] == reason
    # A reason that another process wrote, for example a service.
    with console.redis.client() as client:
        client.hset(key("job", job), "reason", EVIL)
    page = bob.page(f"/ui/jobs/{job}")
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page


def test_a_job_that_waits_says_why_and_is_cancelled_once(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    holder = console.orchestrator.submit(**LONG)
    job = console.orchestrator.submit(**SHORT)
    page = bob.page(f"/ui/jobs/{job}")
    assert "after 1 other job" in text_of(page) or "first in the queue" in text_of(page)
    path, csrf = f"/ui/jobs/{job}/cancel", bob.csrf
    assert bob.send(path, {"csrf": csrf}).headers["location"] == f"/ui/jobs/{job}"
    # The other window of the same person.
    again = bob.send(path, {"csrf": csrf})
    assert again.status_code == 409 and "is cancelled already" in text_of(again.text)
    assert "It ended before it measured anything" in bob.page(f"/ui/jobs/{job}")
    resumed = bob.send(f"/ui/jobs/{job}/resume", {"csrf": csrf})
    assert resumed.status_code == 303
    assert bob.send(f"/ui/jobs/{holder}/cancel", {"csrf": csrf}).status_code == 303
    assert console.orchestrator.wait_for(job)["state"] == "succeeded"


def test_a_cancelled_job_says_once_why_its_cases_are_open(console: ConsoleStack) -> None:
    done = {"workload": LONG["workload"], "params": SHORT["params"]}
    endless = {"workload": LONG["workload"], "params": LONG["params"]}
    suite = {**TWO_CASES, "cases": [done, endless]}
    job = console.orchestrator.submit(suite=suite, hosts=[HOST])
    wait_until(lambda: (console.orchestrator.job(job)["progress"] or {}).get("done") == 1)
    console.orchestrator.client.delete(f"/jobs/{job}")
    console.orchestrator.wait_for(job)
    bob = console.logged_in("bob")
    for _ in ("its events", "the index"):
        page = text_of(bob.page(f"/ui/jobs/{job}"))
        assert "cancelled by request; 1 of 2 cases are measured and kept." in page
        assert "cancelled cancelled" not in page and "to do" not in page
        rows = twin(console, f"/ui/jobs/{job}.json")["rows"]
        (open_row,) = (row for row in rows if row["state"] == "unfinished")
        assert open_row["reason"] == "the job was cancelled before the case was measured"
        assert open_row["reason"] in page
        with FigureIndex(console.orchestrator.results) as index:
            index.refresh()


def test_samples_come_while_it_runs(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    params = {**LONG["params"], "sample_interval_s": 0.2}
    job = console.orchestrator.submit(**{**LONG, "params": params})
    console.service.wait_for_program()
    points: list[list[Any]] = []
    batch: dict[str, Any] = {}
    with bob.client.stream("GET", f"/ui/jobs/{job}/live") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for line in answer.iter_lines():
            if line.startswith("data: ") and '"points"' in line:
                batch = json.loads(line.removeprefix("data: "))
                points += batch["points"]
            if len(points) > 5:
                break
    assert batch["title"] == "cpu.clock 1 thread" and batch["unit"] == "Hz"
    times = [point[0] for point in points]
    assert times == sorted(set(times))
    # A busy host may have kept the thread from its CPU for all of a sample: then there is no slice.
    assert all(0 <= point[1] < 1e10 for point in points if point[1] is not None)
    assert all(0 <= point[2] <= 1 for point in points if point[2] is not None)
    # A page without scripts has them, too; those without a slice as a dash.
    page = bob.page(f"/ui/jobs/{job}")
    assert "Hz</td>" in page and 'http-equiv="refresh"' in page
    live = twin(console, f"/ui/jobs/{job}.json")["live"]
    assert live["current"] == "cpu.clock 1 thread" and "left" in live["left"]


@each("job", ["20261120T174501Z-quick-3f2a", "latest", "..%2F..%2Fetc%2Fpasswd", "x" * 200])
def test_a_job_that_is_not_there(console: ConsoleStack, job: str) -> None:
    bob = console.logged_in("bob")
    answer = bob.get(f"/ui/jobs/{job}")
    assert answer.status_code == 404 and "<h1>Not found</h1>" in answer.text
    assert bob.send(f"/ui/jobs/{job}/cancel", {"csrf": bob.csrf}).status_code == 404


def test_a_job_that_retention_removed_while_its_page_was_open(console: ConsoleStack) -> None:
    job_id = "20261102T000000Z-quick-bbbb"
    stored(console, "elsewhere-1", job_id)
    bob = console.logged_in("bob")
    assert "elsewhere-1" in bob.page(f"/ui/jobs/{job_id}")
    directory = console.orchestrator.results / job_id
    directory.rename(directory.with_name(f".removed-{job_id}"))
    for path in ("", "/report", "/result"):
        answer = bob.get(f"/ui/jobs/{job_id}{path}")
        assert answer.status_code == 404 and "may have been removed" in answer.text


# ---- a stack that lacks a part ----


def test_without_redis_and_without_influxdb(tmp_path: Path) -> None:
    with ConsoleStack(tmp_path).running() as console:
        bob = console.logged_in("bob")
        job = console.orchestrator.submit(**SHORT)
        console.orchestrator.wait_for(job)
        assert "Redis is not available" not in text_of(bob.page("/ui/hosts"))
        console.influx.stop()
        again = console.orchestrator.submit(**SHORT)
        console.orchestrator.wait_for(again)
        wait_until(lambda: "InfluxDB does not accept points" in text_of(bob.page("/ui/hosts")))
        console.redis.stop()
        wait_until(lambda: "Redis is not available" in text_of(bob.page(f"/ui/jobs/{job}")))
        page = text_of(bob.page(f"/ui/jobs/{job}"))
        assert "Read the report" in page and "cpu.clock" in page
        assert "<h1>" in bob.get(f"/ui/jobs/{job}/report").text
        hosts = text_of(bob.page("/ui/hosts"))
        assert "Redis is not available" in hosts and "unknown" in hosts
        answer = bob.get("/ui/new")
        assert answer.status_code == 503 and "Redis cannot be used" in answer.text
        # A visitor who was not logged in reads why no login is possible now.
        assert console.browser().get("/ui/login").status_code == 200
        console.redis.start()
        wait_until(lambda: "Redis is not available" not in text_of(bob.page("/ui/hosts")))
        assert bob.get("/ui/new").status_code == 200


def test_the_twins_take_a_key_and_the_pages_say_the_same(console: ConsoleStack) -> None:
    headers = {"Authorization": f"Bearer {KEYS['ann'][1]}"}
    for path in ("/ui/hosts.json", "/ui/new.json"):
        answer = httpx.get(console.url + path, headers=headers)
        assert answer.headers["content-type"] == "application/json" and "title" in answer.json()
    wrong = httpx.get(
        f"{console.url}/ui/hosts.json", headers={"Authorization": "Bearer wrong wrong"}
    )
    assert wrong.status_code == 401
    assert API_KEY not in wrong.text


@pytest.mark.parametrize("number", [500])
def test_many_hosts_come_page_by_page(tmp_path: Path, number: int) -> None:
    with ConsoleStack(tmp_path).running() as console:
        register_hosts(console, *(f"node-{one:03}" for one in range(number)))
        bob = console.logged_in("bob")
        seen: set[str] = set()
        page = 1
        while True:
            answer = bob.get(f"/ui/hosts?page={page}")
            assert len(answer.content) < 100_000
            view = twin(console, f"/ui/hosts.json?page={page}")
            assert len(view["hosts"]) <= CARDS and view["counts"]["all"] == number + 1
            seen |= {one["name"] for one in view["hosts"]}
            if page == view["pages"]["pages"]:
                break
            page += 1
        assert len(seen) == number + 1
        last = twin(console, "/ui/hosts.json?page=9999")
        assert last["pages"]["page"] == page
