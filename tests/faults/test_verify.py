"""hostbench verify over real programs, and over one that computes wrong (the build `flips`)."""

import io
import json
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from hostbench.base.exitcode import ExitCode
from hostbench.cli.verify import exposure_sentence, show_verification
from hostbench.host.hardware_errors import error_counts, hottest_celsius
from hostbench.host.inventory import inventory
from hostbench.model.verification import Exposure, Verification
from hostbench.plan.grid import make_plan
from hostbench.plan.workloads import find_workload
from hostbench.programs.program import load_program, load_programs
from hostbench.run.local import command_line
from hostbench.run.verification import SEED_MOST, suite_of_kernels
from services.gpu.tests import cuda_stub
from tests.benchmark import UNSUPPORTED, WRONG
from tests.faults.command import CHECKOUT, PROGRAMS, Command, Ended, end_of
from tests.patience import wait_until

CPUS = sorted(os.sched_getaffinity(0))
LANE, BIT = 5, 3
BRIEF = ("--memory", "1")
ERRORS = 20
# Kernels whose accumulators have lanes of the dtype; each has at least so many accumulators.
FLIPPED = ("fma", "mul_add", "add_sub", "int_add", "int_mul", "int_mul_add")
ACCUMULATORS = 8
REGISTER_BITS = {"sse2": 128, "avx2": 256, "avx512": 512, "neon": 128}
PLACE = re.compile(r"lane (\d+) of accumulator (\d+)")


