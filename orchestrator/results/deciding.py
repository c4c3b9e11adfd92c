"""Answers about stored jobs, each made in a process of its own."""

import asyncio
import threading
from pathlib import Path

from hostbench.base.errors import HostbenchError, UsageError
from hostbench.base.interrupt import Interrupt
from hostbench.model.job_decision import JobDecisions
from orchestrator.results.apart import OneAtATime, Work, made_apart
from orchestrator.results.questions import IndexQuestion, JobQuestion, Question


class Decider:
    """Answers one question at a time, as JSON; empty for None."""

    def __init__(self, results: Path, one_at_a_time: OneAtATime) -> None:
        self._results = results
        self._one_at_a_time = one_at_a_time
        self._one_job_at_a_time = threading.Lock()

    async def answer(self, question: Question) -> bytes:
        """Return the answer. Raise UsageError for an invalid question, ResourceError if it takes
        too much time or memory, and Problem for an error in its code, which is logged."""
        return await self._one_at_a_time.made(self._work(question), UsageError)

    def of_job(self, job: str, interrupt: Interrupt) -> JobDecisions:
        """Return the decisions about a job whose document is stored; call it in a thread of its
        own.

        Raise HostbenchError and Problem, as above; asyncio.CancelledError if `interrupt` comes.
        """
        with self._one_job_at_a_time:
            made = asyncio.run(_unless(interrupt, self._work(JobQuestion(job=job))))
        return JobDecisions.model_validate_json(made)

    def refresh_index(self, interrupt: Interrupt) -> None:
        """Have the index of figures read the documents that are new. Call and raise as `of_job`."""
        asyncio.run(_unless(interrupt, self._work(IndexQuestion())))

    def _work(self, question: Question) -> Work:
        arguments = (str(self._results), question.model_dump_json())
        return Work("orchestrator.results.questions", arguments, question.name, question.elsewhere)


async def _unless(interrupt: Interrupt, work: Work) -> bytes:
    making = asyncio.ensure_future(made_apart(work, HostbenchError))
    asyncio.get_running_loop().add_reader(interrupt, making.cancel)
    return await making
