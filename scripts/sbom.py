"""Write what the images are made of as CycloneDX JSON, and hold it against known advisories.

    scripts/sbom.sh      makes the environment that this runs in

One file of build/sbom for each list of requirements/ that an image or the command line installs,
one for the scripts of others in the console, one for the images of others, and one for Debian's
packages in each image that an engine here has.
PyPI's advisories are looked up; Debian's are not: an image takes the newest packages of Debian's
security archive when it is built.
"""

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

ROOT = Path(__file__).parents[1]
TO = ROOT / "build/sbom"
LISTS = ("orchestrator", "service", "cli", "gpu-build", "openblas")
IMAGES = ("orchestrator", "cpu", "mem", "disk", "net", "gpu")
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")
VENDORED = ROOT / "orchestrator/console/static/vendor/vendor.json"
_HASH = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_IMAGE = re.compile(r"image: ([a-z/]+):\$\{[A-Z_]+:-([0-9][^@}]*)(?:@(sha256:[0-9a-f]{64}))?\}")
Component = dict[str, Any]


def component(kind: str, name: str, version: str, hashes: Iterable[str] = ()) -> Component:
    """One part, by its package URL."""
    purl = f"pkg:{kind}/{name}@{quote(version, safe='')}"
    hashed = [{"alg": "SHA-256", "content": one} for one in hashes]
    return {
        "type": "container" if kind == "docker" else "library",
        "bom-ref": purl,
        "name": name,
        "version": version,
        "purl": purl,
        **({"hashes": hashed} if hashed else {}),
    }


def required(name: str) -> Iterator[Component]:
    """The packages of a list of requirements/, each with the hashes that it may have."""
    text = (ROOT / f"requirements/{name}.txt").read_text()
    for entry in re.split(r"\n(?=[A-Za-z0-9])", text):
        if pinned := _PINNED.match(entry):
            yield component("pypi", pinned[1].lower(), pinned[2], _HASH.findall(entry))


def pulled() -> Iterator[Component]:
    """The images of others, by their digests where these are pinned."""
    for name, version, digest in _IMAGE.findall((ROOT / "compose.yaml").read_text()):
        yield component("docker", name, digest or version) | {"version": version}


def vendored() -> Iterator[Component]:
    """The scripts and styles of others that the console sends to browsers, with their licences."""
    for one in json.loads(VENDORED.read_text()):
        licence = {"licenses": [{"license": {"id": one["licence"]}}]}
        yield (
            component("npm", one["package"], one["version"])
            | licence
            | {
                "components": [
                    {
                        "type": "file",
                        "name": name,
                        "hashes": [{"alg": "SHA-256", "content": digest}],
                    }
                    for name, digest in one["sha256"].items()
                ]
            }
        )


def of_debian(image: str) -> list[Component] | None:
    """Debian's packages in an image; None: no engine here has it."""
    if shutil.which("docker") is None:
        return None
    show = ["--show", "--showformat", "${Package} ${Version}\n"]
    run = ["docker", "run", "--rm", "--pull", "never", "--network", "none"]
    ended = subprocess.run(
        [*run, "--entrypoint", "dpkg-query", image, *show], capture_output=True, text=True
    )
    if ended.returncode != 0:
        return None
    return [component("deb/debian", *line.split()) for line in ended.stdout.splitlines()]


def store(name: str, components: list[Component]) -> None:
    """As build/sbom/NAME.json."""
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": f"hostbench {name}"}},
        "components": components,
    }
    (TO / f"{name}.json").write_text(json.dumps(document, indent=1) + "\n")
    print(f"{len(components):5} parts  {(TO / name).relative_to(ROOT)}.json")  # noqa: T201


def advisories(name: str) -> tuple[list[str], int]:
    """What is known of a list's packages, and of how many nothing could be looked up."""
    ended = subprocess.run(
        [
            *(Path(sys.executable).with_name("pip-audit"), "--disable-pip", "--require-hashes"),
            *("--progress-spinner", "off", "--format", "json"),
            *("--requirement", ROOT / f"requirements/{name}.txt"),
        ],
        capture_output=True,
        text=True,
    )
    if not ended.stdout:
        sys.exit(f"hostbench: pip-audit failed: {ended.stderr}")
    packages = json.loads(ended.stdout)["dependencies"]
    known = [
        f"{one['name']} {one['version']}: {found['id']}, mended in "
        f"{', '.join(found['fix_versions']) or 'no version'}"
        for one in packages
        for found in one.get("vulns", ())
    ]
    return known, sum("skip_reason" in one for one in packages)


def main() -> int:
    """Exit 1: an advisory names what is installed."""
    TO.mkdir(parents=True, exist_ok=True)
    for name in LISTS:
        store(name, list(required(name)))
    store("console", list(vendored()))
    store("images", list(pulled()))
    for image in IMAGES:
        if (packages := of_debian(f"hostbench/{image}:latest")) is not None:
            store(f"{image}-debian", packages)
    known, unknown = [], 0
    for name in LISTS:
        of_list, skipped = advisories(name)
        known += of_list
        unknown += skipped
    for line in sorted(set(known)):
        print(line)  # noqa: T201
    print(f"{len(set(known))} advisories name what is installed")  # noqa: T201
    if unknown:
        print(f"{unknown} packages could not be looked up: is the JSON API of PyPI reached?")  # noqa: T201
    return 1 if known else 0


if __name__ == "__main__":
    sys.exit(main())