@pytest.fixture(scope="module")
def flips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Programs, among them a cpu-bench that computes wrong where the environment says."""
    folder = tmp_path_factory.mktemp("flips")
    made = subprocess.run(
        ["make", "-s", "build/flips/cpu-bench"], cwd=CHECKOUT, capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    shutil.copy(CHECKOUT / "build" / "flips" / "cpu-bench", folder)
    shutil.copy(PROGRAMS / "mem-bench", folder)
    return folder


def stored(command: Command) -> Any:
    (file,) = (command.results / "verify").glob("*.json")
    return json.loads(file.read_text())


def exposures(document: Any) -> dict[str, Any]:
    return {one["subsystem"]: one for one in document["exposures"]}


def test_a_cpu_that_computes_wrong_is_named(tmp_path: Path, flips: Path) -> None:
    bad = CPUS[-1]
    command = Command(tmp_path, flips, HOSTBENCH_FLIP=f"{bad}:{LANE}:{BIT}:5")
    lines = tmp_path / "verify.jsonl"
    ended = command.run(
        "verify", "--subsystem=cpu", "--for=2s", "--seed=11", "--json", f"--ocp={lines}"
    )
    assert ended.code == ExitCode.CORRUPT, ended.errors
    assert json.loads(lines.read_text().splitlines()[-1])["testRunArtifact"] == {
        "testRunEnd": {"status": "COMPLETE", "result": "FAIL"}
    }
    assert ended.document == stored(command)
    assert exposures(ended.document)["cpu"]["errors"] == len(ended.document["findings"]) >= 1
    finding = ended.document["findings"][0]
    assert finding["seed"] == 11 and finding["wrong"]["cpu"] == bad
    assert "of accumulator" in finding["wrong"]["place"]
    wrong = finding["wrong"]
    assert int(wrong["expected"], 16) ^ int(wrong["value"], 16) == 1 << BIT
    suspect, *others = finding["retests"]
    assert suspect == {"cpus": str(bad), "wrong": 5, "trials": 5}
    assert all(one["wrong"] == 0 and one["cpus"] != str(bad) for one in others)
    assert len(others) == (len(CPUS) > 1)
    again = subprocess.run(
        shlex.split(finding["command"]), capture_output=True, text=True, env=command.environment
    )
    assert again.returncode == 5
    assert json.loads(again.stdout.splitlines()[-1])["wrong"]["cpu"] == bad


def test_twenty_of_twenty_errors_are_found_named_and_found_again(flips: Path) -> None:
    """One bit in one lane on one CPU, at the first to the 40th pass of a kernel."""
    tables = {"cpu": load_program("cpu").table}
    suite, _ = suite_of_kernels(tables, 0.5)
    kernels = [
        case
        for case in make_plan(suite, tables, inventory()).cases
        if case.workload.removeprefix("cpu.") in FLIPPED and case.skip is None
        if case.params["isa"] in {"scalar", *REGISTER_BITS}
    ]
    # Of some widths a CPU lacks the instruction for a dtype, which the program says.
    brief = {"threads": 1, "duration_s": 0.01, "warmup_s": 0.0}
    kernels = [
        kernel
        for kernel in kernels
        if subprocess.run(
            [
                flips / "cpu-bench",
                *command_line(kernel.workload.removeprefix("cpu."), {**kernel.params, **brief}),
            ],
            capture_output=True,
        ).returncode
        != UNSUPPORTED
    ]
    chosen = random.Random(ERRORS)
    places = set()
    for _ in range(ERRORS):
        kernel, cpu = chosen.choice(kernels), chosen.choice(CPUS)
        isa = str(kernel.params["isa"])
        bits = int(re.sub(r"\D", "", str(kernel.params["dtype"])))
        lanes = REGISTER_BITS.get(isa, bits) // bits
        lane, bit = chosen.randrange(ACCUMULATORS * lanes), chosen.randrange(bits)
        flip = f"{cpu}:{lane}:{bit}:{chosen.randint(1, 40)}"
        params = {
            **kernel.params,
            "threads": len(CPUS),
            "cpus": ",".join(map(str, CPUS)),
            "duration_s": 10.0,  # the first wrong pass ends it
            "warmup_s": 0.01,
            "seed": chosen.randint(0, SEED_MOST),
        }
        call = command_line(kernel.workload.removeprefix("cpu."), params)
        for _again in range(2):
            ended = subprocess.run(
                [flips / "cpu-bench", *call],
                capture_output=True,
                text=True,
                env=os.environ | {"HOSTBENCH_FLIP": flip},
            )
            why = f"{flip} in {shlex.join(call)}: {ended.stdout}"
            assert ended.returncode == WRONG, why
            wrong = json.loads(ended.stdout.splitlines()[-1])["wrong"]
            in_register, accumulator = map(int, PLACE.fullmatch(wrong["place"]).groups())  # type: ignore[union-attr]
            assert (wrong["cpu"], accumulator * lanes + in_register) == (cpu, lane), why
            assert int(wrong["expected"], 16) ^ int(wrong["value"], 16) == 1 << bit, why
        places.add((kernel.title, flip))
    assert len(places) == ERRORS


def test_the_release_build_has_no_such_switch(tmp_path: Path) -> None:
    command = Command(tmp_path, HOSTBENCH_FLIP=f"{CPUS[-1]}:{LANE}:{BIT}:1")
    ended = command.run("verify", "--subsystem=cpu", "--for=1s", "--json")
    assert ended.code == ExitCode.OK and ended.document["findings"] == []


def test_a_sound_host_has_an_exposure_and_is_resumed(tmp_path: Path) -> None:
    command = Command(tmp_path)
    series = tmp_path / "verify.prom"
    subsystems = ("--subsystem=cpu", "--subsystem=mem")
    first = command.run("verify", "--for=4s", *BRIEF, *subsystems, f"--openmetrics={series}")
    assert first.code == ExitCode.OK, first.errors
    lines = series.read_text().splitlines()
    errors = [line for line in lines if line.startswith("hostbench_verify_errors{")]
    assert len(errors) == 2 and all(line.endswith("} 0.0") for line in errors)
    for subsystem, unit in (("cpu", "operation"), ("mem", "byte")):
        line = next(one for one in first.output.splitlines() if one.startswith(f"{subsystem}: "))
        assert "0 errors in" in line and f"errors per {unit} at 95 %" in line
    assert "passed" not in first.output
    before = stored(command)
    assert before["ended"] == "time"
    assert sorted(map(int, exposures(before)["cpu"]["checks_of_cpu"])) == CPUS
    second = command.run("verify", "--resume=latest", "--for=1s", "--subsystem=cpu", "--ocp=-")
    assert second.code == ExitCode.OK, second.errors
    version, start, *_ = (json.loads(line) for line in second.output.splitlines())
    assert version["schemaVersion"] == {"major": 2, "minor": 0}
    command_line = start["testRunArtifact"]["testRunStart"]["commandLine"]
    assert command_line == "hostbench verify --resume=latest --for=1s --subsystem=cpu --ocp=-"
    after = stored(command)
    assert after["id"] == before["id"] and after["parts"] == 2
    assert exposures(after)["cpu"]["checks"] > exposures(before)["cpu"]["checks"]
    assert exposures(after)["mem"] == exposures(before)["mem"]


def test_every_gpu_is_verified_too(tmp_path: Path) -> None:
    """Two that a library emulates: no host of the tests has one."""
    command = Command(tmp_path, PROGRAMS, **cuda_stub.environment(cards=2))
    lines = tmp_path / "verify.jsonl"
    ended = command.run("verify", "--subsystem=gpu", "--for=2s", "--json", f"--ocp={lines}")
    assert ended.code == ExitCode.OK, ended.errors
    (exposure,) = ended.document["exposures"]
    assert exposure["subsystem"] == "gpu" and exposure["checks_of_cpu"] == {}
    of_gpu = exposure["checks_of_gpu"]
    assert sorted(of_gpu) == ["0", "1"] and all(of_gpu.values())
    assert exposure["checks"] == sum(of_gpu.values())
    start = json.loads(lines.read_text().splitlines()[1])["testRunArtifact"]["testRunStart"]
    hardware = {one["hardwareInfoId"]: one["name"] for one in start["dutInfo"]["hardwareInfos"]}
    cards = {f"gpu{one['index']}": one["name"] for one in ended.document["gpus"]}
    assert len(cards) == 2 and cards.items() <= hardware.items()


def test_a_gpu_that_computes_wrong_is_named(tmp_path: Path) -> None:
    environment = cuda_stub.environment(cards=2, wrong="fma_fp64:1:4")
    ended = Command(tmp_path, PROGRAMS, **environment).run(
        "verify", "--subsystem=gpu", "--for=0.5s", "--seed=7"
    )
    assert ended.code == ExitCode.CORRUPT, ended.errors
    finding, again, command, *_ = ended.output.splitlines()[1:]
    assert "gpu.fma, GPU 0, seed 7: " in finding
    assert "wrong in 3 of 3 trials" in again and "--device=0" in command


def ocp_bodies(file: Path) -> list[dict[str, Any]]:
    """What the whole lines for OCP say, in their order."""
    lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
    assert [line["sequenceNumber"] for line in lines] == list(range(len(lines)))
    return [line.get("testStepArtifact") or line.get("testRunArtifact", {}) for line in lines]


def test_a_kill_leaves_the_lines_until_then(tmp_path: Path, flips: Path) -> None:
    """As soon as the error is found, in the midst of its retests or of what follows."""
    bad, file = CPUS[-1], tmp_path / "verify.jsonl"
    command = Command(tmp_path, flips, HOSTBENCH_FLIP=f"{bad}:{LANE}:{BIT}:5")
    process = command.start("verify", "--subsystem=cpu", "--for=10m", f"--ocp={file}")
    wait_until(
        lambda: file.exists() and '"name": "finding"' in file.read_text(), lambda: "no finding"
    )
    process.send_signal(signal.SIGKILL)
    assert end_of(process).code == -signal.SIGKILL
    bodies = ocp_bodies(file)
    kinds = [next(iter(body), None) for body in bodies]
    assert kinds[:2] == [None, "testRunStart"] and "testRunEnd" not in kinds
    found = kinds.index("diagnosis")
    assert bodies[found]["diagnosis"]["hardwareInfoId"] == f"cpu{bad}"
    assert bodies[found + 1]["extension"]["content"]["command"].endswith(
        "--seed=" + seed_of(bodies)
    )
    assert command.is_gone_soon()


def seed_of(bodies: list[dict[str, Any]]) -> str:
    """The first seed, as a line for OCP names it."""
    (seed,) = (
        body["log"]["message"].removeprefix("seed ")
        for body in bodies
        if body.get("log", {}).get("message", "").startswith("seed ")
    )
    return str(seed)


def test_lines_that_cannot_begin_are_refused_before_the_first_trial(tmp_path: Path) -> None:
    command = Command(tmp_path)
    ended = command.run("verify", "--subsystem=cpu", "--for=1s", "--ocp=none/verify.jsonl")
    assert ended.code == ExitCode.RESOURCE and len(ended.errors.splitlines()) == 1
    assert "none/verify.jsonl: No such file" in ended.errors and "--ocp" in ended.errors
    assert not (command.results / "verify").exists()


def test_a_full_disk_ends_the_lines_and_not_the_verification(tmp_path: Path) -> None:
    ended = Command(tmp_path).run("verify", "--subsystem=cpu", "--for=1s", "--ocp=/dev/full")
    assert ended.code == ExitCode.RESOURCE and "0 errors in" in ended.output
    (line,) = (line for line in ended.errors.splitlines() if "/dev/full" in line)
    assert "cannot write the lines for OCP" in line and "No space left" in line


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_keeps_what_was_checked(tmp_path: Path, number: signal.Signals) -> None:
    command = Command(tmp_path)
    file = tmp_path / "verify.jsonl"
    process = command.start("verify", "--for=10m", "--subsystem=cpu", f"--ocp={file}")

    def trials() -> int:
        return sum("--seed=" in text for text in seen_arguments(command))

    wait_until(trials, lambda: "no trial began")
    first = command.program_pids()
    wait_until(lambda: set(command.program_pids()) - set(first), lambda: "no second trial began")
    process.send_signal(number)
    ended = end_of(process)
    assert ended.code == 128 + number
    assert f"ended by {number.name}" in ended.output and "0 errors in" in ended.output
    checks = exposures(stored(command))["cpu"]["checks"]
    assert checks > 0
    bodies = ocp_bodies(file)
    assert bodies[-1] == {"testRunEnd": {"status": "SKIP", "result": "NOT_APPLICABLE"}}
    values = [
        one["measurementSeriesElement"]["value"]
        for one in bodies
        if "measurementSeriesElement" in one
    ]
    assert values[-1] == checks
    assert command.is_gone_soon()


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU")
def test_a_cpu_that_goes_away_is_no_error_and_is_left_alone(tmp_path: Path) -> None:
    """As when it goes offline or leaves the cpuset: the kernel takes it from the process's mask."""
    command = Command(tmp_path)
    process = command.start("verify", "--for=10m", "--subsystem=cpu")
    wait_until(lambda: seen_arguments(command), lambda: "no trial began")
    os.sched_setaffinity(process.pid, CPUS[:1])
    seen: list[str] = []

    def several() -> bool:
        seen.extend(text for text in seen_arguments(command) if text not in seen)
        return len(seen) > 8

    wait_until(several, lambda: f"too few trials: {seen}")
    process.send_signal(signal.SIGTERM)
    ended = end_of(process)
    assert ended.code == ExitCode.TERMINATED and "0 errors in" in ended.output, ended.errors
    # One trial is under way, and the next may have been planned before.
    assert all(f"--cpus={CPUS[0]}\0" in text for text in seen if text not in seen[:3]), seen
    assert str(CPUS[0]) in exposures(stored(command))["cpu"]["checks_of_cpu"]
    assert stored(command)["findings"] == []


