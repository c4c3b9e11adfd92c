"""What `hostbench doctor` asks for the gpu subsystem alone. Settings are only looked at."""

import re
from collections.abc import Iterable, Sequence

from hostbench.doctor.check import (
    Advice,
    Check,
    Outcome,
    Reach,
    Topic,
    notice,
    ok,
    problem,
    unknown,
)
from hostbench.doctor.installed import peers_installed
from hostbench.doctor.view import View, one_line
from hostbench.host import pcie
from hostbench.host.gpu import DEVICE_FILES, GUEST, LOADED
from hostbench.model.doctor import Evidence
from hostbench.model.host import Gpu
from services.gpu import smi
from services.gpu.peers import PACKAGES, nvbandwidth

# The oldest that loads what CUDA 12's compiler makes: CUDA Toolkit Release Notes, minor version
# compatibility.
DRIVER_LEAST = 525
NVIDIA, AMD, INTEL, PCI = "0x10de", "0x1002", "0x8086", "/sys/bus/pci/devices"
# Classes of PCI devices: VGA and 3D controllers, other displays, processing accelerators.
GPU_CLASSES = ("0x0300", "0x0302", "0x0380", "0x1200")
# Of these no processor has one inside: 3D controllers without a display, accelerators.
CARD_CLASSES = ("0x0302", "0x1200")
# nvmlClocksEventReasons of the NVML API reference. Idle (1) and the display's clock (0x100) say
# nothing about a run.
HELD_DOWN = {
    0x8: "hardware slowdown",
    0x20: "heat (software)",
    0x40: "heat (hardware)",
    0x80: "power brake",
}
SET_LOWER = {0x2: "application clocks", 0x4: "power limit", 0x10: "sync boost"}
OFF, ON = "Disabled", "Enabled"


def gpu_devices(view: View) -> Outcome:
    """Whether there is anything to measure."""
    found = view.host.gpus
    action = "install the card's driver; in a container give it the card (compose.gpu.yaml)"
    # A host without a card lacks nothing that could be done for it.
    advice = Advice(action, Reach.STARTED) if _has_card(view) else None
    skipped = "" if advice else "; GPU cases will be skipped"
    if found is None:
        seen = [
            Evidence(source=f"/{pattern}", reason="no such file")
            for pattern in (*DEVICE_FILES, LOADED)
            if not view.find(f"/{pattern}")
        ]
        text = f"none: no driver of a GPU has device files here{skipped}"
        return notice(text, *seen, advice=advice)
    source = "gpu-bench --list-devices"
    if found.reason is not None:
        return unknown("cannot be read", Evidence(source=source, reason=one_line(found.reason)))
    looked = [text for text in found.looked if text] or ["nothing"]
    seen = [Evidence(source=source, value=one_line(text)) for text in looked]
    gpus = [one for one in found.devices if one.type == "gpu"]
    if gpus:
        return ok("; ".join(_named(one) for one in gpus), *seen)
    text = "none"
    if found.devices:
        text = f"none; {', '.join(one.name for one in found.devices)} is a CPU by OpenCL"
    return notice(f"{text}{skipped}", *seen, advice=advice)


def _named(one: Gpu) -> str:
    capability = f", compute capability {one.compute_capability}" if one.compute_capability else ""
    return f"{one.name} by {one.backend}{capability}"


def gpu_driver(view: View) -> Outcome:
    """Whether NVIDIA's cards have NVIDIA's driver, and one that can load our kernels."""
    cards = [path for path in _pci_gpus(view) if view.read(f"{path}/vendor").text == NVIDIA]
    version = view.read(smi.LOADED)
    if not cards and version.text is None:
        return ok("no card of NVIDIA's", version)
    if version.text is None:
        used = {_driver(view, path) or "none" for path in cards}
        text = f"a card of NVIDIA's is driven by {', '.join(sorted(used))}"
        advice = Advice("install NVIDIA's driver (Debian: nvidia-driver)", Reach.KERNEL)
        return problem(text, version, advice=advice)
    found = re.search(r"\b(\d{3,})\.\d[\d.]*\b", version.text)
    if found is None:
        return unknown("has a value that hostbench does not know", version)
    if int(found[1]) < DRIVER_LEAST:
        text = f"{found[0]}: too old for the kernels, which need {DRIVER_LEAST}"
        return problem(text, version, advice=Advice("a newer driver", Reach.KERNEL))
    return ok(found[0], version)


