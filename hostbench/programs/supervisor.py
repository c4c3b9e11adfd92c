"""Runs one peer and lets nothing of it live on, whatever it does and whichever process is killed.

A script of its own, because only a process can outlive us to clean up after us:

    python -I -S supervisor.py REQUEST --lifeline-fd N

REQUEST is a JSON object: see Supervisor.__init__. The peer runs in a session of its own and a
scratch directory that is removed. Whatever it starts becomes our descendant and stays one, also
when its parent ends (PR_SET_CHILD_SUBREAPER), so all of it is found and ended: when the peer ends,
when its time is up, on SIGTERM, and when the lifeline closes because the parent process is gone.
A peer that talks to a server of its own gets it before: it is there when a process listens at its
port, which the kernel tells, since some servers serve only the first who connects.
One JSON object on standard output says how it went; none after a signal to end.
"""

import ctypes
import json
import os
import resource
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36
# hostbench promises to end within 2 s; Child waits as long before it kills the supervisor.
TERMINATE_GRACE_S = 1.0
KILL_S_MOST = 5.0
POLL_S = 0.01
# A server that does not listen by then never will.
LISTEN_S_MOST = 5.0
# include/net/tcp_states.h: the state in /proc/net of a socket that waits for others.
WAITING = {"tcp": "0A", "udp": "07"}
READ_BYTES = 1 << 16
# The beginning and the end of the output are kept: figures are at either. likwid-bench prints for
# every thread where it ran, in a line of 100 bytes.
KEPT_BYTES = 1 << 15

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


class Output:
    """The beginning and the end of the output, in bounded memory."""

    def __init__(self) -> None:
        self.bytes = 0
        self._head, self._tail = bytearray(), bytearray()

    def take(self, piece: bytes) -> None:
        self.bytes += len(piece)
        room = KEPT_BYTES - len(self._head)
        self._head += piece[:room]
        self._tail += piece[room:]
        del self._tail[:-KEPT_BYTES]

    def text(self) -> str:
        left_out = self.bytes - len(self._head) - len(self._tail)
        mark = f"\n[{left_out} bytes are left out]\n".encode() if left_out else b""
        return bytes(self._head + mark + self._tail).decode("utf-8", "replace").replace("\0", "�")