def seen_arguments(command: Command) -> list[str]:
    found = []
    for pid in command.program_pids():
        try:
            found.append(Path(f"/proc/{pid}/cmdline").read_text())
        except OSError:
            continue
    return found


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--for=0"], ["--for", "0", "90s, 10m, 8h or 2d"]),
        (["--for=31d"], ["31d", "30 days"]),
        (["--for=ten"], ["ten", "10m"]),
        (["--memory=91"], ["--memory", "91", "1 to 90"]),
        (["--seed=-1"], ["--seed", "-1"]),
        (["--subsystem=disk"], ["disk", "cpu, mem or gpu"]),
        (["--ocp=-", "--json"], ["--ocp -", "--json", "file"]),
        (["--ocp=."], ["--ocp", "directory", "verify.jsonl"]),
        (["--resume=latest"], ["no verification", "latest", "--resume"]),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], words: list[str]) -> None:
    ended: Ended = Command(tmp_path).run("verify", *arguments)
    assert ended.code == ExitCode.USAGE
    assert len(ended.errors.splitlines()) == 1
    assert all(word in ended.errors for word in words), ended.errors


def test_a_verification_of_another_machine_is_not_resumed(tmp_path: Path) -> None:
    command = Command(tmp_path)
    assert command.run("verify", "--subsystem=cpu", "--for=0.5s").code == ExitCode.OK
    (file,) = (command.results / "verify").glob("*.json")
    file.write_text(json.dumps(stored(command) | {"machine": "of another host"}))
    ended = command.run("verify", "--resume=latest", "--for=1s")
    assert ended.code == ExitCode.USAGE and "another machine" in ended.errors


