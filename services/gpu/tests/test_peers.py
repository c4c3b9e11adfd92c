"""What peers print, recorded from real versions, becomes their figure or a clear reason."""

import contextlib
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from hostbench.model.events import ParamValue
from hostbench.model.trial import Beside
from hostbench.programs.peer import BadOutput, Peer
from services.gpu.peers import PACKAGES, TOOLS, matmul, peers

Params = dict[str, ParamValue]
PAGE = Path(__file__).parents[3] / "docs" / "peers.md"
# clpeak with Debian 12's PoCL 3.1; nvbandwidth as people published it, of a GeForce RTX 3050, an
# A10 and eight H100, without what was not requested here.
RECORDED = Path(__file__).with_name("recorded")
ONE = Beside(cpus=(1,), rate=1e12, elapsed_s=2.0)
UUID = "GPU-5b4e6d2a-0000-1111-2222-333344445555"
POCL = "pthread-skylake-avx512-Intel(R) Xeon(R) Processor"
PAGEABLE: Params = {"host_memory": "pageable", "size_bytes": 512 << 20, "device": "0"}
PINNED: Params = {"host_memory": "pinned", "size_bytes": 512 << 20, "device": "0"}
Run = tuple[str, str, Params, str, float]
RUNS: list[Run] = [
    ("clpeak", "fma", {"dtype": "fp32"}, "clpeak-1.1.2-compute-sp", 7.60e9),
    ("clpeak", "fma", {"dtype": "fp64"}, "clpeak-1.1.2-compute-dp", 3.36e9),
    ("clpeak", "int_mul_add", {"dtype": "int32"}, "clpeak-1.1.2-compute-integer", 4.48e9),
    ("clpeak", "read", {"size_bytes": 1 << 30}, "clpeak-1.1.2-global-bandwidth", 10.98e9),
    ("clpeak", "host_to_device", PAGEABLE, "clpeak-1.1.2-transfer-bandwidth", 4.30e9),
    ("clpeak", "device_to_host", PAGEABLE, "clpeak-1.1.2-transfer-bandwidth", 4.26e9),
    ("nvbandwidth", "host_to_device", PINNED, "nvbandwidth-0.8-host-to-device", 12.98e9),
    ("nvbandwidth", "host_to_device", PINNED, "nvbandwidth-0.5-host-to-device", 25.17e9),
    # What it copies once is read and written.
    ("nvbandwidth", "copy", {"size_bytes": 1 << 29}, "nvbandwidth-0.8-device-local-copy",
     2 * 84.33e9),
]  # fmt: skip
CARD = {"index": 0, "backend": "cuda", "backends": ["cuda", "opencl"], "name": "NVIDIA A10",
        "opencl": {"platform": 1, "device": 2}, "type": "gpu", "uuid": UUID,
        "pci": "0000:01:00.0"}  # fmt: skip
PROCESSOR = {"index": 1, "backend": "opencl", "backends": ["opencl"], "name": POCL, "type": "cpu",
             "uuid": "portable-computing-language-0", "pci": None}  # fmt: skip
GEMM = {"name": "gemm", "unsupported": None}


