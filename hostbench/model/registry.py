"""The subsystems of this installation: those in services/, and those of other packages.

Each folder of `services` with a module `subsystem` is one. Another package lists its own under the
entry-point group `hostbench.subsystems`. There is no other list of them.
"""

import functools
import importlib
import pkgutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from hostbench.base.errors import UsageError, did_you_mean, listing, shown
from hostbench.model.subsystem import NAME, Subsystem

GROUP = "hostbench.subsystems"
MODULE, OBJECT = "subsystem", "SUBSYSTEM"


class _Unusable(Exception):
    """Why an entry point is skipped, and the remedy, in one line."""


@dataclass(frozen=True)
class _Registry:
    """All subsystems by name, and the entry points of those from other packages."""

    found: dict[str, Subsystem]
    entries: dict[str, EntryPoint]


def subsystems() -> Mapping[str, Subsystem]:
    """Return all subsystems by name: our own by port, then those of other packages.

    The first call warns on standard error about each entry point that cannot be used.
    """
    return MappingProxyType(_registry().found)


def load_subsystems() -> None:
    """Call `load()` of all subsystems.

    If one of another package raises, warn on standard error and remove it: for this process it is
    not installed.
    """
    registry = _registry()
    for name, subsystem in list(registry.found.items()):
        entry = registry.entries.get(name)
        if entry is None:
            subsystem.load()
            continue
        try:
            subsystem.load()
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever another package raises
            why = f"its load() raises {_in_one_line(error)}; update or uninstall the package"
            _warn_of_skipped(entry, why)
            del registry.found[name]


@functools.cache
def _registry() -> _Registry:
    found = {one.name: one for one in sorted(_built_in(), key=lambda one: one.port)}
    entries = {}
    for entry in sorted(entry_points(group=GROUP), key=lambda one: (one.name, one.value)):
        try:
            added = _loaded(entry)
            if added.name in found:
                raise _Unusable(
                    f"there is a subsystem {shown(added.name)} already; give it another name, or "
                    "uninstall one of the two packages"
                )
            ports = {one.port: one.name for one in found.values()}
            if added.port in ports:
                raise _Unusable(
                    f"its port {added.port} is that of {ports[added.port]}; give it another one"
                )
        except _Unusable as why:
            _warn_of_skipped(entry, str(why))
            continue
        found[added.name], entries[added.name] = added, entry
    return _Registry(found, entries)


def built_in_names() -> tuple[str, ...]:
    """Return the names of the subsystems in `services`."""
    return tuple(one.name for one in _built_in())


def subsystem_names() -> tuple[str, ...]:
    """Return the names of all subsystems."""
    return tuple(subsystems())


def find_subsystem(name: str) -> Subsystem:
    """Return the subsystem of this name. Raise UsageError, which lists the known names, if there is
    none."""
    found = subsystems().get(name)
    if found is None:
        raise UsageError(
            f"there is no subsystem {shown(name)}; {did_you_mean(name, subsystem_names())}"
            f"give {listing(subsystem_names())}"
        )
    return found


def _built_in() -> Iterator[Subsystem]:
    services = importlib.import_module("services")
    for folder in pkgutil.iter_modules(services.__path__):
        package = f"{services.__name__}.{folder.name}"
        inside = importlib.import_module(package).__path__
        if any(module.name == MODULE for module in pkgutil.iter_modules(inside)):
            found = getattr(importlib.import_module(f"{package}.{MODULE}"), OBJECT)
            assert isinstance(found, Subsystem) and found.name == folder.name
            yield found


def _loaded(entry: EntryPoint) -> Subsystem:
    """Return the subsystem of an entry point. Raise _Unusable."""
    try:
        found = entry.load()
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever another package raises
        raise _Unusable(
            f"its import raises {_in_one_line(error)}; update or uninstall the package"
        ) from None
    if not isinstance(found, Subsystem):
        raise _Unusable(
            f"it is of type {type(found).__name__}, not a hostbench.model.subsystem.Subsystem; let "
            "the entry point name such an object"
        )
    return found


def _in_one_line(error: BaseException) -> str:
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message}" if message else type(error).__name__


def _warn_of_skipped(entry: EntryPoint, why: str) -> None:
    sys.stderr.write(f"hostbench: skipped the subsystem of {_origin(entry)}: {why}\n")


def _origin(entry: EntryPoint) -> str:
    package = f"package {entry.dist.name} {entry.dist.version}, " if entry.dist else ""
    return f"{package}entry point {entry.name} = {entry.value}"


@dataclass(frozen=True)
class _Listed:
    """A string for which the JSON schema lists the subsystems. `must_be_known`: other strings are
    invalid."""

    must_be_known: bool

    def __get_pydantic_core_schema__(
        self, source: Any, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        del source, handler
        text = core_schema.str_schema(pattern=f"^{NAME.pattern}$")
        if not self.must_be_known:
            return text
        return core_schema.no_info_after_validator_function(_known, core_schema.str_schema())

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        del schema, handler
        return {"type": "string", "enum": list(subsystem_names())}


def _known(name: str) -> str:
    if name not in subsystems():
        expected = listing(f"'{one}'" for one in subsystem_names())
        raise PydanticCustomError("enum", "Input should be {expected}", {"expected": expected})
    return name


# In requests: a subsystem of this installation.
KnownSubsystem = Annotated[str, _Listed(must_be_known=True)]
# In answers of a service or an orchestrator, which may have subsystems that the reader lacks.
AnsweredSubsystem = Annotated[str, _Listed(must_be_known=False)]