def test_the_rule_of_three() -> None:
    one = Exposure(subsystem="cpu", unit="operation", checks=3 * 10**12, checks_of_cpu={"0": 1})
    assert exposure_sentence(one, 1, 0) == (
        "cpu: 0 errors in 3e+12 operations on 1 CPU: at most 1.0e-12 errors per operation at 95 %"
    )
    assert one.model_copy(update={"errors": 1}).rate_most is None
    one = one.model_copy(update={"subsystem": "gpu", "checks_of_gpu": {"1": 1}})
    assert "operations on 1 GPU of 2: at most" in exposure_sentence(one, 1, 2)


def test_counts_of_the_kernel(tmp_path: Path) -> None:
    sys, proc = tmp_path / "sys", tmp_path / "proc"
    controller = sys / "devices" / "system" / "edac" / "mc" / "mc0"
    sensor = sys / "class" / "hwmon" / "hwmon3"
    dimm, nameless = controller / "dimm0", controller / "dimm1"
    for folder in (dimm, nameless, sensor, proc):
        folder.mkdir(parents=True)
    assert error_counts(proc, sys) == {} and hottest_celsius(sys) is None
    (controller / "ce_count").write_text("4\n")
    (controller / "ue_count").write_text("0\n")
    (controller / "ce_noinfo_count").write_text("1\n")
    (dimm / "dimm_label").write_text("CPU_SrcID#0_MC#0_Chan#1_DIMM#0\n")
    (dimm / "dimm_ce_count").write_text("3\n")
    (nameless / "dimm_label").write_text("\n")
    (nameless / "dimm_ue_count").write_text("0\n")
    (proc / "interrupts").write_text(
        "            CPU0       CPU1\n THR:          0          5   Threshold APIC interrupts\n"
        " DFR:          0          0   Deferred Error APIC interrupts\n"
        " MCE:          1          2   Machine check exceptions\n"
        " MCP:         70         70   Machine check polls\n"
    )
    (sensor / "name").write_text("k10temp\n")
    (sensor / "temp1_input").write_text("61500\n")
    edac = "/sys/devices/system/edac/mc/mc0"
    assert error_counts(proc, sys) == {
        f"{edac}/ce_count": 4,
        f"{edac}/ue_count": 0,
        f"{edac}/dimm0/dimm_ce_count, CPU_SrcID#0_MC#0_Chan#1_DIMM#0": 3,
        f"{edac}/dimm1/dimm_ue_count": 0,
        "/proc/interrupts THR": 5,
        "/proc/interrupts DFR": 0,
        "/proc/interrupts MCE": 3,
    }
    assert hottest_celsius(sys) == 61.5