@pytest.fixture(autouse=True)
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where gpu-bench would be; it is never started."""
    path = tmp_path / "gpu-bench"
    path.write_text("")
    path.chmod(0o755)
    monkeypatch.setenv("HOSTBENCH_PROGRAMS", str(tmp_path))
    return str(path)


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text()


def peer(tool: str, workload: str, params: Params) -> Peer:
    return next(one for one in peers(workload, params) if one.tool == tool)


def tools(workload: str, params: Params) -> list[str]:
    return [one.tool for one in peers(workload, params)]


def answers(
    program: str, *devices: dict[str, object], **known: str
) -> Callable[[Sequence[str]], str]:
    """What commands answer, by their first word; gpu-bench lists `devices`."""
    listed = json.dumps({"devices": devices, "looked": ["", ""]})
    table = json.dumps({"workloads": [GEMM]})

    def ask(command: Sequence[str]) -> str:
        if command[0] == program:
            return listed if command[1] == "--list-devices" else known.get("table", table)
        return known.get(command[0], "")

    return ask


INSTALLED = {
    "clpeak": "clpeak version: 1.1.2\n",
    "nvbandwidth": "nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n",
    "python3": "torch 2.9.1+cu130\n",
}


@pytest.mark.parametrize(
    ("workload", "params", "expected"),
    [
        ("fma", {"dtype": "fp32"}, ["clpeak"]),
        ("fma", {"dtype": "fp64"}, ["clpeak"]),
        ("fma", {"dtype": "bf16"}, []),
        ("int_mul_add", {"dtype": "int32"}, ["clpeak"]),
        ("int_mul_add", {"dtype": "int64"}, []),
        ("int_add", {"dtype": "int32"}, []),
        ("dp4a", {}, []),
        ("tensor", {"dtype": "bf16"}, ["cublaslt"]),
        ("tensor", {"dtype": "int8"}, []),
        ("gemm", {"dtype": "bf16", "n": 8192}, ["pytorch"]),
        ("gemm", {"dtype": "fp8", "n": 8192}, []),
        ("read", {}, ["clpeak"]),
        ("copy", {}, ["nvbandwidth"]),
        ("triad", {}, []),
        ("pointer_chase", {}, []),
        ("host_to_device", PINNED, ["nvbandwidth"]),
        ("host_to_device", PAGEABLE, ["clpeak"]),
        ("device_to_host", PAGEABLE, ["clpeak"]),
        ("bidirectional", PINNED, ["nvbandwidth"]),
        ("launch_latency", {}, []),
        ("nothing", {}, []),
    ],
)
def test_what_stands_beside_what(workload: str, params: Params, expected: list[str]) -> None:
    assert tools(workload, params) == expected
    assert set(expected) <= set(TOOLS)


@pytest.mark.parametrize(("tool", "workload", "params", "name", "figure"), RUNS)
def test_recorded_output_has_its_figure(
    tool: str, workload: str, params: Params, name: str, figure: float
) -> None:
    assert peer(tool, workload, params).parse(recorded(name), ONE) == pytest.approx(figure)


@pytest.mark.parametrize(("tool", "workload", "params", "name", "figure"), RUNS)
def test_output_cut_at_any_line_is_a_figure_or_a_reason(
    tool: str, workload: str, params: Params, name: str, figure: float
) -> None:
    lines = recorded(name).splitlines(keepends=True)
    for count in range(len(lines)):
        with contextlib.suppress(BadOutput):
            value = peer(tool, workload, params).parse("".join(lines[:count]), ONE)
            # The best of those that were printed.
            assert 0 < value <= figure * 1.000001


@pytest.mark.parametrize(
    ("run", "old", "new", "part"),
    [
        (0, "our device: p", "our device: q", "no device qthread"),
        (0, "our device: ", "", "no name of a device"),
        (0, "Single-precision", "Half-precision", "no Single-precision compute"),
        (0, "      float", "      half", "no float"),
        (0, " 0.50", " nan", "nan"),
        (3, " 10.78", " 1.0.7", "1.0.7 is not a number"),
        (4, "enqueueWriteBuffer              ", "enqueueWrite ", "no enqueueWriteBuffer"),
        (6, "SUM host_to_device_memcpy_ce", "SUM other", "no SUM host_to_device_memcpy_ce"),
        (6, "           0\n 0     12.98", "           0         1\n 0     12.98     12.9",
         "devices 2 instead of 1"),
        (8, "bandwidth (GB/s)", "latency (ns)", "no matrix"),
    ],
)  # fmt: skip
def test_output_that_is_not_of_the_run_we_requested(
    run: int, old: str, new: str, part: str
) -> None:
    tool, workload, params, name, _ = RUNS[run]
    output = recorded(name)
    assert old in output
    one = peer(tool, workload, params)
    if part == "nan":
        assert not one.parse(output.replace(old, new), ONE) < 0.5e9
        return
    with pytest.raises(BadOutput, match=re.escape(part)):
        one.parse(output.replace(old, new), ONE)


def test_of_several_cards_nvbandwidth_has_no_figure() -> None:
    with pytest.raises(BadOutput, match="devices 8 instead of 1"):
        peer("nvbandwidth", "device_to_host", PINNED).parse(
            recorded("nvbandwidth-0.10-device-to-host"), ONE
        )


def test_of_several_devices_clpeak_is_read_behind_the_name_of_ours() -> None:
    own = recorded("clpeak-1.1.2-compute-sp")
    first = own.partition("\n")[2].replace(POCL, "another card").replace("7.60", "9999.0")
    both = own.partition("\n")[0] + "\n" + first + own.partition("\n")[2]
    assert peer("clpeak", "fma", {"dtype": "fp32"}).parse(both, ONE) == pytest.approx(7.60e9)


# ---- how they are run ----


def test_clpeak_says_which_device_is_meant(program: str) -> None:
    one = peer("clpeak", "fma", {"dtype": "fp32", "device": "1"})
    survey = one.survey(answers(program, CARD, PROCESSOR, **INSTALLED), ONE)
    assert (survey.version, survey.unsupported) == ("1.1.2", None)
    command = one.command(ONE).arguments
    assert command[:3] == ("taskset", "--cpu-list", "1")
    assert command[-3:] == (f"our device: {POCL}", "clpeak", "--compute-sp")
    printed = subprocess.run(
        [*command[3:-2], "echo", "ran"], capture_output=True, text=True, check=True
    ).stdout
    assert printed == f"our device: {POCL}\nran\n"


def test_clpeak_runs_on_our_device_alone(program: str) -> None:
    one = peer("clpeak", "fma", {"dtype": "fp32"})
    one.survey(answers(program, CARD, PROCESSOR, **INSTALLED), ONE)
    assert one.command(ONE).arguments[-6:] == ("clpeak", "-p", "1", "-d", "2", "--compute-sp")


@pytest.mark.parametrize(
    ("params", "name"),
    [
        ({}, "NVIDIA A10"),
        ({"device": "auto", "backend": "opencl"}, "NVIDIA A10"),
        ({"device": UUID}, "NVIDIA A10"),
        ({"device": UUID.upper()}, "NVIDIA A10"),
        ({"device": "0000:01:00.0"}, "NVIDIA A10"),
        ({"device": "portable-computing-language-0"}, POCL),
        ({"device": "1"}, POCL),
        ({"device": "2"}, None),
        ({"device": "1", "backend": "cuda"}, None),
    ],
)
def test_the_device_of_our_trial(program: str, params: Params, name: str | None) -> None:
    one = peer("clpeak", "fma", {"dtype": "fp32", **params})
    survey = one.survey(answers(program, CARD, PROCESSOR, **INSTALLED), ONE)
    if name is None:
        assert survey.unsupported == "it is unknown which device our trial ran on"
    else:
        command = one.command(ONE).arguments
        assert command[command.index("clpeak") - 1] == f"our device: {name}"


def test_a_processor_alone_is_never_chosen(program: str) -> None:
    survey = peer("clpeak", "fma", {"dtype": "fp32"}).survey(
        answers(program, PROCESSOR, **INSTALLED), ONE
    )
    assert survey.unsupported is not None and "is unknown which device" in survey.unsupported


def test_a_card_without_opencl_is_none_of_clpeaks(program: str) -> None:
    alone = {**CARD, "backends": ["cuda"]}
    survey = peer("clpeak", "fma", {"dtype": "fp32"}).survey(
        answers(program, alone, **INSTALLED), ONE
    )
    assert survey.unsupported == "OpenCL does not know NVIDIA A10"


def test_another_clpeak_is_not_understood(program: str) -> None:
    newer = answers(program, CARD, clpeak="clpeak version: 2.1.2\n")
    survey = peer("clpeak", "fma", {"dtype": "fp32"}).survey(newer, ONE)
    assert survey.version == "2.1.2" and "2.1.2" in (survey.unsupported or "")


def test_nvbandwidth_sees_one_card_and_copies_as_much_as_we_do(program: str) -> None:
    one = peer("nvbandwidth", "host_to_device", PINNED)
    assert one.survey(answers(program, CARD, **INSTALLED), ONE).version == "v0.8"
    command = " ".join(one.command(ONE).arguments)
    assert f"CUDA_VISIBLE_DEVICES={UUID} nvbandwidth -t host_to_device_memcpy_ce -b 512 " in command
    assert one.metric == "bytes_per_second"
    # Of both directions it tells one.
    assert peer("nvbandwidth", "bidirectional", PINNED).metric is None


def test_pytorch_multiplies_what_we_do(program: str) -> None:
    one = peer("pytorch", "gemm", {"dtype": "bf16", "n": 4096})
    assert one.survey(answers(program, CARD, **INSTALLED), ONE).version == "2.9.1+cu130"
    command = one.command(ONE)
    assert command.arguments[-5:] == ("python3", "matmul.py", "bf16", "4096", "2")
    assert "torch.matmul" in command.files["matmul.py"]
    with pytest.raises(BadOutput, match="4096"):
        one.parse('{"n": 8192, "operations_per_second": 1.0}', ONE)
    with pytest.raises(BadOutput, match="no operations_per_second"):
        one.parse("Traceback (most recent call last):", ONE)


def test_cublaslt_is_our_own_gemm_and_context(program: str) -> None:
    one = peer("cublaslt", "tensor", {"dtype": "bf16"})
    assert one.survey(answers(program, CARD), ONE).unsupported is None
    command = one.command(ONE).arguments
    assert command[3:] == (program, "gemm", "--dtype", "bf16", "--n", "8192", "--device", UUID,
                           "--duration-s", "2")  # fmt: skip
    assert one.metric is None
    output = '{"event":"start"}\n{"event":"end","metrics":{"operations_per_second":7.88e14}}\n'
    assert one.parse(output, ONE) == 7.88e14
    with pytest.raises(BadOutput, match="no end"):
        one.parse('{"event":"start"}\n', ONE)
    with pytest.raises(BadOutput, match="no operations_per_second"):
        one.parse('{"event":"end","metrics":{}}\n', ONE)


@pytest.mark.parametrize(
    ("tool", "workload", "params"),
    [
        ("nvbandwidth", "copy", {}),
        ("pytorch", "gemm", {"dtype": "bf16", "n": 8192}),
        ("cublaslt", "tensor", {"dtype": "bf16"}),
    ],
)
def test_what_only_nvidia_has_is_skipped_with_the_reason(
    program: str, tool: str, workload: str, params: Params
) -> None:
    one = peer(tool, workload, {**params, "device": "1"})
    missing = one.survey(answers(program, CARD, PROCESSOR, table='{"workloads": []}'), ONE)
    assert missing.unsupported is not None
    assert re.search(r"not installed|has no", missing.unsupported)
    elsewhere = peer(tool, workload, {**params, "device": "1"}).survey(
        answers(program, CARD, PROCESSOR, **INSTALLED), ONE
    )
    assert "NVIDIA's cards alone" in (elsewhere.unsupported or "")


def test_a_gemm_that_cannot_run_says_why(program: str) -> None:
    table = json.dumps({"workloads": [{"name": "gemm", "unsupported": "no libcublasLt.so.12"}]})
    survey = peer("cublaslt", "tensor", {"dtype": "bf16"}).survey(
        answers(program, CARD, table=table), ONE
    )
    assert survey.unsupported == "no libcublasLt.so.12"


FAKE_TORCH = """
import time
float16 = bfloat16 = float32 = float64 = "a type"
class _Cuda:
    class Event:
        def __init__(self, enable_timing): assert enable_timing
        def record(self): self.at = time.monotonic()
        def synchronize(self): pass
        def elapsed_time(self, end): return 2.0
    @staticmethod
    def is_available(): return True
    @staticmethod
    def synchronize(): pass
    @staticmethod
    def get_device_name(): return "a card"
