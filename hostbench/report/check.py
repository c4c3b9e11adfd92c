"""Whether a document's trials come from the programs that it names: a report lends figures
weight."""

from collections.abc import Iterator

from hostbench.base.errors import UsageError
from hostbench.model.result import ResultDocument
from hostbench.results.store import JobDirectory


def load_checked(job: JobDirectory) -> ResultDocument:
    """Return the document of a job. Raise UsageError, which names the first trial of another
    version, or what `JobDirectory.load` raises."""
    document = job.load()
    foreign = next(foreign_trials(document), None)
    if foreign is not None:
        raise UsageError(
            f"{job.document} mixes versions: {foreign}; figures of several versions are not one "
            f"result. Measure those cases again with: hostbench run --resume {job.id}, or in a "
            "new job"
        )
    return document


def foreign_trials(document: ResultDocument) -> Iterator[str]:
    """Yield each trial that another program measured than the one the document names, as a
    sentence."""
    named = {program.subsystem: program for program in document.programs}
    for position, case in enumerate(document.cases):
        program = named.get(case.workload.partition(".")[0])
        for number, trial in enumerate(case.trials):
            if trial.start is None:
                continue
            measured = f"{trial.start.program} {trial.start.version}"
            stated = "no program of its subsystem"
            if program is not None:
                stated = f"{program.name} {program.version}"
            if measured != stated:
                at = f"cases.{position}.trials.{number}"
                yield f"{at} is of {measured}, and the document names {stated}"
