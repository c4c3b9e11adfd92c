"""`make wheel`: what is in the wheels, on which C libraries their programs run, and that pip, pipx
and uvx install them offline on a host that has Python and nothing else."""

import email
import json
import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from hostbench import __version__
from hostbench.model.registry import subsystem_names

pytestmark = [pytest.mark.exhaustive, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
ARCHITECTURES = ("x86_64", "aarch64")
GLIBC = (2, 28)
# What every glibc of that age has: https://peps.python.org/pep-0600/
LIBRARIES = {"libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1"}
LOADERS = {"ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
OLD_GLIBC = ROOT / "build/old-glibc"
QEMU = ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")
ONE_TRIAL = ("--threads", "1", "--duration-s", "0.05", "--warmup-s", "0")
# Of these folders, what only tests and builds need stays out.
FOLDERS = ("hostbench", "services", "suites", "baselines")
LEFT_OUT = re.compile(r"services/\w+/((bench|fuzz|kernels|stand-ins|tests)/|image\.sh$)")
SUITE = """\
name: small
description: A few short trials.
idle: {policy: force}
repeats: {min_trials: 1, max_trials: 1}
peers: none
cases:
  - {workload: cpu.clock, params: {threads: 1, duration_s: 0.05}}
  - {workload: cpu.gemm, params: {threads: 1, duration_s: 0.05, n: 64, library: pinned}}
  - {workload: mem.triad, params: {threads: 1, duration_s: 0.05}}
"""
# No checkout, no compiler and no network, then the command with an environment of its own.
FRESH = """
mount -t tmpfs none "$1"
for tool in cc gcc clang c++ make git; do
    found=$(readlink -f "$(command -v $tool)") && mount --bind /dev/null "$found"
done
cd "$2" && shift 2 && exec env -i "$@"
"""


def make(directory: Path, *arguments: str, umask: int = 0o022) -> None:
    """Call make there; what apt and pip would install first is there."""
    given = ("--old-file=packages", "--old-file=venv", *arguments)
    environment = {**os.environ, "GIT_OPTIONAL_LOCKS": "0"}
    ended = subprocess.run(
        ["make", *given], cwd=directory, env=environment, umask=umask,
        capture_output=True, text=True,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stdout + ended.stderr


@dataclass(frozen=True)
class Wheel:
    """A wheel, and where it was unpacked."""

    file: Path
    tree: Path

    @property
    def programs(self) -> list[Path]:
        return [self.tree / f"hostbench/bin/{name}-bench" for name in subsystem_names()]


def unpack(file: Path, tree: Path) -> None:
    """With the modes, which zipfile leaves out."""
    with zipfile.ZipFile(file) as archive:
        for entry in archive.infolist():
            Path(archive.extract(entry, tree)).chmod(entry.external_attr >> 16)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Wheel]:
    """Those of this checkout, by architecture."""
    directory = tmp_path_factory.mktemp("dist")
    make(ROOT, "wheel", f"DIST={directory}")
    found = {}
    for architecture in ARCHITECTURES:
        name = f"hostbench-{__version__}-py3-none-manylinux_2_28_{architecture}.whl"
        tree = directory / architecture
        unpack(directory / name, tree)
        found[architecture] = Wheel(directory / name, tree)
    assert len(list(directory.glob("*.whl"))) == len(found)
    return found


@pytest.fixture(params=ARCHITECTURES)
def wheel(wheels: Mapping[str, Wheel], request: pytest.FixtureRequest) -> Wheel:
    return wheels[request.param]


def test_it_holds_all_that_a_checkout_runs(wheel: Wheel) -> None:
    listed = subprocess.check_output(["git", "ls-files", *FOLDERS], cwd=ROOT, text=True)
    tracked = {name for name in listed.splitlines() if not LEFT_OUT.match(name)}
    assert {"hostbench/host/microarchitectures.yaml", "hostbench/report/page.html.j2"} < tracked
    placed = {re.sub(r"^(suites|baselines)/", r"hostbench/\1/", name) for name in tracked}
    made = {str(program.relative_to(wheel.tree)) for program in wheel.programs}
    shared = {
        f"hostbench-{__version__}.data/data/share/{name}"
        for name in ("man/man1/hostbench.1", "bash-completion/completions/hostbench")
    }
    names = set(zipfile.ZipFile(wheel.file).namelist())
    assert names - {name for name in names if ".dist-info/" in name} == (
        placed | made | shared | {"hostbench/build.json"}
    )


def test_the_gpu_kernels_are_in_their_program(wheel: Wheel) -> None:
    program = (wheel.tree / "hostbench/bin/gpu-bench").read_bytes()
    kernels = [*ROOT.glob("build/gpu/*.cubin"), *ROOT.glob("build/gpu/*.ptx")]
    assert len(kernels) > 10
    assert [file.name for file in kernels if file.read_bytes() not in program] == []
    assert b"__kernel void" in program


def test_its_metadata_are_those_of_the_project(wheel: Wheel) -> None:
    (file,) = wheel.tree.glob("*.dist-info/METADATA")
    metadata = email.message_from_string(file.read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert metadata["Requires-Python"] == project["requires-python"]
    assert metadata.get_all("Provides-Extra") == list(project["optional-dependencies"])
    needed = {re.split(r"[=<>;]", one)[0] for one in metadata.get_all("Requires-Dist") or []}
    assert {"pydantic", "typer", "scipy-openblas32", "lightkube"} < needed
    assert "setuptools" not in needed


def read_elf(program: Path, *options: str) -> str:
    return subprocess.check_output(["readelf", "--wide", *options, program], text=True)


def test_its_programs_run_on_glibc_2_28(wheel: Wheel) -> None:
    """They ask for no newer symbol and no other library, and bring what runs their constructors.

    From 2.34 on the C library does that: on an older one, a program linked for it runs none.
    """
    for program in wheel.programs:
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", read_elf(program, "--dynamic")))
        assert needed and needed <= LIBRARIES | LOADERS, program
        versions = re.findall(r"Name: (\w+?)_([\d.]+) ", read_elf(program, "--version-info"))
        assert {word for word, _ in versions} == {"GLIBC"}, program
        newest = max(tuple(map(int, version.split("."))) for _, version in versions)
        assert newest <= GLIBC, program
        assert re.search(r" FUNC .* __libc_csu_init$", read_elf(program, "--symbols"), re.MULTILINE)


def assert_they_run(programs: Sequence[Path], prefix: Sequence[str | Path]) -> None:
    """They have their workloads, which constructors register, and cpu-bench measures."""
    for program in programs:
        table = json.loads(subprocess.check_output([*prefix, program, "--list"]))
        source = ROOT / "build/release" / program.name
        built = json.loads(subprocess.check_output([source, "--list"]))
        assert [one["name"] for one in table["workloads"]] == [
            one["name"] for one in built["workloads"]
        ]
    clock = subprocess.check_output([*prefix, programs[0], "clock", *ONE_TRIAL], text=True)
    assert json.loads(clock.splitlines()[-1])["event"] == "end"


def test_the_programs_run(wheel: Wheel) -> None:
    """Also those of the other architecture, which qemu emulates."""
    prefix: Sequence[str] = ()
    if wheel.file.stem.rpartition("_")[2] != os.uname().machine.rpartition("_")[2]:
        prefix = QEMU
        if shutil.which(prefix[0]) is None:
            pytest.skip(f"{prefix[0]} is not installed")
    assert_they_run(wheel.programs, prefix)


def test_the_programs_run_on_a_real_old_c_library(wheels: Mapping[str, Wheel]) -> None:
    """From before 2.34, when constructors, threads and dlopen moved into libc.so.6.

    The programs of `make programs` do not start there, so it is another library than this host's.
    """
    machine = os.uname().machine
    loaders = [one for name in LOADERS for one in OLD_GLIBC.glob(f"lib/{machine}-linux-gnu/{name}")]
    if not loaders:
        pytest.skip(f"no old C library of {machine} is there: scripts/old-glibc.sh build/old-glibc")
    (loader,) = loaders
    prefix = (loader, "--library-path", loader.parent)
    version = subprocess.check_output([loader, loader.parent / "libc.so.6"], text=True)
    found = re.search(r"stable release version (\d+)\.(\d+)", version)
    assert found is not None and GLIBC <= tuple(map(int, found.groups())) < (2, 34), version
    assert_they_run(wheels[machine].programs, prefix)
    refused = subprocess.run(
        [*prefix, ROOT / "build/release/cpu-bench", "--list"], capture_output=True, text=True
    )
    assert "version `GLIBC_" in refused.stderr, "this host's own C library is as old"


def test_the_same_commit_gives_the_same_bytes(wheels: Mapping[str, Wheel], tmp_path: Path) -> None:
    """In another folder, with another umask, and compiled anew."""
    copy = tmp_path / "another folder"
    copy.mkdir()
    tracked = subprocess.check_output(["git", "ls-files", "-z"], cwd=ROOT)
    packed = ["tar", "--create", "--null", "--files-from=-"]
    archive = subprocess.run(packed, cwd=ROOT, input=tracked, capture_output=True, check=True)
    subprocess.run(["tar", "--extract"], cwd=copy, input=archive.stdout, check=True)
    for name in (".git", ".venv"):
        (copy / name).symlink_to(ROOT / name)
    (copy / "build").mkdir()
    for name in ("gpu", "zig", "python"):
        (copy / "build" / name).symlink_to(ROOT / "build" / name)
    make(copy, "wheel", "WHEELS=x86_64", "DIST=dist", umask=0o077)
    (again,) = (copy / "dist").iterdir()
    assert again.read_bytes() == wheels["x86_64"].file.read_bytes()


class FreshHost:
    """This machine without checkout, compiler and network; a virtual environment is all of PATH."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.bin = directory / "venv/bin"

    def run(self, program: str | Path, *arguments: str | Path) -> str:
        own = () if os.geteuid() == 0 else ("--map-root-user",)
        ended = subprocess.run(
            ["unshare", *own, "--mount", "--net", "sh", "-c", FRESH, "sh", ROOT, self.directory,
             f"PATH={self.bin}", f"HOME={self.directory}",
             f"HOSTBENCH_LOCK={self.directory / 'lock'}", program, *arguments],
            capture_output=True, text=True, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout


def pip_of_its_own(environment: Path) -> list[str | Path]:
    """Make a virtual environment; return the command that calls its pip.

    Under the same interpreter, since pip chooses packages for the one that it runs under.
    """
    python = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    subprocess.run([python, "-m", "venv", environment], check=True)
    return [environment / "bin/python", "-m", "pip", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def host(wheels: Mapping[str, Wheel], tmp_path_factory: pytest.TempPathFactory) -> FreshHost:
    """One on which pip has installed the wheel from a folder of wheels."""
    wheel = wheels.get(os.uname().machine)
    if wheel is None:
        pytest.skip(f"no wheel is made for {os.uname().machine}")
    directory = tmp_path_factory.mktemp("host")
    folder = directory / "wheels"
    pip = pip_of_its_own(directory / "venv")
    locked = [part for name in ("cli", "openblas") for part in ("-r", f"requirements/{name}.txt")]
    subprocess.run(
        [*pip, "download", "--require-hashes", "--dest", folder, *locked], cwd=ROOT, check=True
    )
    shutil.copy(wheel.file, folder)
    host = FreshHost(directory)
    host.run("pip", "install", "--no-index", "--find-links", folder, "hostbench")
    return host


def test_the_commands_work(host: FreshHost) -> None:
    version = host.run("hostbench", "--version")
    assert re.fullmatch(
        rf"hostbench {re.escape(__version__)} \(commit [0-9a-f]{{12}}( with changes)?, "
        rf"manylinux_2_28_{os.uname().machine}, gcc [\d.]+\)\n",
        version,
    )
    suites = host.run("hostbench", "list", "suites")
    assert "quick" in suites and "cs553/cluster-node" in suites
    tables = json.loads(host.run("hostbench", "list", "workloads", "--json"))["programs"]
    assert {table["subsystem"] for table in tables} == set(subsystem_names())
    assert "cpu.fma" in host.run("hostbench", "plan", "quick")
    assert "ok" in host.run("hostbench", "doctor", "--json")


def test_a_run_ends_with_figures_and_a_page(host: FreshHost) -> None:
    suite = host.directory / "small.yaml"
    suite.write_text(SUITE)
    document = json.loads(host.run("hostbench", "run", suite, "--json"))
    verdicts = {case["workload"]: case["verdict"] for case in document["cases"]}
    assert set(verdicts) == {"cpu.clock", "cpu.gemm", "mem.triad"}
    assert set(verdicts.values()) <= {"clean", "noisy", "disturbed"}, document["cases"]
    (page,) = host.directory.glob("results/**/*.html")
    assert "gemm" in page.read_text()


def test_pipx_and_uvx_install_it_and_measure_within_a_minute(host: FreshHost) -> None:
    """From the start of the installer to a figure and a report; the download is not counted."""
    tools, folder = host.directory / "tools", host.directory / "wheels"
    locked = ("--require-hashes", "-r", ROOT / "requirements/installers.txt")
    subprocess.run([*pip_of_its_own(tools), "install", *locked], check=True)
    (wheel,) = folder.glob("hostbench-*.whl")
    # uv looks for an interpreter on PATH alone, and leaves out those of virtual environments.
    offline = (
        "--python",
        host.bin / "python",
        "--offline",
        "--find-links",
        folder,
        "--from",
        wheel,
    )
    measure = ("run", "--workload", "cpu.fma", "--param", "duration_s=0.2", "--idle-policy=force",
               "--peers=none", "--json", "--results")  # fmt: skip

    begun = time.monotonic()
    host.run(tools / "bin/pipx", "install", f"--pip-args=--no-index --find-links={folder}", wheel)
    by_pipx = host.run(host.directory / ".local/bin/hostbench", *measure, "by-pipx")
    installed = time.monotonic()
    # uv's launchers of commands call realpath and dirname.
    path = f"PATH={host.bin}:/usr/bin:/bin"
    uvx = ("/usr/bin/env", path, tools / "bin/uvx", *offline)
    by_uvx = host.run(*uvx, "hostbench", *measure, "by-uvx")
    ended = time.monotonic()

    for output in (by_pipx, by_uvx):
        (case,) = json.loads(output)["cases"]
        assert case["verdict"] in {"clean", "noisy", "disturbed"}, case
    assert len([*host.directory.glob("by-*/*/report.html")]) == 2
    assert max(installed - begun, ended - installed) < 60