cuda = _Cuda
class backends:
    class cuda:
        class matmul:
            allow_tf32 = None
def randn(rows, columns, device, dtype):
    assert rows == columns and device == "cuda" and dtype == "a type"
    return object()
def matmul(a, b): time.sleep(0.001)
"""


def test_the_program_around_pytorch(tmp_path: Path) -> None:
    """With something in its place: how it counts and what it prints."""
    (tmp_path / "torch.py").write_text(FAKE_TORCH)
    command = [sys.executable, matmul.__file__, "bf16", "1000", "0.05"]
    ran = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(tmp_path)}
    )
    assert ran.returncode == 0, ran.stderr
    one = peer("pytorch", "gemm", {"dtype": "bf16", "n": 1000})
    assert one.parse(ran.stdout, ONE) == pytest.approx(2 * 1000**3 / 2e-3)
    assert json.loads(ran.stdout)["products"] >= matmul.LEAST


# ---- the page ----


def test_the_page_says_what_stands_beside_what() -> None:
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    beside: list[tuple[str, str, Params]] = [
        ("clpeak", "fma", {"dtype": "fp32"}),
        ("nvbandwidth", "host_to_device", PINNED),
        ("cublaslt", "tensor", {"dtype": "bf16"}),
        ("pytorch", "gemm", {"dtype": "bf16", "n": 8192}),
    ]
    for tool, workload, params in beside:
        row = [line for line in rows if line.startswith(f"| {tool} ") and f"gpu.{workload}" in line]
        assert row, tool
        metric = peer(tool, workload, params).metric
        assert f"`{metric}`" in row[0] if metric else "nothing: context" in row[0]
    assert set(PACKAGES) <= set(TOOLS)


def test_how_long_they_take_can_be_planned_with() -> None:
    for tool, workload, params, _, _ in RUNS:
        assert 1 <= peer(tool, workload, params).trial_time_s(1.0) < 30