def _pci_gpus(view: View) -> list[str]:
    """The directories of the PCI devices that may be GPUs."""
    classes = (view.read(path) for path in view.find(f"{PCI}/*/class"))
    return [one.path.rsplit("/", 1)[0] for one in classes if (one.text or "")[:6] in GPU_CLASSES]


def _has_card(view: View) -> bool:
    """Whether one of them is a card, and not inside of the processor or made up for a display."""
    return any(_is_card(view, path) for path in _pci_gpus(view))


def _is_card(view: View, path: str) -> bool:
    vendor = view.read(f"{path}/vendor").text
    kind = (view.read(f"{path}/class").text or "")[:6]
    if vendor == NVIDIA or kind in CARD_CLASSES:
        return True
    # On the root bus sits what is inside of the processor.
    bus = path.rsplit("/", 1)[-1].split(":")[-2]
    return vendor in (AMD, INTEL) and bus != "00"


def _driver(view: View, path: str) -> str | None:
    link = view.root / path.lstrip("/") / "driver"
    return link.resolve().name if link.exists() else None


def _of_cards(view: View) -> tuple[smi.Answer, Outcome | None]:
    """What nvidia-smi says of the cards; or that there is nothing to ask it."""
    answer = smi.cards(view)
    if answer.rows:
        return answer, None
    reason = answer.reason or "it names no card"
    return answer, unknown("not reported", Evidence(source=smi.TOOL, reason=reason))


def _evidence(answer: smi.Answer, field: str) -> list[Evidence]:
    source = f"{smi.TOOL} --query-gpu={field}"
    return [
        Evidence(source=source, value=one_line(f"{row['name']}: {row[field]}"))
        for row in answer.rows
    ]


def _names(rows: Iterable[dict[str, str]]) -> str:
    return ", ".join(row["name"] for row in rows)


def gpu_persistence(view: View) -> Outcome:
    """Whether the driver stays loaded when nothing uses the card."""
    answer, no_card = _of_cards(view)
    if no_card is not None:
        return no_card
    field = "persistence_mode"
    seen = _evidence(answer, field)
    off = [row for row in answer.rows if row[field] == OFF]
    if off:
        text = (
            f"off on {_names(off)}: each run starts the driver anew, and the card cools and idles"
        )
        return notice(text, *seen, advice=Advice("nvidia-smi -pm 1", Reach.HARDWARE))
    return ok("on", *seen)


def gpu_ecc(view: View) -> Outcome:
    """Whether memory errors are corrected, and whether there were some that could not be."""
    answer, no_card = _of_cards(view)
    if no_card is not None:
        return no_card
    mode, errors = "ecc.mode.current", "ecc.errors.uncorrected.volatile.total"
    seen = [*_evidence(answer, mode), *_evidence(answer, errors)]
    broken = [row for row in answer.rows if row[errors].isdigit() and int(row[errors])]
    if broken:
        text = (
            f"{_names(broken)}: memory errors that could not be corrected, since the driver began"
        )
        advice = Advice(
            "nvidia-smi -q -d ECC,ROW_REMAPPER; reset or replace the card", Reach.MACHINE
        )
        return problem(text, *seen, advice=advice)
    off = [row for row in answer.rows if row[mode] == OFF]
    if off:
        text = f"off on {_names(off)}: bandwidth differs from that of cards that have it on"
        return notice(text, *seen, advice=Advice("nvidia-smi -e 1, then a reset", Reach.HARDWARE))
    on = [row for row in answer.rows if row[mode] == ON]
    return ok("on" if on else "these cards have none", *seen)


def gpu_throttling(view: View) -> Outcome:
    """What holds the clock down at this moment."""
    answer, no_card = _of_cards(view)
    if no_card is not None:
        return no_card
    seen = _evidence(answer, "reasons")
    masks = [(row["name"], _mask(row["reasons"])) for row in answer.rows]
    if any(mask is None for _, mask in masks):
        return unknown("a card does not report it", *seen)
    held = [f"{name}: {_words(mask, HELD_DOWN)}" for name, mask in masks if _words(mask, HELD_DOWN)]
    if held:
        action = "cooling, the power supply; nvidia-smi -q -d PERFORMANCE,TEMPERATURE,POWER"
        return problem("; ".join(held), *seen, advice=Advice(action, Reach.MACHINE))
    lower = [
        f"{name}: {_words(mask, SET_LOWER)}" for name, mask in masks if _words(mask, SET_LOWER)
    ]
    if lower:
        advice = Advice(
            "nvidia-smi -rac; nvidia-smi -q -d CLOCK,POWER shows limits", Reach.HARDWARE
        )
        return notice("; ".join(lower), *seen, advice=advice)
    return ok("nothing", *seen)


