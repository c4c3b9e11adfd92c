"""Settings from the environment: declared as classes, read and checked by pydantic-settings.

The import takes about 50 ms, so `hostbench list` and `hostbench --help` do without it.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from hostbench.base.errors import ResourceError, UsageError, listing, shown

PREFIX = "HOSTBENCH_"


@dataclass(frozen=True)
class Option:
    """A value that takes precedence over the environment, and its name in messages, such as
    `--far-host`. None and "": not given."""

    name: str
    value: Any


@dataclass(frozen=True)
class UsedWith:
    """Annotates a secret that is used only if the setting `field` has a value: otherwise the
    secret's file is not read."""

    field: str


class EnvironmentSettings(BaseSettings):
    """Settings whose field `redis_url` is the variable HOSTBENCH_REDIS_URL; an empty variable
    counts as unset.

    A field of type SecretStr may also be in the file named by HOSTBENCH_<FIELD>_FILE, which takes
    precedence. `title` and `description` of a field are the words of its error: what it should be,
    and what to give. Without a title, the error consists of the variable and the ValueError of its
    validator.
    """

    model_config = SettingsConfigDict(env_prefix=PREFIX, env_ignore_empty=True, frozen=True)

    @classmethod
    def from_environment(cls, **options: Option) -> Self:
        """Return the settings of this process.

        Raise UsageError: one line about the first variable that is missing or wrong. A validator
        may itself raise any HostbenchError.
        """
        given = {name: o.value for name, o in options.items() if o.value not in (None, "")}
        try:
            return cls(**given)
        except ValidationError as error:
            raise UsageError(
                cls._line(error, {name: options[name].name for name in given})
            ) from None

    @classmethod
    def variable(cls, field: str) -> str:
        """Return the variable of a field; for a secret, the one that names its file."""
        name = PREFIX + field.upper()
        return f"{name}_FILE" if _is_secret(cls.model_fields[field]) else name

    @classmethod
    def _line(cls, error: ValidationError, options: Mapping[str, str]) -> str:
        first = error.errors(include_url=False)[0]
        name = str(first["loc"][0])
        field = cls.model_fields[name]
        if first["type"] == "missing":
            return f"{cls.variable(name)} is not set; {field.description}"
        variable = options.get(name) or cls.variable(name).removesuffix("_FILE")
        value = (
            "" if _is_secret(field) or "@" in str(first["input"]) else f" {shown(first['input'])}"
        )
        if field.title:
            return f"{variable}{value} is not {field.title}; {field.description}"
        return f"{variable}{value} {first['ctx']['error']}"

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Return the sources: options, then files of secrets, then variables."""
        return init_settings, _SecretFiles(settings_cls), env_settings


def url_of(*schemes: str) -> AfterValidator:
    """Return a check of a field: it must be an address with one of `schemes`."""
    allowed = listing(f"{scheme}://" for scheme in schemes)

    def check(text: str) -> str:
        try:
            parts = urlsplit(text)
            _port = parts.port
        except ValueError:
            parts = urlsplit("")
        if parts.scheme not in schemes or not (parts.hostname or parts.path):
            raise ValueError(f"is not a URL with {allowed}; write it like {schemes[0]}://name:port")
        return text

    return AfterValidator(check)


class _SecretFiles(PydanticBaseSettingsSource):
    """The secrets for which a variable NAME_FILE names a file."""

    def get_field_value(self, field: FieldInfo, field_name: str) -> tuple[Any, str, bool]:
        variable = f"{PREFIX}{field_name.upper()}_FILE"
        path = os.environ.get(variable)
        wanted = _is_secret(field) and field_name not in self.current_state and self._is_used(field)
        value = read_secret(Path(path), variable) or "" if path and wanted else None
        return value, field_name, False

    def _is_used(self, field: FieldInfo) -> bool:
        return all(self._is_set(one.field) for one in field.metadata if isinstance(one, UsedWith))

    def _is_set(self, name: str) -> bool:
        given = self.current_state.get(name) or os.environ.get(PREFIX + name.upper())
        return bool(given) or self.settings_cls.model_fields[name].default is not None

    def __call__(self) -> dict[str, Any]:
        fields = self.settings_cls.model_fields
        values = {name: self.get_field_value(field, name)[0] for name, field in fields.items()}
        return {name: value for name, value in values.items() if value is not None}


def _is_secret(field: FieldInfo) -> bool:
    return _holds_secret(field.annotation)


def _holds_secret(annotation: Any) -> bool:
    """Whether it is SecretStr, or a union or Annotated that contains it."""
    return annotation is SecretStr or any(map(_holds_secret, get_args(annotation)))


def read_secret(path: Path, named: str) -> str | None:
    """Return the secret in a file, or None when it is empty.

    `named` says how the file was given, for the message of the ResourceError when it cannot be
    read.
    """
    try:
        return path.read_text().strip() or None
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not text"
        raise ResourceError(
            f"cannot read {named} {path}: {reason}; make env makes the secrets"
        ) from None
