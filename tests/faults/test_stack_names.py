"""Two machines with one name: the one that is alive keeps it."""

from pathlib import Path

from hostbench.model.jobs import StackState
from tests.faults.stack import SHORT, StackParts
from tests.patience import wait_until
from tests.stack.orchestrator_process import OrchestratorProcess
from tests.stack.service_process import ServiceProcess


def address(orchestrator: OrchestratorProcess) -> str:
    """Where bench-1 is."""
    url: str = orchestrator.wait_for_host("bench-1")["services"][0]["url"]
    return url


def test_a_copied_machine_does_not_take_the_name_of_the_other(tmp_path: Path) -> None:
    with StackParts(tmp_path) as stack:
        orchestrator = stack.orchestrator()
        first = stack.host(orchestrator, "bench-1")
        copy = ServiceProcess(
            tmp_path / "copy", host="bench-1", HOSTBENCH_ORCHESTRATOR_URL=orchestrator.url
        )
        with copy:
            # Both addresses, and what to do.
            says = f"service of bench-1 is alive at {first.url}, so the one at {copy.url} is not"
            wait_until(lambda: says in copy.log, lambda: copy.log)
            assert "HOSTBENCH_HOST" in copy.log
            assert address(orchestrator) == first.url
            job = orchestrator.submit(**SHORT, hosts=["bench-1"])
            assert orchestrator.wait_for(job)["state"] == StackState.SUCCEEDED
            # At its own address it is the same, though its instance is another.
            first.stop()
            first.start()
            wait_until(lambda: "registered" in first.log, lambda: first.log)
            assert address(orchestrator) == first.url
            # Once it is gone, and a job has missed it, the name has moved, and the job with it.
            first.stop()
            job = orchestrator.submit(**SHORT, hosts=["bench-1"])
            assert orchestrator.wait_for(job)["state"] == StackState.SUCCEEDED
            assert address(orchestrator) == copy.url
