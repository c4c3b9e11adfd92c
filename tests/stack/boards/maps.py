"""What the panels of the board Maps show of a job."""

from collections.abc import Iterator, Mapping
from functools import partial

from hostbench.model.result import CaseResult
from tests.stack.boards.answers import Row
from tests.stack.boards.board import ACCESS_TIME, BANDWIDTH, RATE, Answer, Board

KERNELS = ("mem.read", "mem.write", "mem.copy", "mem.triad")
CHASE = "mem.pointer_chase"
WORKLOADS = (
    *(*KERNELS, CHASE, "mem.code_chase", "mem.numa"),
    *(
        f"cpu.{name}"
        for name in (
            *("core_to_core", "clock_ladder", "smt_yield", "syscall", "context_switch", "wakeup"),
            *("page_fault", "process_start", "fixed_work", "roofline"),
        )
    ),
)
ROOFLINE_TAGS = ("dtype", "isa", "threads")


class MapsBoard(Board):
    """The workloads of the suite maps."""

    def answers(self) -> Mapping[str, Answer]:
        mapped = self.where(lambda case: case.workload in WORKLOADS)
        return {
            "Jobs": mapped._jobs,
            "Bandwidth of one thread over the working set": self._ladder,
            "Access time over the working set": lambda _: [
                self._chase(case, "pages") | self.number(case, "size_bytes", "working set")
                for case, params in self._chases()
                if params["stride_bytes"] == 64 and params["chains"] == 1
            ],
            "Access time over the working set, by stride": lambda _: [
                self._chase(case, "stride_bytes", "pages")
                | self.number(case, "size_bytes", "working set")
                for case, params in self._chases()
                if params["stride_bytes"] != 64 and params["chains"] == 1
            ],
            "Access time over the number of chains": lambda _: [
                self._chase(case, "pages")
                | self.number(case, "size_bytes", "size_bytes")
                | {"number of chains": str(params["chains"])}
                for case, params in self._chases()
                if params["stride_bytes"] == 64 and params["chains"] != 1
            ],
            "Time of a jump over the size of the code": lambda _: [
                self.point(
                    case, "jump_time_s", "time of a jump", ("pattern", "stride_bytes", "pages")
                )
                | self.number(case, "size_bytes", "size of the code")
                for case in self._of("mem.code_chase")
                if self.params(case)["threads"] == 1
            ],
            "From NUMA node to NUMA node": partial(
                self._over_time,
                "mem.numa",
                {
                    "A": "access_time_s_nearest",
                    "B": "access_time_s",
                    "C": "access_time_s_farthest",
                },
            ),
            "Roofline": self._roofline,
            "Roofs": self._roofs,
            "Clock by instruction set and CPUs at work": lambda _: self._metrics(
                "cpu.clock_ladder",
                "isa",
                ("clock_hertz", "clock_hertz_alone", "clock_hertz_lowest"),
            ),
            "Two threads over one": lambda _: self._metrics(
                "cpu.smt_yield", "kernel", ("yield_ratio", "cores_ratio")
            ),
            "From core to core": partial(
                self._over_time,
                "cpu.core_to_core",
                {
                    "A": "hand_over_time_s_nearest",
                    "B": "hand_over_time_s",
                    "C": "hand_over_time_s_farthest",
                },
            ),
            "Time lost to others": partial(
                self._over_time, "cpu.fixed_work", {"A": "lost_ratio", "B": "lost_ratio_most"}
            ),
            "Wakeup": lambda _: self._longest("wakeup", "by", "on"),
            "Context switch": lambda _: self._longest("context_switch", "by", "between"),
            "System call": lambda _: self._longest("syscall", "call", "host"),
            "Page fault": lambda _: self._longest("page_fault", "pages", "host"),
            "Start of a process": lambda _: self._longest("process_start", "how", "host"),
            "Latest result of every case": mapped.table,
        }

    def _of(self, *workloads: str) -> list[CaseResult]:
        return [case for case in self.cases if case.workload in workloads]

    def _jobs(self, _ref: str) -> list[Row]:
        return [
            {
                "time": self.time_ms(case),
                "host": self.host,
                "suite": self.document.suite.name,
                "job": self.document.job.id,
                **{k: v for k, v in self.fields(case).items() if k in ("n", "until_ms")},
            }
            for case in self.cases
        ]

    def _ladder(self, _ref: str) -> list[Row]:
        return [
            self.point(case, BANDWIDTH, "bandwidth", ("workload", "pages"))
            | self.number(case, "size_bytes", "working set")
            for case in self._of(*KERNELS)
            if self.params(case)["threads"] == 1 and self.params(case).get("pattern") != "random"
        ]

    def _chases(self) -> Iterator[tuple[CaseResult, Row]]:
        for case in self._of(CHASE):
            if self.params(case)["threads"] == 1:
                yield case, self.params(case)

    def _chase(self, case: CaseResult, *tags: str) -> Row:
        return self.point(case, ACCESS_TIME, "access time", tags)

    def _roofline(self, _ref: str) -> list[Row]:
        return [
            self.point(case, RATE, "rate", ROOFLINE_TAGS)
            | {"operations a byte": case.metrics["operations_per_byte"].statistics.median}
            for case in self._of("cpu.roofline")
        ]

    def _roofs(self, _ref: str) -> list[Row]:
        groups: dict[tuple[tuple[str, str], ...], list[CaseResult]] = {}
        for case in self._of("cpu.roofline"):
            key = tuple(self.tags(case, "host", *ROOFLINE_TAGS).items())
            groups.setdefault(key, []).append(case)
        return [{**dict(key), **self._roof(cases)} for key, cases in groups.items()]

    def _roof(self, cases: list[CaseResult]) -> Row:
        found = [self.fields(case) for case in cases]
        memory = max(
            one["value"] / case.metrics["operations_per_byte"].statistics.median
            for case, one in zip(cases, found, strict=True)
        )
        core = max(one["value"] for one in found)
        limits = [one["limit"] for one in found if "limit" in one]
        limit = {"limit": max(limits)} if limits else {}
        return {"memory": memory, "core": core, "ridge": core / memory, **limit}

    def _metrics(self, workload: str, row: str, metrics: tuple[str, ...]) -> list[Row]:
        return [
            {**self.tags(case, row), "metric": metric, "rate": value}
            for metric in metrics
            for case, value in self.measured(metric, self._of(workload))
        ]

    def _over_time(self, workload: str, metrics: Mapping[str, str], ref: str) -> list[Row]:
        return self.values(metrics[ref], self._of(workload))

    def _longest(self, name: str, *tags: str) -> list[Row]:
        cases = self._of(f"cpu.{name}")
        found: dict[tuple[tuple[str, str], ...], float] = {}
        for case in cases:
            for _, value in self.measured(case.primary, [case]):
                key = tuple(self.tags(case, *tags).items())
                found[key] = max(found.get(key, 0.0), value)
        return [{**dict(key), "rate": value} for key, value in found.items()]