class Supervisor:
    """One peer, from its start to the end of its last process."""

    def __init__(self, request: dict[str, Any], lifeline: int) -> None:
        """`request` has these fields:

        - `command`, `timeout_s`.
        - `files`: name to text, written into the scratch directory; `links`: name to target,
          symbolic links there.
        - `report`: the name of the file there with the figures, or null.
        - `inherited`: descriptors that the peer keeps open.
        - `server`: command, protocol and port of the server that it talks to, or null.
        """
        self._request = request
        self._lifeline = lifeline
        self._output = Output()
        self._exit_code: int | None = None
        self._pid = 0
        self._server_output = Output()
        self._server_pid = 0
        self._server_ended = False
        self._wake, wake_write = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(wake_write, False)
        self._stop_requested = False
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._end)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _end(self, *_signal: object) -> None:
        self._stop_requested = True

    def run(self) -> dict[str, Any] | None:
        """Run the peer; return how it went, or None after a signal to end."""
        scratch = Path(tempfile.mkdtemp(prefix="hostbench-peer-"))
        try:
            for name, text in self._request["files"].items():
                (scratch / name).write_text(text)
            for name, target in self._request["links"].items():
                (scratch / name).symlink_to(target)
            return self._run_in(scratch)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)

    def _run_in(self, scratch: Path) -> dict[str, Any] | None:
        server_pipe = self._start_server(scratch)
        stat_before, started_s = _proc_stat(), time.monotonic()
        pipe = self._start_peer(scratch)
        deadline_s = started_s + self._request["timeout_s"]
        timed_out = pipe is not None and self._watch(pipe, server_pipe, deadline_s)
        elapsed_s, stat_after = time.monotonic() - started_s, _proc_stat()
        self._reap()
        left_behind = len(_descendants(self._server_pid)) if self._exit_code is not None else 0
        self._end_all(gently=pipe is not None and self._exit_code is None)
        if self._stop_requested:
            return None
        if pipe is not None:
            self._drain(pipe, self._output)
        self._take_report(scratch)
        if server_pipe is not None and self._exit_code != 0:
            self._drain(server_pipe, self._server_output)
            self._output.take(f"\n[output of its server:] {self._server_output.text()}".encode())
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return {
            "exit_code": self._exit_code,
            "timed_out": timed_out,
            "output": self._output.text(),
            "output_bytes": self._output.bytes,
            "elapsed_s": elapsed_s,
            "cpu_s": used.ru_utime + used.ru_stime,
            "user_s": used.ru_utime,
            "stat_before": stat_before,
            "stat_after": stat_after,
            "left_behind": left_behind,
        }

    def _start_peer(self, scratch: Path) -> int | None:
        """Start the peer; return the descriptor of its output, or None if it could not be
        started."""
        if self._stop_requested or (self._request.get("server") and not self._server_pid):
            return None
        try:
            self._pid, pipe = self._start(self._request["command"], scratch)
        except (OSError, subprocess.SubprocessError) as error:
            self._output.take(str(error).encode())
            return None
        return pipe

    def _start_server(self, scratch: Path) -> int | None:
        """Start the server, if there is one, and wait until it can be reached; return the
        descriptor of its output. If that fails, `_server_pid` is 0 and the output says why."""
        server = self._request.get("server")
        if server is None:
            return None
        try:
            self._server_pid, pipe = self._start(server["command"], scratch)
        except (OSError, subprocess.SubprocessError) as error:
            self._output.take(str(error).encode())
            return None
        if not self._listens(server["protocol"], server["port"], pipe):
            where = f"{server['protocol']} port {server['port']}"
            self._output.take(f"nothing listens at {where}".encode())
            self._server_pid = 0
        return pipe

    def _listens(self, protocol: str, port: int, pipe: int) -> bool:
        """Wait until the server listens. Return False if it ended, took too long, or this process
        must end."""
        deadline_s = time.monotonic() + LISTEN_S_MOST
        while time.monotonic() < deadline_s:
            if _is_open(protocol, port):
                return True
            for descriptor in select.select([pipe, self._lifeline], [], [], POLL_S)[0]:
                piece = os.read(descriptor, READ_BYTES)
                if descriptor == self._lifeline:
                    self._stop_requested = True
                self._server_output.take(piece)
            self._reap()
            if self._server_ended or self._stop_requested:
                return False
        return False

    def _start(self, command: list[str], scratch: Path) -> tuple[int, int]:
        """Start a process of the peer's; return its id and the descriptor of its output."""
        supervisor = os.getpid()

        def in_the_child() -> None:
            # If this process is killed, at least the peer's first process ends with it.
            _prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            if os.getppid() != supervisor:
                os._exit(1)

        pipe, write_end = os.pipe()
        try:
            # _reap() collects its exit, together with that of all processes it leaves behind.
            process = subprocess.Popen(
                command,
                cwd=scratch,
                env=os.environ | {"LC_ALL": "C", "TMPDIR": str(scratch)},
                stdin=subprocess.DEVNULL,
                stdout=write_end,
                stderr=write_end,
                pass_fds=self._request["inherited"],
                start_new_session=True,
                preexec_fn=in_the_child,
            )
        finally:
            os.close(write_end)
        process.returncode = 0  # so that Popen does not wait for it
        return process.pid, pipe

    def _watch(self, pipe: int, server_pipe: int | None, deadline_s: float) -> bool:
        """Wait until the peer ends, a signal comes, or its time is up; return True in the last
        case."""
        outputs = {pipe: self._output}
        if server_pipe is not None:
            outputs[server_pipe] = self._server_output
        readable = [*outputs, self._lifeline, self._wake]
        while True:
            self._reap()
            left_s = deadline_s - time.monotonic()
            if self._exit_code is not None or self._stop_requested:
                return False
            if left_s <= 0:
                return True
            for descriptor in select.select(readable, [], [], min(left_s, 3600.0))[0]:
                piece = os.read(descriptor, READ_BYTES)
                if descriptor in outputs:
                    outputs[descriptor].take(piece)
                    if not piece:
                        readable.remove(descriptor)
                elif descriptor == self._lifeline:
                    self._stop_requested = True

    def _reap(self) -> bool:
        """Collect the exits of all ended children; return whether any child is left."""
        try:
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return True
                if pid == self._pid:
                    self._exit_code = os.waitstatus_to_exitcode(status)
                self._server_ended |= pid == self._server_pid
        except ChildProcessError:
            return False

    def _end_all(self, *, gently: bool) -> None:
        """End every descendant: SIGTERM and a grace if `gently`, then SIGKILL until none is left. A
        second signal to this process does not shorten that, because it is short."""
        if gently:
            _signal_all(signal.SIGTERM)
            self._gone_within(TERMINATE_GRACE_S)
        deadline_s = time.monotonic() + KILL_S_MOST
        # Again and again: a process that forks at this moment is only seen the next time.
        while time.monotonic() < deadline_s:
            _signal_all(signal.SIGKILL)
            if self._gone_within(POLL_S):
                return

    def _gone_within(self, seconds: float) -> bool:
        deadline_s = time.monotonic() + seconds
        while self._reap():
            if time.monotonic() >= deadline_s:
                return False
            time.sleep(POLL_S / 10)
        return True

    def _drain(self, pipe: int, output: Output) -> None:
        """Read what is left in the pipe: all its writers have ended."""
        os.set_blocking(pipe, False)
        try:
            while piece := os.read(pipe, READ_BYTES):
                output.take(piece)
        except BlockingIOError:
            pass

    def _take_report(self, scratch: Path) -> None:
        if self._request["report"] is None:
            return
        try:
            with (scratch / self._request["report"]).open("rb") as file:
                while piece := file.read(READ_BYTES):
                    self._output.take(piece)
        except OSError as error:
            self._output.take(f"\n{self._request['report']}: {error.strerror}\n".encode())


