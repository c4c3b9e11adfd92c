"""Helm, and what else looks at a chart: of scripts/kubernetes.sh."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "build/kubernetes"
CHART = ROOT / "charts/hostbench"
OPENAPI = PROGRAMS / "openapi.json"
# Where no image is pulled.
REGISTRY = "image.registry=registry.example/hostbench"

# The boards are twenty thousand lines.
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

Object = dict[str, Any]


def missing() -> str | None:
    """What the tests of the chart lack here, with the remedy; None: nothing."""
    if all((PROGRAMS / name).exists() for name in ("helm", "kubeconform", "openapi.json")):
        return None
    return "Helm and kubeconform are not built here: scripts/kubernetes.sh builds them"


def need() -> None:
    """Skip the tests of the chart where they cannot be, or fail where they must be."""
    if (reason := missing()) is not None:
        if os.environ.get("HOSTBENCH_CLUSTER") == "required":
            pytest.fail(reason)
        pytest.skip(reason)


@dataclass(frozen=True)
class Helm:
    """Helm with files of its own below `home`, for a cluster where `kubeconfig` is one's."""

    home: Path
    kubeconfig: Path | None = None
    settings: tuple[str, ...] = field(default=(REGISTRY,))

    def start(self, *arguments: str | Path) -> subprocess.Popen[str]:
        """Start a command of Helm."""
        return subprocess.Popen(
            [PROGRAMS / "helm", *arguments],
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(self.home),
                "KUBECONFIG": str(self.kubeconfig or self.home / "none"),
            },
        )

    def run(self, *arguments: str | Path) -> tuple[int, str, str]:
        """Run a command; return its exit code, output and errors."""
        process = self.start(*arguments)
        output, errors = process.communicate()
        return process.returncode, output, errors

    def __call__(self, *arguments: str | Path) -> str:
        """What a command prints. Fails the test where the command fails."""
        code, output, errors = self.run(*arguments)
        assert code == 0, errors
        return output

    def options(self, *settings: str) -> list[str]:
        """The options that set values of the chart."""
        return [
            word for one in (*self.settings, *settings) for word in ("--set-json", as_json(one))
        ]

    def refusal(self, *settings: str) -> str:
        """The errors of a rendering that must not succeed."""
        code, output, errors = self.run("template", "hostbench", CHART, *self.options(*settings))
        assert code != 0, output
        return errors

    def rendered(self, *settings: str) -> list[Object]:
        """The objects that an installation makes, the pod of `helm test` too."""
        return [one for one in yaml.load_all(self._text(*settings), LOADER) if one]

    @cache  # noqa: B019 # one lives as long as the tests of a module
    def _text(self, *settings: str) -> str:
        options = self.options(*settings)
        return self("template", "hostbench", CHART, "--namespace", "bench", *options)


def as_json(setting: str) -> str:
    """NAME=VALUE with the value as JSON: what is none stands for a text."""
    name, _, value = setting.partition("=")
    try:
        json.loads(value)
    except json.JSONDecodeError:
        value = json.dumps(value)
    return f"{name}={value}"


def find(objects: list[Object], kind: str, name: str) -> Object:
    """The one object of this kind and name."""
    (found,) = [o for o in objects if o["kind"] == kind and o["metadata"]["name"] == name]
    return found


def pod_specs(objects: list[Object]) -> Iterator[Object]:
    """The pods of all objects."""
    for one in objects:
        if one["kind"] == "Pod":
            yield one["spec"]
        elif "template" in one.get("spec", {}):
            yield one["spec"]["template"]["spec"]


def write_schemas(directory: Path) -> None:
    """Write a schema for each kind that the API server of this version knows. A field that it does
    not know is refused."""
    definitions = json.loads(OPENAPI.read_text())["definitions"]
    kinds = {}
    for name, one in definitions.items():
        if "properties" in one:
            one["additionalProperties"] = False
        if name.endswith(("IntOrString", "resource.Quantity")):
            one["type"] = ["string", "number"]
        for kind in one.get("x-kubernetes-group-version-kind", ()):
            group = kind["group"].split(".")[0]
            file = "-".join(filter(None, (kind["kind"].lower(), group, kind["version"])))
            kinds[file] = name
    (directory / "definitions.json").write_text(json.dumps({"definitions": definitions}))
    for file, name in kinds.items():
        path = directory / f"{file}.json"
        path.write_text(json.dumps({"$ref": f"definitions.json#/definitions/{name}"}))


def kubeconform(objects: list[Object], schemas: Path) -> str:
    """What kubeconform finds wrong, empty for nothing. Fails where it knows a kind not."""
    location = f"{schemas}/{{{{ .ResourceKind }}}}{{{{ .KindSuffix }}}}.json"
    done = subprocess.run(
        [PROGRAMS / "kubeconform", "-strict", "-schema-location", location],
        input=yaml.safe_dump_all(objects),
        capture_output=True,
        text=True,
    )
    return done.stdout + done.stderr
