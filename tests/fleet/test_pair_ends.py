"""The two ends of a pair, as engines start them: two processes on this machine, each with a lock of
its own as if it were a host."""

import contextlib
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import pytest

from hostbench.base.errors import ResourceError, UsageError
from hostbench.base.interrupt import Interrupt
from hostbench.fleet.campaign import Campaign, Digest, Pair
from hostbench.fleet.node import read_message
from hostbench.fleet.pair.meeting import Meeting, Place, called
from hostbench.fleet.pair.secret import KEY, SecretFiles, new_secret
from hostbench.host.lock import HostLock
from hostbench.model.suite import SuiteCase
from hostbench.results.store import ResultsStore
from tests.faults.command import Command, Ended, end_of
from tests.fleet.campaigns import LONG_BETWEEN, campaign_file, campaign_of_pairs, net_suite
from tests.patience import SOON_S, wait_until
from tests.stack.ports import free_port


class Ends:
    """Both ends of the only pair of a campaign. They meet in a file, or at a port of the first.
    `hosts`: where each node has its lock, for several campaigns."""

    def __init__(
        self, directory: Path, made: Campaign, *, by_file: bool = True, hosts: Path | None = None
    ) -> None:
        self.directory = directory
        self.campaign = made
        (self.pair,) = made.pairs
        self.secret = directory / "secret"
        self.secret.mkdir()
        for name, content in new_secret().items():
            (self.secret / name).write_text(content)
        port = self.port = free_port()
        file = str(directory / "meeting")
        self._places = dict(
            zip(
                self.pair.nodes,
                (file, file) if by_file else (f":{port}", f"127.0.0.1:{port}"),
                strict=True,
            )
        )
        self.near = self._command("near-host", self.pair.near, hosts)
        self.far = self._command("far-host", self.pair.far, hosts)

    def _command(self, name: str, node: str, hosts: Path | None) -> Command:
        own = self.directory / name
        own.mkdir()
        if hosts is None:
            return Command(own)
        return Command(own, HOSTBENCH_LOCK=str(hosts / f"{node}.lock"))

    def start_near(self) -> "subprocess.Popen[str]":
        return self.near.start(
            "fleet",
            "measure",
            "--engine=slurm",
            *self._options(self.pair.near),
            "--document-to-log",
        )

    def start_far(self) -> "subprocess.Popen[str]":
        return self.far.start("fleet", "far-end", *self._options(self.pair.far))

    def _options(self, node: str) -> list[str]:
        return [
            f"--campaign-file={campaign_file(self.directory, self.campaign)}", f"--node={node}",
            f"--pair={self.pair.name}", f"--secret={self.secret}", f"--meet={self._places[node]}",
            "--meet-address=127.0.0.1", f"--termination-message={self.message_file(node)}",
        ]  # fmt: skip

    def message_file(self, node: str) -> Path:
        return self.directory / f"message-{node}"

    def message(self, node: str) -> Digest | str | None:
        path = self.message_file(node)
        return read_message(path.read_text()) if path.exists() else None

    def run(self) -> tuple[Ended, Ended]:
        """How near end and far end ended."""
        near, far = self.start_near(), self.start_far()
        return end_of(near), end_of(far)


@pytest.mark.parametrize("near", ["node1", "node2"])
def test_a_pair_measures_whichever_end_is_first(tmp_path: Path, near: str) -> None:
    far = "node2" if near == "node1" else "node1"
    made = campaign_of_pairs([[(near, far)]], racks={near: "r1"})
    ends = Ends(tmp_path, made, by_file=near == "node1")
    ended, far_ended = ends.run()
    assert (ended.code, far_ended.code) == (0, 0), ended.errors + far_ended.errors
    digest = ends.message(near)
    assert isinstance(digest, Digest)
    assert digest.member.unit == made.units[0] == f"1-{near}+{far}"
    assert (digest.member.node, digest.member.far_node) == (near, far)
    assert (digest.member.rack, digest.member.far_rack) == ("r1", None)
    document = ResultsStore(ends.near.results).job(digest.job).load()
    assert document.digest == digest.digest and document.member == digest.member
    (case,) = document.cases
    assert case.figure is not None and case.figure.value > 0, case
    assert document.far_host is not None and document.far_host.address == "127.0.0.1"
    # An engine that starts the pair again finds it measured, and needs no far end for that.
    assert end_of(ends.start_near()).code == 0
    assert ResultsStore(ends.near.results).ids() == [digest.job]
    key = (ends.secret / KEY).read_text()
    for one in (ended, far_ended):
        assert key not in one.output + one.errors


def test_strangers_disturb_no_pair_and_a_far_end_waits_for_long_trials(tmp_path: Path) -> None:
    """The far end calls, and hears nothing until the near end is done."""
    suite = net_suite(
        cases=(SuiteCase(workload="net.tcp_rr", params={"target": "far_host", "duration_s": 12}),)
    )
    made = campaign_of_pairs([[("node1", "node2")]], suite=suite)
    ends = Ends(tmp_path, made, by_file=False)
    near = ends.start_near()
    for line in (b"", b'{"pair":"\xc3\xa9"}\n', b"[" * 8000 + b"\n", b"x" * 20_000):
        knock(ends.port, line)
    assert near.poll() is None
    far = ends.start_far()
    for ended in (end_of(near), end_of(far)):
        assert ended.code == 0, ended.errors