def _proc_stat() -> str:
    try:
        return Path("/proc/stat").read_text().partition("intr")[0]
    except OSError:
        return ""


def _is_open(protocol: str, port: int) -> bool:
    """Whether a socket of this host waits at that port: proc_net(5)."""
    for family in ("", "6"):
        try:
            lines = Path(f"/proc/net/{protocol}{family}").read_text().splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            _, local, _, state, *_ = line.split()
            if int(local.rpartition(":")[2], 16) == port and state == WAITING[protocol]:
                return True
    return False


def _parents() -> dict[int, int]:
    """Return the parent of every visible process."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            text = (entry / "stat").read_bytes()
        except OSError:
            continue
        # The command is in parentheses and may contain any character.
        parents[int(entry.name)] = int(text.rpartition(b")")[2].split()[1])
    return parents


def _descendants(but: int = 0) -> list[int]:
    """Return every process below this one: a process that loses its parent becomes our own child.
    `but`: leave out this one and those below it."""
    parents = _parents()
    parents.pop(but, None)
    below = {os.getpid()}
    found: list[int] = []
    while more := [pid for pid, parent in parents.items() if parent in below and pid not in below]:
        below.update(more)
        found += more
    return found


def _signal_all(number: signal.Signals) -> None:
    for pid in _descendants():
        try:
            os.kill(pid, number)
        except (ProcessLookupError, PermissionError):
            continue


def main() -> int:
    """Run the request of the command line."""
    request, _flag, lifeline = sys.argv[1:]
    _prctl(PR_SET_CHILD_SUBREAPER, 1)
    ended = Supervisor(json.loads(request), int(lifeline)).run()
    if ended is None:
        return 1
    sys.stdout.write(json.dumps(ended) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
