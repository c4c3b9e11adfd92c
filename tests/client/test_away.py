"""An orchestrator that goes away while somebody watches, and one that speaks TLS."""

from pathlib import Path

import pytest

from hostbench.base.exitcode import ExitCode
from tests.client.canned_server import certificate
from tests.client.real_stack import Stack
from tests.client.test_commands import rest_of
from tests.faults.command import Command
from tests.stack.orchestrator_process import API_KEY, OrchestratorProcess
from tests.stack.redis_server import RedisServer


@pytest.mark.exhaustive
def test_watchers_of_a_lost_job_are_notified(tmp_path: Path) -> None:
    with Stack(tmp_path).running() as stack:
        job = stack.submit(duration_s=60)
        stack.wait_until_measuring(job)
        process = stack.command.start("watch", job)
        assert process.stderr is not None
        while not process.stderr.readline().startswith("plan: "):
            pass
        stack.orchestrator.kill()
        printed = iter(process.stderr.readline, "")
        assert any("trying again, the job continues" in line for line in printed)
        stack.orchestrator.start()
        ended = rest_of(process)
        assert ended.code == ExitCode.ENDED_EARLY
        lines = ended.errors.splitlines()
        assert f"connected to {stack.orchestrator.url} again" in lines
        assert lines[-2].startswith(f"job {job} was lost: ")
        assert lines[-1] == f"next: hostbench resume {job}"
        assert "unfinished" in ended.output, "what was measured until then"


def test_an_orchestrator_with_tls_and_a_checkout_that_knows_it(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "secrets").mkdir(parents=True)
    made = certificate(checkout / "secrets", "IP:127.0.0.1")
    made.certificate.with_name("ca.pem").write_bytes(made.certificate.read_bytes())
    (checkout / "secrets" / "api_key").write_text(API_KEY)
    with RedisServer(tmp_path / "redis") as redis:
        server = OrchestratorProcess(
            tmp_path / "orchestrator", redis.url, tmp_path / "r", **made.of_server
        )
        (checkout / ".env").write_text(f"HOSTBENCH_PORT={server.port}\nHOSTBENCH_TLS=1\n")
        command = Command(checkout)
        for name in ("HOSTBENCH_URL", "HOSTBENCH_API_KEY", "HOSTBENCH_API_KEY_FILE"):
            command.environment.pop(name, None)
        with server:
            ended = command.run("hosts")
            assert (ended.code, ended.errors) == (ExitCode.OK, "")
            assert "No host is registered" in ended.output
            assert "has no job yet; submit one" in command.run("job", "latest").errors
            other = command.run("hosts", "--url", f"https://localhost:{server.port}")
            assert other.code == ExitCode.USAGE and "no key is named" in other.errors
            key = str(checkout / "secrets" / "api_key")
            in_clear = server.url.replace("https:", "http:")
            plain = command.run("hosts", "--key-file", key, "--url", in_clear)
            assert plain.code == ExitCode.UNREACHABLE
            assert "use https:// if it speaks TLS" in plain.errors
