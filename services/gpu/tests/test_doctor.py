"""What `hostbench doctor` says of GPUs: of hosts made out of files, and what nvidia-smi answers."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hostbench.doctor.view import View
from hostbench.model.doctor import Finding, State
from hostbench.model.host import Gpu, Gpus
from services.gpu import smi
from services.gpu.doctor import CHECKS, gpu_ecc, gpu_persistence, gpu_processes, gpu_throttling
from tests.doctor import hosts
from tests.doctor.hosts import Files, findings, view_of
from tests.unit import block_devices as made

PROBLEM, NOTICE, UNKNOWN, OK = State
BRIDGE = "sys/devices/pci0000:00/0000:00:01.0"
CARD = f"{BRIDGE}/0000:01:00.0"
LOADED = {
    "proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  "
    "Tue Mar  5 22:23:56 UTC 2024\nGCC version:  gcc version 12.2.0 (Debian 12.2.0-14)\n"
}
# As nvidia-smi 550 prints them with --format=csv,noheader,nounits.
ROW = "GPU-1, NVIDIA A10, Enabled, Enabled, 0, 16, 16, 0x0000000000000000"
Answer = tuple[str | None, str | None]


def pci_card(root: Path, vendor: str = "0x10de", width: str = "16", port: str = "16.0") -> None:
    link = {"current_link_speed": "2.5 GT/s PCIe", "current_link_width": width}
    most = {"max_link_speed": "16.0 GT/s PCIe", "max_link_width": "16"}
    above = most | {"max_link_speed": f"{port} GT/s PCIe"}
    own = {"class": "0x030200", "vendor": vendor} | link | most
    made.files(root, {f"{CARD}/{name}": f"{text}\n" for name, text in own.items()})
    made.files(root, {f"{BRIDGE}/{name}": f"{text}\n" for name, text in (link | above).items()})
    made.link(root, "sys/bus/pci/devices/0000:01:00.0", CARD)
    made.files(root, {"sys/bus/pci/drivers/nouveau/bind": ""})


def of(root: Path, check: str, files: Files | None = None, gpus: Gpus | None = None) -> Finding:
    view = view_of(root, hosts.amd_server() | (files or {}))
    host = view.host.model_copy(update={"gpus": gpus})
    return findings(dataclasses.replace(view, host=host))[check]


@pytest.fixture
def answering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., View]:
    """A view of a host whose nvidia-smi answers so, the driver being loaded."""

    def view(*answers: Answer, loaded: Files = LOADED) -> View:
        left = list(answers)

        def run(arguments: Sequence[str]) -> Answer:
            assert arguments[1] == "--format=csv,noheader,nounits"
            return left.pop(0) if len(left) > 1 else left[0]

        monkeypatch.setattr(smi, "run", run)
        monkeypatch.setattr(smi, "here", lambda view: True)
        return view_of(tmp_path / str(next(places)), hosts.amd_server() | loaded)

    places = itertools.count()
    return view


# ---- what there is ----


@pytest.mark.parametrize(
    ("gpus", "state", "part"),
    [
        (None, NOTICE, "no driver of a GPU has device files"),
        (Gpus(reason="gpu-bench is nowhere"), UNKNOWN, "cannot be read"),
        (Gpus(looked=("libcuda.so.1 is not installed", "")), NOTICE, "none"),
        (
            Gpus(devices=(Gpu(index=0, backend="opencl", name="a processor", type="cpu"),)),
            NOTICE,
            "a processor is a CPU by OpenCL",
        ),
        (
            Gpus(devices=(Gpu(index=0, backend="cuda", name="A10", compute_capability="8.6"),)),
            OK,
            "A10 by cuda, compute capability 8.6",
        ),
        (Gpus(devices=(Gpu(index=0, backend="opencl", name="Arc"),)), OK, "Arc by opencl"),
    ],
)
def test_the_devices(tmp_path: Path, gpus: Gpus | None, state: State, part: str) -> None:
    found = of(tmp_path / "bare", "gpu_devices", gpus=gpus)
    assert found.state is state and part in found.text, found
    assert found.evidence and found.remedy is None
    assert ("will be skipped" in found.text) == (state is NOTICE)
    pci_card(tmp_path / "host")
    with_card = of(tmp_path, "gpu_devices", gpus=gpus)
    assert with_card.state is state and part in with_card.text
    assert (with_card.remedy is not None) == (state is NOTICE)
    assert "skipped" not in with_card.text


@pytest.mark.parametrize(
    ("address", "vendor", "kind", "is_one"),
    [
        ("0000:01:00.0", "0x1002", "0x030000", True),
        ("0000:03:00.0", "0x8086", "0x038000", True),
        ("0000:00:05.0", "0x10de", "0x030200", True),  # given to a virtual machine
        ("0000:00:05.0", "0x1002", "0x120000", True),
        ("0000:00:02.0", "0x8086", "0x030000", False),  # inside of the processor
        ("0000:00:01.0", "0x1234", "0x030000", False),  # a virtual machine's display
        ("0000:02:00.0", "0x1a03", "0x030000", False),  # a server's console
        ("0000:01:00.0", "0x1002", "0x020000", False),
    ],
)
def test_only_for_a_card_there_is_something_to_do(
    tmp_path: Path, address: str, vendor: str, kind: str, is_one: bool
) -> None:
    device = f"sys/bus/pci/devices/{address}"
    found = of(
        tmp_path, "gpu_devices", {f"{device}/vendor": f"{vendor}\n", f"{device}/class": f"{kind}\n"}
    )
    assert found.state is NOTICE and (found.remedy is not None) == is_one


def test_what_was_looked_for_is_the_evidence(tmp_path: Path) -> None:
    looked = Gpus(looked=("libcuda.so.1 is not installed", "clGetPlatformIDs: -1001"))
    evidence = [one.value for one in of(tmp_path, "gpu_devices", gpus=looked).evidence]
    assert evidence == ["libcuda.so.1 is not installed", "clGetPlatformIDs: -1001"]


# ---- the driver ----


def test_no_card_of_nvidias_needs_no_driver(tmp_path: Path) -> None:
    assert of(tmp_path, "gpu_driver").state is OK


def test_a_driver_that_serves(tmp_path: Path) -> None:
    found = of(tmp_path, "gpu_driver", LOADED)
    assert (found.state, found.text) == (OK, "550.54.15")


def test_a_driver_that_is_too_old(tmp_path: Path) -> None:
    old = LOADED["proc/driver/nvidia/version"].replace("550.54.15", "470.256.02")
    found = of(tmp_path, "gpu_driver", {"proc/driver/nvidia/version": old})
    assert found.state is PROBLEM and "470.256.02: too old" in found.text and "525" in found.text
    odd = of(tmp_path / "odd", "gpu_driver", {"proc/driver/nvidia/version": "NVRM\n"})
    assert odd.state is UNKNOWN


def test_a_card_with_another_driver(tmp_path: Path) -> None:
    pci_card(tmp_path / "bare" / "host")
    bare = of(tmp_path / "bare", "gpu_driver")
    assert bare.state is PROBLEM and bare.text == "a card of NVIDIA's is driven by none"
    pci_card(tmp_path / "host")
    made.link(tmp_path / "host", f"{CARD}/driver", "sys/bus/pci/drivers/nouveau")
    found = of(tmp_path, "gpu_driver")
    assert found.state is PROBLEM and "nouveau" in found.text and found.remedy is not None


# ---- the link ----


def test_a_card_in_its_slot(tmp_path: Path) -> None:
    pci_card(tmp_path / "host", vendor="0x1002")
    found = of(tmp_path, "gpu_link")
    # That it idles at 2.5 GT/s is no matter.
    assert found.state is OK, found
    assert found.evidence[0].value == "x16 at 16 GT/s of x16 at 16 GT/s"


@pytest.mark.parametrize(
    ("width", "port", "part"),
    [("8", "16.0", "x8 at 16 GT/s of x16"), ("16", "8.0", "x16 at 8 GT/s of x16 at 16 GT/s")],
)
def test_a_card_that_could_do_more(tmp_path: Path, width: str, port: str, part: str) -> None:
    pci_card(tmp_path / "host", width=width, port=port)
    found = of(tmp_path, "gpu_link")
    assert found.state is NOTICE and f"0000:01:00.0: {part}" in found.text, found


def test_links_of_guests_may_be_made_up(tmp_path: Path) -> None:
    pci_card(tmp_path / "host", width="8")
    view = view_of(tmp_path, hosts.cloud_machine())
    assert findings(view)["gpu_link"].state is UNKNOWN
    assert of(tmp_path / "bare", "gpu_link").text == "no GPU with a PCI Express link"


def test_the_card_of_a_guest_says_how_wide_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pci_card(tmp_path / "host", width="8")
    view = view_of(tmp_path, hosts.cloud_machine() | LOADED)
    monkeypatch.setattr(smi, "here", lambda view: True)
    for lanes, state, text in (
        ("16, 16", OK, "as wide as the cards"),
        ("8, 16", NOTICE, "NVIDIA A10: x8 of x16: copies"),
        ("[N/A], [N/A]", UNKNOWN, "virtual machine"),
    ):
        row = ROW.replace("16, 16", lanes)
        monkeypatch.setattr(smi, "run", lambda _, row=row: (f"{row}\n", None))
        found = findings(view)["gpu_link"]
        assert found.state is state and text in found.text, found


# ---- what nvidia-smi says ----

SETTINGS = (gpu_persistence, gpu_ecc, gpu_throttling)


@pytest.mark.parametrize("check", SETTINGS)
def test_a_card_as_it_should_be(
    answering: Callable[..., View], check: Callable[[View], object]
) -> None:
    outcome = next(one for one in CHECKS if one.look is check).look(answering((f"{ROW}\n", None)))
    assert outcome.state is OK, outcome
    assert all("NVIDIA A10" in (one.value or "") for one in outcome.evidence)


@pytest.mark.parametrize("check", [*SETTINGS, gpu_processes])
@pytest.mark.parametrize(
    ("answers", "loaded", "part"),
    [
        (((None, "nvidia-smi is not installed"),), LOADED, "not installed"),
        ((("one, two\n", None),), LOADED, "its output: one,two"),
        ((("unused", None),), {}, "driver is not loaded"),
    ],
)
def test_no_nvidia_smi_that_answers(
    answering: Callable[..., View],
    check: Callable[[View], object],
    answers: tuple[Answer, ...],
    loaded: Files,
    part: str,
) -> None:
    view = answering(*answers, loaded=loaded)
    outcome = next(one for one in CHECKS if one.look is check).look(view)
    assert outcome.state is UNKNOWN, outcome
    assert part in (outcome.evidence[0].reason or "")


def test_persistence_mode(answering: Callable[..., View]) -> None:
    off = ROW.replace("NVIDIA A10, Enabled", "NVIDIA A10, Disabled")
    outcome = gpu_persistence(answering((f"{ROW}\n{off}\n", None)))
    assert outcome.state is NOTICE and outcome.text.startswith("off on NVIDIA A10:")
    assert outcome.advice is not None and outcome.advice.reach.needs_root


@pytest.mark.parametrize(
    ("mode", "errors", "state", "part"),
    [
        ("Disabled", "0", NOTICE, "off on NVIDIA A10"),
        ("Enabled", "3", PROBLEM, "could not be corrected"),
        ("[N/A]", "[N/A]", OK, "these cards have none"),
    ],
)
def test_ecc(
    answering: Callable[..., View], mode: str, errors: str, state: State, part: str
) -> None:
    row = ROW.replace("Enabled, Enabled, 0,", f"Enabled, {mode}, {errors},")
    outcome = gpu_ecc(answering((f"{row}\n", None)))
    assert outcome.state is state and part in outcome.text, outcome


@pytest.mark.parametrize(
    ("mask", "state", "part"),
    [
        ("0x0000000000000001", OK, "nothing"),
        ("0x0000000000000100", OK, "nothing"),
        ("0x0000000000000004", NOTICE, "power limit"),
        ("0x0000000000000002", NOTICE, "application clocks"),
        ("0x0000000000000024", PROBLEM, "heat (software)"),
        ("0x00000000000000C8", PROBLEM, "hardware slowdown, heat (hardware), power brake"),
        ("[Not Supported]", UNKNOWN, "a card does not report it"),
    ],
)
def test_what_holds_the_clock_down(
    answering: Callable[..., View], mask: str, state: State, part: str
) -> None:
    row = ROW.replace("0x0000000000000000", mask)
    outcome = gpu_throttling(answering((f"{row}\n", None)))
    assert outcome.state is state and part in outcome.text, outcome


def test_an_older_nvidia_smi_has_another_name_for_it(answering: Callable[..., View]) -> None:
    refused = (None, 'nvidia-smi ended with exit code 2: Field "clocks_event_reasons.active" …')
    assert gpu_throttling(answering(refused, (f"{ROW}\n", None))).state is OK


def test_others_on_the_card(answering: Callable[..., View]) -> None:
    shared = gpu_processes(answering(('GPU-1, 4711, python3\nGPU-1, 12, "a, b"\n', None)))
    assert shared.state is PROBLEM
    assert shared.text == "2 on the cards: python3 (pid 4711), a, b (pid 12)"
    alone = answering(("", None))
    assert gpu_processes(alone).state in (OK, UNKNOWN)


def test_which_peers_are_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nvbandwidth, which no package has, is one of NVIDIA's cards alone."""
    monkeypatch.setenv("PATH", str(tmp_path))
    places = itertools.count()

    def found(files: Files, *tools: str) -> Finding:
        for tool in tools:
            (tmp_path / tool).touch(mode=0o755)
        return of(tmp_path / f"host{next(places)}", "gpu_peers", files)

    without = found({})
    assert without.state is NOTICE and without.text == "without clpeak"
    assert without.remedy is not None and "apt-get install clpeak" in str(without.remedy)
    both = found(LOADED)
    assert both.text == "without clpeak, nvbandwidth"
    assert "apt-get install clpeak; nvbandwidth: github.com" in str(both.remedy)
    assert found({}, "clpeak").text == "clpeak: installed"
    one = found(LOADED, "clpeak")
    assert one.state is NOTICE and one.text == "without nvbandwidth"
    assert "apt-get" not in str(one.remedy) and "github.com/NVIDIA" in str(one.remedy)
    assert found(LOADED, "nvbandwidth").text == "clpeak, nvbandwidth: installed"


