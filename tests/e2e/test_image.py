"""The image of the command line, as a campaign runs it: read-only, without rights. Where there is
no Docker Engine this is skipped; make e2e brings one.
"""

import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from hostbench.model.registry import subsystem_names
from tests.e2e.stack import ROOT, engine_environment
from tests.stand_ins import TOOLS, misfits

pytestmark = [pytest.mark.timeout(1800), pytest.mark.exhaustive]

# Four tenths of it are peers with their libraries.
IMAGE_BYTES_MOST = 350e6
CONFINED = ("--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--tmpfs=/tmp")


class Image:
    """The image, built for these tests."""

    def __init__(self, engine: Mapping[str, str]) -> None:
        self.engine = engine
        self.name = f"hostbench/test-hostbench:{os.getpid()}"

    def docker(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["docker", *arguments], cwd=ROOT, env=self.engine, capture_output=True, text=True
        )

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return self.docker("run", "--rm", *CONFINED, self.name, *arguments)


@pytest.fixture(scope="module")
def image() -> Iterator[Image]:
    engine = engine_environment()
    if engine is None:
        reason = "there is no Docker Engine here; make e2e brings one"
        if os.environ.get("HOSTBENCH_DOCKER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    image = Image(engine)
    authorities = os.environ.get("SSL_CERT_FILE", "/nowhere")
    secret = [f"--secret=id=ca_bundle,src={authorities}"] if Path(authorities).exists() else []
    built = image.docker("build", "--target=hostbench", f"--tag={image.name}", *secret, ".")
    assert built.returncode == 0, built.stderr[-3000:]
    yield image
    image.docker("image", "rm", "--force", image.name)


def test_it_is_small(image: Image) -> None:
    size = int(image.docker("image", "inspect", "--format={{.Size}}", image.name).stdout)
    assert size < IMAGE_BYTES_MOST


def test_it_has_the_programs_of_all_subsystems(image: Image) -> None:
    done = image.run("list", "workloads", "--json")
    assert done.returncode == 0, done.stderr
    listed = {program["subsystem"] for program in json.loads(done.stdout)["programs"]}
    assert listed == set(subsystem_names())


@pytest.mark.parametrize(
    "case",
    [
        ("cpu.clock", "--param", "threads=1", "--peers", "sysbench"),
        # Its file is in a volume, not in memory.
        ("disk.rand_read", "--param", f"file_bytes={16 << 20}", "--peers", "fio"),
    ],
)
def test_it_measures_read_only_and_without_rights(image: Image, case: tuple[str, ...]) -> None:
    small = ("--param", "duration_s=0.5", "--trials", "3", "--idle-policy", "force", "--json")
    done = image.run("run", "--workload", *case, *small)
    assert done.returncode == 0, done.stderr
    (measured,) = json.loads(done.stdout)["cases"]
    assert measured["verdict"] in {"clean", "noisy", "disturbed"}
    assert [peer["tool"] for peer in measured["peers"]] == [case[-1]], measured["peers"]


def test_it_has_the_peers(image: Image) -> None:
    """As `make peers` has them on a host, but for perf, which needs all of Perl and Python."""
    lines = (ROOT / "scripts/packages.txt").read_text().splitlines()
    rows = [line.split("|", 3) for line in lines if line.partition("|")[0].strip() == "peers"]
    proofs = [row[3].strip() for row in rows if row[1].strip() != "linux-perf"]
    assert len(proofs) > 10
    # These link libraries that stand-ins take the place of.
    proofs += ["fio --version", "stress-ng --version"]
    script = "\n".join(f"({proof}) >/dev/null || echo '{proof}'" for proof in proofs)
    done = image.docker("run", "--rm", *CONFINED, "--entrypoint=sh", image.name, "-c", script)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("tool", TOOLS)
def test_its_stand_ins_have_every_function_that_a_tool_calls(image: Image, tool: str) -> None:
    script = f'ldd -r "$(command -v {tool})" 2>&1'
    done = image.docker("run", "--rm", *CONFINED, "--entrypoint=sh", image.name, "-c", script)
    assert done.returncode == 0, done.stderr
    assert not misfits(tool, done.stdout)
