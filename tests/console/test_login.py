"""Who gets in, for how long, and what another site cannot make a browser do."""

import re
from pathlib import Path

import httpx

from tests.client.canned_server import certificate
from tests.console.real_console import KEYS, LONG, SHORT, ConsoleStack, hidden
from tests.each import each
from tests.patience import wait_until
from tests.stack.orchestrator_process import API_KEY, SERVICE_KEY, OrchestratorProcess

PAGES = ("/ui/hosts", "/ui/new", "/ui/jobs/20261120T174501Z-quick-3f2a")


def test_the_address_of_the_stack_leads_to_the_login_and_back(console: ConsoleStack) -> None:
    stranger = console.browser()
    first = stranger.get("/", follow_redirects=True)
    assert first.url.path == "/ui/login" and "<h1>Log in</h1>" in first.text
    wanted = "/ui/hosts?show=busy&q=a%26b"
    redirect = stranger.get(wanted)
    assert redirect.status_code == 303
    answer = stranger.log_in(KEYS["bob"][1], redirect.headers["location"])
    assert answer.status_code == 303 and answer.headers["location"] == wanted
    assert "bob" in stranger.page(wanted)


@each("page", PAGES)
def test_strangers_see_no_page_and_no_twin(console: ConsoleStack, page: str) -> None:
    stranger = console.browser()
    assert stranger.get(page).headers["location"].startswith("/ui/login")
    twin = stranger.get(f"{page}.json")
    assert twin.status_code == 401 and twin.json()["code"] == "unauthorized"
    part = stranger.get(page, headers={"HX-Request": "true"})
    assert part.status_code == 401 and part.headers["hx-redirect"].startswith("/ui/login")


@each("key", ["", "wrong", SERVICE_KEY, "ö" * 30, KEYS["ann"][1].upper()])
def test_only_the_keys_of_users_get_in(console: ConsoleStack, key: str) -> None:
    stranger = console.browser()
    answer = stranger.log_in(key)
    assert answer.status_code == 401 and "not the key of a user" in answer.text
    assert stranger.session is None
    if len(key) > 5:
        assert key not in answer.text and key not in console.orchestrator.log


def test_the_cookie(console: ConsoleStack) -> None:
    cookie = console.logged_in().client.cookies.jar
    (session,) = [one for one in cookie if one.name == "hostbench"]
    assert len(session.value or "") >= 40
    sent = console.browser().log_in(API_KEY).headers.get_list("set-cookie")
    (text,) = [one for one in sent if one.startswith("hostbench=")]
    assert {"HttpOnly", "SameSite=strict", "Path=/"} <= set(text.split("; "))
    assert "Secure" not in text, "a browser would not send it to http://127.0.0.1 by its name"


def test_with_tls_the_cookie_is_for_tls_alone(console: ConsoleStack, tmp_path: Path) -> None:
    tls = certificate(tmp_path, "IP:127.0.0.1").of_server
    with OrchestratorProcess(
        tmp_path / "orchestrator", console.redis.url, tmp_path / "results", **tls
    ) as one:
        fields = hidden(one.client.get("/ui/login").text) | {"key": API_KEY}
        answer = one.client.post("/ui/login", data=fields)
        sent = answer.headers.get_list("set-cookie")
        (text,) = [cookie for cookie in sent if cookie.startswith("__Host-hostbench=")]
        assert {"Secure", "HttpOnly", "SameSite=strict", "Path=/"} <= set(text.split("; "))
        # The cookie alone: the client of the tests also sends the key.
        session = {"Cookie": text.partition(";")[0], "Authorization": ""}
        assert one.client.get("/ui/hosts", headers=session).status_code == 200


def test_a_session_that_was_planted_is_none(console: ConsoleStack) -> None:
    """An attacker who sets the cookie of a browser before its user logs in learns nothing."""
    planted = "planted-by-somebody-else"
    victim = console.browser()
    victim.client.cookies.set("hostbench", planted)
    assert victim.get("/ui/hosts").status_code == 303
    victim.log_in(KEYS["bob"][1]).raise_for_status()
    sessions = [one.value for one in victim.client.cookies.jar if one.name == "hostbench"]
    assert any(one != planted for one in sessions)
    attacker = console.browser()
    attacker.client.cookies.set("hostbench", planted)
    assert attacker.get("/ui/hosts").status_code == 303