@pytest.mark.parametrize(
    ("counts", "line"),
    [
        ({}, "hardware errors: the kernel counts none here (no EDAC, no machine checks)"),
        ({"a": 0, "b": 0}, "hardware errors meanwhile: none in 2 counters of the kernel"),
        ({"a": 0, "b": 3, "c": 1}, "hardware errors meanwhile: 3 (b); 1 (c)"),
    ],
)
def test_of_many_counters_those_that_moved_are_shown(counts: dict[str, int], line: str) -> None:
    fields: dict[str, Any] = {"id": "v", "hostname": "h", "machine": None, "cpu": None}
    fields |= {"cpus": (0,), "began_unix_s": 0.0, "hardware_errors": counts}
    found, stream = Verification(**fields), io.StringIO()
    show_verification(found, Path("v.json"), stream)
    assert line in stream.getvalue().splitlines()


def test_every_kernel_takes_the_parameters_of_its_turns() -> None:
    tables = {name: program.table for name, program in load_programs(("cpu", "mem")).items()}
    suite, _ = suite_of_kernels(tables, 0.5)
    assert len(suite.cases) > 20
    for case in suite.cases:
        workload = find_workload(tables, case.workload)
        for param in ("threads", "cpus", "duration_s"):
            assert workload.param(param) is not None, (case.workload, param)
