"""A result document as content: the sections of the report, in order."""

from dataclasses import replace

from hostbench.course.section import course_section
from hostbench.decisions.baseline import measured_job
from hostbench.decisions.hostcheck import check_host
from hostbench.decisions.receipt import receipt_of
from hostbench.model.baseline import HostCheck
from hostbench.model.result import ResultDocument
from hostbench.report.content import Report, Section
from hostbench.report.counted import counted_section
from hostbench.report.inventory import far_host_section, host_section
from hostbench.report.method import method_section
from hostbench.report.raw import raw_section
from hostbench.report.spread import spread_section
from hostbench.report.subsystems import section_of, subsystem_reports
from hostbench.report.summary import answer, host_line, job_facts, notices, summary_section, tally
from hostbench.report.timeline import time_section


def report_of(document: ResultDocument, source: str, check: HostCheck | None = None) -> Report:
    """Return the report of a job; `source` is the file it came from.

    `check` compares its host with baselines of its model; None: with its limits. Everything else
    comes from the document alone.
    """
    if check is None:
        check = check_host([measured_job(document)], None)
    subsystems, far = subsystem_reports(document), document.far_host
    sections = (
        course_section(document),
        summary_section(document, list(subsystems.values())),
        *(_in_detail(section_of(name, one), document) for name, one in subsystems.items()),
        time_section(document),
        spread_section(document),
        counted_section(document),
        host_section(document.host),
        far_host_section(far) if far else None,
        method_section(document),
        raw_section(document, source),
    )
    hosts = " and ".join([document.host.hostname, *([far.inventory.hostname] if far else [])])
    return Report(
        title=f"{document.suite.name} on {hosts}",
        subtitle=host_line(document.host),
        answer=answer(receipt_of(document, check), document),
        facts=job_facts(document),
        tally=tally(document.cases),
        notices=notices(document),
        sections=tuple(section for section in sections if section is not None),
    )


def _in_detail(section: Section, document: ResultDocument) -> Section:
    """Return the section for the short form: a suite that reruns a report already has its own
    tables there, which are long enough."""
    return replace(section, in_brief=False) if document.suite.published else section