def test_on_a_host_of_files_nvidia_smi_does_not_run(tmp_path: Path) -> None:
    view = view_of(tmp_path, hosts.amd_server() | LOADED)
    answer = smi.cards(view)
    assert answer.rows == () and answer.reason == "not on this host"


def test_nvidia_smi_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert smi.run(["-L"]) == (None, "nvidia-smi is not installed")
    program = tmp_path / smi.TOOL
    program.write_text('#!/bin/sh\necho "called with $1"\n')
    program.chmod(0o755)
    assert smi.run(["--query-gpu=uuid"]) == ("called with --query-gpu=uuid\n", None)
    program.write_text('#!/bin/sh\necho "NVIDIA-SMI has failed"\nexit 9\n')
    assert smi.run(["-L"]) == (
        None, "nvidia-smi ended with exit code 9: NVIDIA-SMI has failed",
    )  # fmt: skip
    monkeypatch.setattr(smi, "TIMEOUT_S", 0.2)
    program.write_text("#!/bin/sh\nexec /bin/sleep 20\n")
    assert "did not answer" in (smi.run(["-L"])[1] or "")


def test_only_queries_are_allowed() -> None:
    """No option of nvidia-smi that sets anything can reach it from here."""
    source = Path(smi.__file__).read_text()
    assert source.count("subprocess.run") == 1
    assert 'f"--query-{what}=' in source and "--format=csv" in source