def _mask(text: str) -> int | None:
    return int(text, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", text) else None


def _words(mask: int | None, names: dict[int, str]) -> str:
    return ", ".join(name for bit, name in names.items() if (mask or 0) & bit)


def gpu_link(view: View) -> Outcome:
    """Whether the card has all its lanes, in a slot as fast as itself."""
    seen, narrow = [], []
    for path in _pci_gpus(view):
        link = pcie.link(view.root / path.lstrip("/"))
        if link is None:
            continue
        name = path.rsplit("/", 1)[-1]
        speed, here = link.transfers_per_second_most / 1e9, link.transfers_per_second_here / 1e9
        text = f"x{link.lanes_here} at {here:g} GT/s of x{link.lanes_most} at {speed:g} GT/s"
        seen.append(Evidence(source=f"{path}/current_link_width, max_link_*", value=text))
        if link.lanes_here < link.lanes_most or here < speed:
            narrow.append(f"{name}: {text}")
    if not seen:
        nothing = Evidence(source=f"{PCI}/*/max_link_width", reason="no GPU with a link")
        return unknown("no GPU with a PCI Express link", nothing)
    if view.may_be_virtual:
        return _link_by_the_card(view, *seen)
    if narrow:
        return _narrow(narrow, *seen)
    return ok("as wide and fast as the cards", *seen)


def _link_by_the_card(view: View, *made_up: Evidence) -> Outcome:
    """What NVIDIA's cards say of their lanes, whatever a hypervisor shows."""
    answer = smi.cards(view)
    now, most = "pcie.link.width.current", "pcie.link.width.max"
    lanes = [(row["name"], row[now], row[most]) for row in answer.rows]
    if not lanes or not all(one.isdigit() for _, *both in lanes for one in both):
        return unknown(GUEST, *made_up)
    seen = (*_evidence(answer, now), *_evidence(answer, most))
    narrow = [f"{name}: x{here} of x{whole}" for name, here, whole in lanes if here != whole]
    return _narrow(narrow, *seen) if narrow else ok("as wide as the cards", *seen)


def _narrow(links: Sequence[str], *seen: Evidence) -> Outcome:
    text = f"{'; '.join(links)}: copies to and from the host are slower than they could be"
    return notice(text, *seen, advice=Advice("another slot, or no riser", Reach.MACHINE))


def gpu_processes(view: View) -> Outcome:
    """Whether others compute on the cards."""
    answer = smi.processes(view)
    source = f"{smi.TOOL} --query-compute-apps"
    if answer.reason is not None:
        return unknown("not reported", Evidence(source=source, reason=answer.reason))
    if not answer.rows:
        if not view.sees_all_processes:
            hidden = Evidence(source=source, reason="those of other containers are not shown here")
            return unknown("none that can be seen from here", hidden)
        return ok("none", Evidence(source=source, value="none"))
    named = [f"{row['process_name']} (pid {row['pid']})" for row in answer.rows]
    seen = [Evidence(source=source, value=one_line(text)) for text in named[:8]]
    text = f"{len(named)} on the cards: {one_line(', '.join(named[:4]))}"
    return problem(text, *seen, advice=Advice("end what need not run", Reach.OWN))


def gpu_peers(view: View) -> Outcome:
    """Whether the tools are there that figures can be held against; one measures NVIDIA's cards
    alone."""
    loaded = view.read(smi.LOADED).text is not None
    return peers_installed(PACKAGES, {nvbandwidth.TOOL: nvbandwidth.SOURCE} if loaded else {})


CHECKS = (
    Check("gpu_devices", Topic.GPU, "GPUs", ("gpu",), gpu_devices),
    Check("gpu_driver", Topic.GPU, "Driver of NVIDIA's cards", ("gpu",), gpu_driver),
    Check("gpu_persistence", Topic.GPU, "Persistence mode", ("gpu",), gpu_persistence),
    Check("gpu_ecc", Topic.GPU, "ECC", ("gpu",), gpu_ecc),
    Check("gpu_throttling", Topic.GPU, "What holds the clock down", ("gpu",), gpu_throttling),
    Check("gpu_link", Topic.GPU, "PCI Express link", ("gpu",), gpu_link),
    Check("gpu_processes", Topic.GPU, "Others on the card", ("gpu",), gpu_processes),
    Check("gpu_peers", Topic.INSTALLATION, "Peers of GPUs", ("gpu",), gpu_peers),
)