def knock(port: int, line: bytes) -> None:
    """Send a line to the end that listens, as soon as it does, and leave."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    def called() -> socket.socket | None:
        with contextlib.suppress(ConnectionError):
            return socket.create_connection(("127.0.0.1", port), timeout=SOON_S)
        return None

    plain = wait_until(called)
    assert plain is not None
    with context.wrap_socket(plain) as connection, contextlib.suppress(OSError):
        connection.sendall(line)
        connection.recv(1)  # until it is refused


def holder(command: Command) -> str:
    lock = HostLock(command.lock)
    try:
        return str(lock.read().get("holder", {}).get("job"))
    finally:
        lock.close()


def test_an_end_that_dies_ends_the_other_one_with_the_reason(tmp_path: Path) -> None:
    def killed(who: str, directory: str) -> tuple[Ends, Ended]:
        (tmp_path / directory).mkdir()
        ends = Ends(
            tmp_path / directory, campaign_of_pairs([[("node1", "node2")]], suite=LONG_BETWEEN)
        )
        near, far = ends.start_near(), ends.start_far()
        ends.near.wait_for_program()
        # Both hosts are taken.
        assert holder(ends.far).endswith("1-node1+node2")
        victim, other = (near, far) if who == "near" else (far, near)
        victim.send_signal(signal.SIGKILL)
        end_of(victim)
        ended = end_of(other, 20)
        assert ends.near.is_gone_soon() and ends.far.is_gone_soon()
        return ends, ended

    ends, near_ended = killed("far", "a")
    reason = "the far end on node2 ended; hostbench fleet retry measures again"
    assert near_ended.code != 0 and str(ends.message("node1")).startswith(reason), near_ended
    ends, far_ended = killed("near", "b")
    assert far_ended.code == 0 and "the near end on node1 ended" in far_ended.errors, far_ended


def test_two_campaigns_on_the_same_nodes_take_turns(tmp_path: Path) -> None:
    """What is the near end of one is the far end of the other one. All four ends start at once."""
    both = []
    for name, pair in (("left", ("node1", "node2")), ("right", ("node2", "node1"))):
        (tmp_path / name).mkdir()
        made = campaign_of_pairs([[pair]], name=name)
        both.append(Ends(tmp_path / name, made, hosts=tmp_path))
    started = [start() for ends in both for start in (ends.start_far, ends.start_near)]
    for process in started:
        ended = end_of(process)
        assert ended.code == 0, ended.errors
    spans = []
    for ends in both:
        document = ResultsStore(ends.near.results).job("latest").load()
        assert document.job.finished_unix_s is not None
        spans.append((document.job.created_unix_s, document.job.finished_unix_s))
    (_, first_ended), (second_begun, _) = sorted(spans)
    assert first_ended <= second_begun, spans


def test_an_end_that_fails_says_why_to_the_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = campaign_of_pairs([[("node1", "node2")]], time_limit_s=2.0)
    ends = Ends(tmp_path, made)
    # Another run has the far host for longer than a pair may wait.
    lock = HostLock(ends.far.lock)
    interrupt = Interrupt()
    lock.take(0, interrupt)
    lock.name_holder("somebody")
    try:
        near, far = ends.run()
    finally:
        lock.close()
        interrupt.close()
    assert near.code != 0 and far.code != 0
    why = str(ends.message("node2"))
    assert why.startswith("this host is busy with job 'somebody'"), far
    assert ends.message("node1") == f"the far end on node2: {why}"


def test_bad_input_and_strangers(tmp_path: Path) -> None:
    for text in ("", ":", "node1", "node1:", ":0", ":70000", "a:b"):
        with pytest.raises(UsageError, match="--meet"):
            Place.parsed(text)
    assert Place.parsed("[2001:db8::7]:8010") == Place("2001:db8::7", 8010)
    made = campaign_of_pairs([[("node1", "node2")]], time_limit_s=20.0)
    ends = Ends(tmp_path, made, by_file=False)
    first = ends.start_near()
    place = Place.parsed(ends._places["node2"])
    # One with another certificate, and one with it and another key, do not take part.
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    for name, content in new_secret().items():
        (foreign / name).write_text(content)
    interrupt = Interrupt()

    def call(files: SecretFiles, wait_s: float) -> Meeting:
        with called(place, files, made.units[0], "it", interrupt, wait_s) as meeting:
            meeting.heard(interrupt)
            return meeting

    with pytest.raises(ResourceError, match="it did not answer within 1 s"):
        call(SecretFiles(foreign), 1.0)
    (foreign / "tls.crt").write_text((ends.secret / "tls.crt").read_text())
    with pytest.raises(ResourceError, match="it ended"):
        call(SecretFiles(foreign), 20.0)
    assert end_of(ends.start_far()).code == 0
    assert end_of(first).code == 0
    interrupt.close()
    for words in ("--pair=1-node1+node9", "--pair=node1"):
        ended = ends.near.run(
            "fleet",
            "far-end",
            f"--campaign-file={tmp_path / 'campaign.json'}",
            "--node=node1",
            words,
        )
        assert ended.code == 2 and "is not a pair of node node1" in ended.last_line


def test_nodes_of_a_pair_are_taken_in_one_order() -> None:
    assert Pair(1, "b", "a").nodes == Pair(2, "a", "b").nodes == ("a", "b")