def test_a_second_login_ends_the_first(console: ConsoleStack) -> None:
    one = console.logged_in("bob")
    before = one.session
    fields = hidden(one.get("/ui/login").text) | {"key": KEYS["ann"][1]}
    assert one.send("/ui/login", fields).status_code == 303
    assert one.session != before and "ann" in one.page("/ui/hosts")
    old = console.browser()
    old.client.cookies.set("hostbench", before or "")
    assert old.get("/ui/hosts").status_code == 303


def test_log_out(console: ConsoleStack) -> None:
    one = console.logged_in("ann")
    session, csrf = one.session, one.csrf
    assert one.send("/ui/logout", {"csrf": "another"}).status_code == 403
    assert one.send("/ui/logout", {"csrf": csrf}).headers["location"] == "/ui/login"
    assert "hostbench" not in one.client.cookies
    again = console.browser()
    again.client.cookies.set("hostbench", session or "")
    assert again.get("/ui/hosts").status_code == 303


def test_a_revoked_key_ends_its_sessions(console: ConsoleStack) -> None:
    bob, ann = console.logged_in("bob"), console.logged_in("ann")
    csrf = bob.csrf
    console.write_keys("ann")
    assert bob.get("/ui/hosts").status_code == 303
    assert bob.send("/ui/new", {"csrf": csrf, "suite": "quick"}).status_code == 303
    assert ann.get("/ui/hosts").status_code == 200


