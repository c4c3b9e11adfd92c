"""The figures of a job that may be compared, and the facts that belong to them.

They are read from the document's JSON and not through its models. For a job of 600 cases, the
models would check ten thousand trials, and a decision needs none of them.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from hostbench.base.units import binary_bytes, exact_bytes, human
from hostbench.model.baseline import HostKey
from hostbench.model.decision import FAR_HOST_FACT, CaseFigure, JobFigures
from hostbench.model.events import PROTOCOL_SCHEMA
from hostbench.model.host import Boot, HostInventory
from hostbench.model.result import USABLE, CampaignMember, Verdict

# This many digits of a program's or a document's hash distinguish two.
HASH_SHOWN = 12
_ON_OFF = {True: "on", False: "off"}


def job_figures(document: Mapping[str, Any]) -> JobFigures:
    """Return what decisions need from a result document, given as the JSON of a ResultDocument."""
    host = HostInventory.model_validate(document["host"], strict=False)
    job = document["job"]
    facts = facts_of(document, host)
    return JobFigures(
        job=job["id"],
        suite=job["suite"],
        host=host.hostname,
        machine=machine_of(host),
        is_guest=host.virtualisation.is_guest,
        created_unix_s=job["created_unix_s"],
        digest=document.get("digest"),
        versions={one["subsystem"]: one["version"] for one in document["programs"]},
        facts=facts,
        cases={case["case"]: _case_figure(case) for case in document["cases"]},
        boot=Boot.model_validate(moment) if (moment := document.get("boot")) else None,
        key=_key(document, host, facts),
        member=CampaignMember.model_validate(of) if (of := document.get("member")) else None,
    )


def _key(document: Mapping[str, Any], host: HostInventory, facts: Mapping[str, str]) -> HostKey:
    protocols = (
        event["protocol"]
        for case in document["cases"]
        for trial in case.get("trials", ())
        for event in trial["events"]
        if event["event"] == "start" and "protocol" in event
    )
    return HostKey(
        cpu=host.cpu.model_name or host.cpu.architecture,
        stepping=host.cpu.stepping,
        sockets=host.cpu.sockets,
        cpus=len(host.allowed_cpus),
        memory=facts.get("memory channels"),
        virtualisation=host.virtualisation.product or host.virtualisation.vendor,
        is_guest=host.virtualisation.is_guest,
        protocol=next(protocols, PROTOCOL_SCHEMA),
    )


def _case_figure(case: Mapping[str, Any]) -> CaseFigure:
    primary = case["metrics"].get(case["primary"])
    undisturbed, delivered, why_not = None, None, None
    verdict = case["verdict"]
    if verdict is None:
        why_not = "the job did not finish the case"
    elif primary is None:
        why_not = f"the case was {verdict}"
    elif case.get("figure") is None:
        why_not = "its document is from before a case had two figures"
    elif verdict in USABLE:
        undisturbed, delivered = _value(case["undisturbed"]), _value(case["delivered"])
    elif verdict == Verdict.DISTURBED and case["delivered_ratio"] is not None:
        # Its slices show what was taken, so all the work over all the time is still a figure.
        delivered = _value(case["delivered"])
    else:
        why_not = f"the case was {verdict}"
    figure = case.get("figure") if verdict in USABLE else None
    headline = _value(figure)
    interval = figure["interval"] if figure and headline is not None else None
    limit = primary.get("limit") if primary else None
    condition, reasons = case.get("condition"), case["reasons"]
    return CaseFigure(
        case=case["case"],
        title=f"{case['workload']} {case['label']}".strip(),
        workload=case["workload"],
        unit=primary["unit"] if primary else "1",
        direction=primary["direction"] if primary else "higher",
        undisturbed=undisturbed,
        delivered=delivered,
        why_not=why_not,
        headline=headline,
        low=interval["low"] if interval else None,
        high=interval["high"] if interval else None,
        limit=limit["value"] if limit and limit["value"] else None,
        naive=case.get("naive", False),
        given={name: case["params"][name] for name in case.get("given", ())},
        verdict=verdict,
        reason=reasons[0]["code"] if reasons else None,
        reason_text=reasons[0]["text"] if reasons else None,
        culprit=condition["culprit"] if condition else None,
    )


def _value(figure: Mapping[str, Any] | None) -> float | None:
    """Return the figure's value, or None if it is not above 0: ratios of such values mean
    nothing."""
    return figure["value"] if figure and figure["value"] > 0 else None


def machine_of(host: HostInventory) -> str:
    """Return what identifies a machine: two machines may have the same name."""
    return host.machine or host.hostname


def facts_of(document: Mapping[str, Any], host: HostInventory) -> dict[str, str]:
    """Return the facts about a job by name, in words, without the unknown ones.

    `document`: the JSON of a ResultDocument, or of the SessionRecord of a job that begins.
    """
    return dict(_facts(document, host))


def _facts(document: Mapping[str, Any], host: HostInventory) -> Iterator[tuple[str, str]]:
    cpu, clock, memory = host.cpu, host.frequency, host.memory
    quota = host.cgroup.quota_cpus
    known: dict[str, object] = {
        "host": host.hostname,
        "kernel": host.kernel,
        "distribution": host.distribution,
        "firmware": host.firmware,
        "CPU": cpu.model_name or cpu.architecture,
        "stepping": cpu.stepping,
        "microcode": cpu.microcode,
        "CPUs": len(host.allowed_cpus),
        "SMT": cpu.smt_active,
        "clock driver": clock.driver,
        "governor": clock.governor,
        "turbo": clock.turbo,
        "highest clock": human(clock.max_hertz, "Hz") if clock.max_hertz else None,
        "hypervisor": host.virtualisation.product or host.virtualisation.vendor,
        "container": host.virtualisation.container,
        "CPU quota": f"{quota:g} CPUs" if quota else "none",
        "memory limit": _size(host.cgroup.memory_bytes) or "none",
        "memory": _size(host.memory_bytes),
        "transparent huge pages": memory and memory.transparent_huge_pages,
    }
    if memory is not None and memory.channels:
        known["memory channels"] = ", ".join(
            f"{one.count} × {one.transfers_per_second / 1e6:.0f} MT/s" for one in memory.channels
        )
    for pool in memory.huge_page_pools if memory is not None else ():
        known[f"pool of {exact_bytes(pool.page_bytes)} pages"] = pool.pages
    if host.scratch is not None:
        known["file system of the scratch directory"] = host.scratch.file_system
        for disk in host.scratch.device.disks if host.scratch.device else ():
            known[f"disk {disk.name}"] = " ".join(filter(None, (disk.model, disk.transport)))
    for gpu in host.gpus.devices if host.gpus else ():
        known[f"driver of GPU {gpu.index}"] = " ".join(filter(None, (gpu.backend, gpu.driver)))
    known |= {f"mitigation of {name}": what for name, what in host.mitigations.items()}
    known["hostbench"] = document["hostbench"]
    for program in document["programs"]:
        known[program["name"]] = f"{program['version']} ({program['sha256'][:HASH_SHOWN]})"
    if (far := document.get("far_host")) is not None:
        known[FAR_HOST_FACT] = far["inventory"]["hostname"]
    for name, value in known.items():
        if value is not None and value != "":
            yield name, _ON_OFF[value] if isinstance(value, bool) else str(value)


def _size(size: int | None) -> str | None:
    return binary_bytes(size) if size else None
