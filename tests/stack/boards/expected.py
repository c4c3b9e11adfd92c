"""What every query of the boards must answer when a database holds one job."""

from collections.abc import Mapping

from grafana.queries import BoardQuery
from hostbench.model.registry import built_in_names
from hostbench.model.result import ResultDocument
from tests.stack.boards.answers import Row, is_of_several_jobs
from tests.stack.boards.board import BANDWIDTH, RATE, ROUND_TRIP, Board
from tests.stack.boards.cpu import CpuBoard
from tests.stack.boards.disk import DiskBoard
from tests.stack.boards.fleet import FleetBoard
from tests.stack.boards.gpu import GpuBoard
from tests.stack.boards.live import LiveBoard
from tests.stack.boards.maps import WORKLOADS, MapsBoard
from tests.stack.boards.mem import MemBoard
from tests.stack.boards.net import NetBoard
from tests.stack.boards.overview import OverviewBoard

BOARDS: Mapping[str, type[Board]] = {
    "overview": OverviewBoard,
    "fleet": FleetBoard,
    "cpu": CpuBoard,
    "mem": MemBoard,
    "disk": DiskBoard,
    "net": NetBoard,
    "gpu": GpuBoard,
    "maps": MapsBoard,
    "live": LiveBoard,
}


class Expected:
    """The answers for one document whose points are all in the database."""

    def __init__(self, document: ResultDocument) -> None:
        self._boards = {
            name: board(_of_subsystem(document, name) if name in built_in_names() else document)
            for name, board in BOARDS.items()
        }

    def rows(self, query: BoardQuery) -> list[Row]:
        """Return what this query must answer. Raise KeyError for a panel that is missing here."""
        if is_of_several_jobs(query):
            return []  # tests/influx/test_decisions.py has jobs for them
        return self._boards[query.board.removeprefix("hostbench-")].rows(query)


def _of_subsystem(document: ResultDocument, subsystem: str) -> ResultDocument:
    cases = (case for case in document.cases if case.workload.startswith(f"{subsystem}."))
    return document.model_copy(update={"cases": tuple(cases)})


def variable_values(document: ResultDocument) -> Mapping[tuple[str, str], set[str]]:
    """What each variable offers, by board and name."""
    done = [case for case in document.cases if case.verdict is not None]
    host, suite = {document.host.hostname}, {document.suite.name}
    workloads = {
        "overview": {case.workload for case in done},
        "fleet": {case.workload for case in done},
        "cpu": {
            case.workload
            for case in done
            if case.primary == RATE and case.workload.startswith("cpu.") and not case.naive
        },
        "mem": {case.workload for case in done if case.workload.startswith("mem.")},
        "disk": {case.workload for case in done if case.workload.startswith("disk.")},
        "net": {case.workload for case in done if case.workload.startswith("net.")},
        "gpu": {case.workload for case in done if case.workload.startswith("gpu.")},
        "maps": {case.workload for case in done if case.workload in WORKLOADS},
        "live": {
            case.workload for case in document.cases if any(trial.samples for trial in case.trials)
        },
    }
    rates = {case.workload: case.primary for case in done if not case.naive}
    rows = {
        ("mem", "kernel"): BANDWIDTH,
        ("disk", "stream"): BANDWIDTH,
        ("disk", "access"): RATE,
        ("net", "stream"): BANDWIDTH,
        ("net", "trip"): ROUND_TRIP,
        ("gpu", "kernel"): RATE,
        ("gpu", "mover"): BANDWIDTH,
    }
    return {
        **{(f"hostbench-{board}", "host"): host for board in workloads},
        **{(f"hostbench-{board}", "suite"): suite for board in workloads},
        **{(f"hostbench-{board}", "workload"): names for board, names in workloads.items()},
        **{
            (f"hostbench-{board}", row): {
                name
                for name, primary in rates.items()
                if primary == metric and name.startswith(f"{board}.")
            }
            for (board, row), metric in rows.items()
        },
        ("hostbench-maps", "job"): {document.job.id},
        ("hostbench-live", "job"): {document.job.id},
        ("hostbench-live", "newest"): {document.job.id},
    }