def test_a_revoked_key_sees_no_more_samples(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    job = console.orchestrator.submit(
        **{**LONG, "params": {**LONG["params"], "sample_interval_s": 0.2}}
    )
    console.service.wait_for_program()
    with bob.client.stream("GET", f"/ui/jobs/{job}/live") as answer:
        lines = answer.iter_lines()
        assert next(line for line in lines if line.startswith("event: samples"))
        console.write_keys("ann")
        # The stream ends, though the job goes on.
        rest = list(lines)
    assert len(rest) < 100
    assert console.orchestrator.job(job)["state"] == "running"


def test_wrong_keys_are_counted(console: ConsoleStack) -> None:
    stranger = console.browser()
    for _ in range(10):
        assert stranger.log_in("wrong").status_code == 401
    answer = stranger.log_in(KEYS["bob"][1])
    assert answer.status_code == 429 and int(answer.headers["retry-after"]) > 200
    assert "Too many wrong keys" in answer.text
    assert '"event": "login_failed"' in console.orchestrator.log


def test_a_link_logs_in_once(console: ConsoleStack) -> None:
    made = console.orchestrator.client.post("/console/links")
    assert made.status_code == 201 and made.json()["valid_s"] <= 600
    path = made.json()["path"]
    one = console.browser()
    # Looking at it uses nothing up: programs open links by themselves.
    for _ in range(2):
        assert "Log in as api_key" in one.get(path).text
    assert "hostbench" not in one.client.cookies
    answer = one.send("/ui/login", hidden(one.get(path).text))
    assert answer.headers["location"] == "/ui/hosts" and one.session
    another = console.browser()
    used = another.get(path)
    assert used.status_code == 401 and "already used" in used.text
    assert (
        another.send("/ui/login", hidden(used.text) | {"link": path.partition("=")[2]}).status_code
        == 401
    )


def test_a_link_has_the_role_of_its_key(console: ConsoleStack) -> None:
    headers = {"Authorization": f"Bearer {KEYS['ann'][1]}"}
    path = httpx.post(f"{console.url}/console/links", headers=headers).json()["path"]
    services = {"Authorization": f"Bearer {SERVICE_KEY}"}
    assert httpx.post(f"{console.url}/console/links", headers=services).status_code == 403
    one = console.browser()
    assert one.send("/ui/login", hidden(one.get(path).text)).status_code == 303
    page = one.page("/ui/hosts")
    assert "viewer" in page and "New measurement</a>" in page
    assert one.send("/ui/new", {"csrf": one.csrf, "suite": "quick"}).status_code == 403


@each(
    "path",
    [
        "//evil.example/",
        "https://evil.example/ui/",
        "/\\evil.example",
        "\\\\evil.example",
        "/ui/\\..\\..//evil.example",
        "javascript:alert(1)",
        "/ui/\r\nSet-Cookie: a=b",
        "/ui/hosts\u202e",
        "/jobs",
        "/ui/login?next=/ui/login",
        "",
    ],
)
def test_the_login_leads_nowhere_else(console: ConsoleStack, path: str) -> None:
    one = console.browser()
    fields = hidden(one.get("/ui/login", params={"next": path}).text)
    assert fields["next"] == "/ui/hosts"
    answer = one.send("/ui/login", {**fields, "next": path, "key": KEYS["ann"][1]})
    assert answer.headers["location"] == "/ui/hosts"


def test_forms_of_other_sites_do_nothing(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    job = console.orchestrator.submit(**LONG)
    path, csrf = f"/ui/jobs/{job}/cancel", bob.csrf
    another = console.logged_in("bob")
    for fields in ({"other": ""}, {"csrf": ""}, {"csrf": "x"}, {"csrf": another.csrf}):
        refused = bob.send(path, fields)
        assert refused.status_code == 403 and "stale_form" in refused.text
    for headers in ({"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site"}):
        assert bob.send(path, {"csrf": csrf}, headers=headers).status_code == 403
    text = {"Content-Type": "text/plain"}
    assert bob.client.post(path, content=f"csrf={csrf}", headers=text).status_code == 415
    # A key is no login: no other site has one, and no form of a browser sends one.
    key = {"Authorization": f"Bearer {API_KEY}"}
    assert httpx.post(console.url + path, data={"csrf": ""}, headers=key).status_code == 303
    assert console.orchestrator.job(job)["state"] not in ("cancelled",)
    assert bob.send(path, {"csrf": csrf}).status_code == 303
    assert console.orchestrator.wait_for(job)["state"] == "cancelled"


def test_the_login_takes_no_form_of_another_site(console: ConsoleStack) -> None:
    """Else it could log a browser in with its own key, and read what its user then submits."""
    one = console.browser()
    assert one.send("/ui/login", {"key": KEYS["ann"][1]}).status_code == 403
    fields = hidden(one.get("/ui/login").text) | {"key": KEYS["ann"][1]}
    assert one.send("/ui/login", {**fields, "form": "x"}).status_code == 403


def test_viewers_change_nothing(console: ConsoleStack) -> None:
    ann = console.logged_in("ann")
    job = console.orchestrator.submit(**LONG)
    page = ann.page(f"/ui/jobs/{job}")
    assert "Cancel" not in page
    for path, fields in (
        (f"/ui/jobs/{job}/cancel", {}),
        (f"/ui/jobs/{job}/resume", {}),
        ("/ui/new", {"suite": "quick", "host": "bench-1"}),
    ):
        refused = ann.send(path, {"csrf": ann.csrf, **fields})
        assert refused.status_code == 403 and "role viewer" in refused.text
    assert console.orchestrator.job(job)["state"] != "cancelled"
    assert (
        len(console.orchestrator.client.get("/jobs", params={"state": "queued"}).json()["jobs"])
        == 0
    )


def test_every_answer_has_the_headers(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    job = console.orchestrator.submit(**SHORT)
    console.orchestrator.wait_for(job)
    style = re.findall(r'href="(/ui/static/[^"]+)"', bob.page("/ui/hosts"))[0]
    for path in (
        *PAGES,
        f"/ui/jobs/{job}",
        f"/ui/jobs/{job}/report",
        style,
        "/ui/nothing",
        "/ui/login",
    ):
        headers = bob.get(path).headers
        policy = headers["content-security-policy"]
        assert "frame-ancestors 'none'" in policy, path
        if not path.endswith("/report"):
            assert "default-src 'self'" in policy and "unsafe" not in policy, path
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        kept = "immutable" if path == style else "no-store"
        assert kept in headers["cache-control"], path


def test_who_did_what_is_in_the_log(console: ConsoleStack) -> None:
    bob = console.logged_in("bob")
    job = console.orchestrator.submit(**LONG)
    bob.send(f"/ui/jobs/{job}/cancel", {"csrf": bob.csrf})
    line = wait_until(
        lambda: [
            one for one in console.orchestrator.log.splitlines() if f"/ui/jobs/{job}/cancel" in one
        ]
    )[0]
    assert '"key": "bob"' in line and '"status": 303' in line
    for secret in (bob.session, bob.csrf, KEYS["bob"][1]):
        assert secret and secret not in console.orchestrator.log
