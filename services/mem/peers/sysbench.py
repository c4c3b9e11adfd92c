"""sysbench memory: each thread goes over a buffer of its own, a word of 8 bytes at a time.

Its block size is the size of that buffer, and only a power of two. With the default of 1 KiB, which
people quote, it measures the first-level cache. Here it is about our working set. One event is one
pass over the buffer, or as many random accesses as the buffer has words.
"""

import math
from dataclasses import replace

from hostbench.model.trial import Beside
from hostbench.programs.peer import Ask, Command, Params, Peer, Survey
from hostbench.programs.tools.placement import moving
from hostbench.programs.tools.reading import NUMBER, expect, number
from hostbench.programs.tools.sysbench import SysbenchTest
from services.mem.params import BLOCK, OPERATION, WORD_BYTES
from services.mem.peers.case import MAKESPAN, PLAIN, Case

MIB = 1 << 20
# Measured: 90 ns for a random access including its random number, and 5 GB/s in order.
_ACCESS_S, _PASS_S_A_BYTE, _TOUCH_S_A_BYTE = 1e-7, 2e-10, 1e-9
# So large that the time ends it.
_WITHOUT_END = "--memory-total-size=1000T"


def peer(workload: str, params: Params) -> Peer | None:
    """Return a peer for mem.read and mem.write in order, or for random accesses of a word."""
    case = Case.of(params)
    if workload in ("read", "write"):
        return Sequential(workload, case) if case.plain_passes else None
    operation = str(params.get(OPERATION, "read"))
    fits = operation in ("read", "write") and params.get(BLOCK) in (WORD_BYTES, None)
    return Random(operation, case) if workload == "random_access" and fits else None


class Memory(SysbenchTest):
    """sysbench memory, for any operation on a word."""

    mode: str

    def __init__(self, operation: str, case: Case) -> None:
        self.title = f"memory {operation} {self.mode}"
        self._operation, self._case = operation, case

    def block_bytes(self, threads: int) -> int:
        """Return the power of two that is nearest to one thread's part."""
        return 1 << max(10, round(math.log2(self._case.size_bytes / threads)))

    def survey(self, ask: Ask, beside: Beside) -> Survey:
        differs = (
            *(() if self._operation == "read" else self._case.other_store(PLAIN)),
            *self._case.other_size(self.block_bytes(beside.threads) * beside.threads),
            *moving(beside.cpus),
        )
        found = replace(super().survey(ask, beside), differs=differs)
        return self._case.pages.with_conditions(found, ask)

    def command(self, beside: Beside) -> Command:
        arguments = self.timed(
            beside,
            "--memory-scope=local",
            f"--memory-oper={self._operation}",
            f"--memory-access-mode={self.mode}",
            f"--memory-block-size={self.block_bytes(beside.threads)}",
            _WITHOUT_END,
        )
        return Command(self._case.pages.command(arguments))

    def transferred(self, output: str, beside: Beside) -> float:
        """Return the bytes per second of all threads. Raise BadOutput."""
        self.check(output, beside)
        block = number(rf"^  block size: {NUMBER}KiB$", output, "block size")
        expect("blocks in KiB", int(block), self.block_bytes(beside.threads) >> 10)
        expect("operation", f"operation: {self._operation}" in output, True)
        rate = rf"^[\d.]+ MiB transferred \({NUMBER} MiB/sec\)$"
        return number(rate, output, "MiB/sec") * MIB


class Sequential(Memory):
    """In order, which is compared with ours."""

    mode = "seq"
    unit = "byte/s"
    metric = MAKESPAN

    def __init__(self, operation: str, case: Case) -> None:
        super().__init__(operation, case)
        self.measures = (
            f"bytes per second, whole run: a compiled loop of {operation}s of 8 bytes over a "
            "buffer for each thread, its block, which is a power of two, about our working set"
        )

    def trial_time_s(self, elapsed_s: float) -> float:
        size = self._case.size_bytes
        return max(super().trial_time_s(elapsed_s), size * _PASS_S_A_BYTE) + size * _TOUCH_S_A_BYTE

    def parse(self, output: str, beside: Beside) -> float:
        return self.transferred(output, beside)


class Random(Memory):
    """At random, with a random number made for each access. It is context, and takes long: an event
    has an access for each word."""

    mode = "rnd"
    unit = "access/s"
    light = False

    def __init__(self, operation: str, case: Case) -> None:
        super().__init__(operation, case)
        self.measures = (
            f"{operation}s of 8 bytes per second at random places of a buffer for each thread, "
            "its block; each waits for a random number of its own"
        )

    def trial_time_s(self, elapsed_s: float) -> float:
        event_s = self._case.size_bytes / WORD_BYTES * _ACCESS_S
        return super().trial_time_s(elapsed_s) + event_s

    def parse(self, output: str, beside: Beside) -> float:
        return self.transferred(output, beside) / WORD_BYTES
