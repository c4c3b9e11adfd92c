"""Where the orchestrator is and which key to use: from options, environment, a file, or this
checkout.

Address, key and CA are each taken from the first source that names them. The key that `make env`
made in a checkout goes only to the stack of that checkout.
"""

import os
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hostbench.base.errors import ResourceError, UsageError, did_you_mean, listing, shown
from hostbench.client.address import Address
from hostbench.client.checkout import Checkout, DistrustError

CONFIG_BYTES_MOST = 65_536
KEY_BYTES_MOST = 4096
CONFIG_KEYS = ("url", "key_file", "ca_file")


@dataclass(frozen=True)
class Reach:
    """The options of a command on how to reach the orchestrator; None: not given."""

    url: str | None = None
    key_file: Path | None = None
    ca_file: Path | None = None
    config: Path | None = None


@dataclass(frozen=True)
class Connection:
    """How to reach the orchestrator. `named_by` and `key_from` name the sources, for messages, and
    `key_option` what names another key. `ca_file` None: the authorities that this system trusts."""

    address: Address
    named_by: str
    key: str = field(repr=False)
    key_from: str
    ca_file: Path | None
    key_option: str = "--key-file or HOSTBENCH_API_KEY_FILE"


@dataclass(frozen=True)
class _Place:
    """One source that may name some of the values: CONFIG_KEYS, or `key` for the key itself.
    `names` is what each is called there."""

    values: Mapping[str, str]
    names: Mapping[str, str]


def connection(
    reach: Reach,
    environment: Mapping[str, str] = os.environ,
    checkouts: Sequence[Path] | None = None,
) -> Connection:
    """Return the connection that the options, else the environment, else the file name.

    `checkouts`: where a stack may have been set up; None: here, and where hostbench was installed
    from. Raise UsageError when something is not named or not usable, ResourceError when a file
    cannot be read.
    """
    config = _config_path(reach, environment)
    places = [_options(reach), _environment(environment), _file(config, reach, environment)]
    named = _first(places, "url")
    with_key = _first(places, "key_file") or _first(places, "key")
    try:
        checkout = Checkout.found(checkouts, environment)
    except DistrustError:
        if named is None or with_key is None:
            raise
        checkout = None
    if named is not None:
        address, named_by = Address.parsed(*named), named[1]
        own = checkout is not None and address.url == checkout.address.url
    elif checkout is not None:
        address, named_by, own = checkout.address, checkout.named_by, True
    else:
        raise UsageError(
            "no orchestrator is named; give --url, HOSTBENCH_URL or "
            f'url = "…" in {_short(config)}, or work in a checkout where make env was run'
        )
    key, key_from = _key(places, checkout, own=own)
    ca_file = None
    if address.encrypted:
        ca_file = _ca_file(places, checkout, own=own)
    return Connection(address, named_by, key, key_from, ca_file)


POST, POST_KEYS = "--post", "--post-keys"
KEY_OF_POSTS, CA_OF_POSTS = "api_key", "ca.crt"


def connection_for_posts(url: str, keys: Path) -> Connection:
    """Return the connection of a node that posts its document. `keys` is a directory with the key
    and, where the system does not trust it, the authority. Raise UsageError or ResourceError."""
    address = Address.parsed(url, POST)
    key, key_from = _read_key(keys / KEY_OF_POSTS, POST_KEYS, POST_KEYS)
    authority = keys / CA_OF_POSTS
    ca_file = authority if address.encrypted and authority.exists() else None
    return Connection(address, POST, key, key_from, ca_file, POST_KEYS)


def _at_home(text: str) -> Path:
    """Return the path with `~/…` resolved; a user without a home (in a container) has no such
    file."""
    try:
        return Path(text).expanduser()
    except RuntimeError:
        return Path(text)


def _short(path: Path) -> str:
    home = _at_home("~")
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)


def _first(places: Sequence[_Place], key: str) -> tuple[str, str] | None:
    """Return the value and its name in the first source that has it."""
    found = ((place.values[key], place.names[key]) for place in places if place.values.get(key))
    return next(found, None)


def _options(reach: Reach) -> _Place:
    given = {"url": reach.url, "key_file": reach.key_file, "ca_file": reach.ca_file}
    names = {"url": "--url", "key_file": "--key-file", "ca_file": "--ca-file"}
    for key, value in given.items():
        if value is not None and not str(value):
            raise UsageError(f"{names[key]} is empty; give a value or leave it out")
    return _Place({key: str(value) for key, value in given.items() if value is not None}, names)


def _environment(environment: Mapping[str, str]) -> _Place:
    names = {
        "url": "HOSTBENCH_URL",
        "key_file": "HOSTBENCH_API_KEY_FILE",
        "key": "HOSTBENCH_API_KEY",
        "ca_file": "HOSTBENCH_CA_FILE",
    }
    return _Place({key: environment.get(name, "") for key, name in names.items()}, names)


def _config_path(reach: Reach, environment: Mapping[str, str]) -> Path:
    if reach.config is not None:
        return reach.config
    if environment.get("HOSTBENCH_CONFIG"):
        return Path(environment["HOSTBENCH_CONFIG"])
    base = environment.get("XDG_CONFIG_HOME")
    return (Path(base) if base else _at_home("~/.config")) / "hostbench" / "config.toml"


def _file(path: Path, reach: Reach, environment: Mapping[str, str]) -> _Place:
    """Return the configuration file; it must exist only if it was named."""
    names = {key: f"{key} in {path}" for key in CONFIG_KEYS}
    try:
        with path.open("rb") as file:
            text = file.read(CONFIG_BYTES_MOST)
    except OSError as error:
        named = reach.config is not None or bool(environment.get("HOSTBENCH_CONFIG"))
        if not named and isinstance(error, FileNotFoundError | NotADirectoryError):
            return _Place({}, names)
        raise ResourceError(
            f"cannot read the configuration {path}: {error.strerror}; name another one with "
            "--config or HOSTBENCH_CONFIG"
        ) from None
    try:
        tree = tomllib.loads(text.decode())
    except ValueError as error:
        raise UsageError(f"{path} is not TOML: {error}; write lines like url = …") from None
    return _Place(dict(_settings(path, tree)), names)


def _settings(path: Path, tree: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the values in the file; paths in it are relative to it."""
    for key, value in tree.items():
        if key not in CONFIG_KEYS:
            raise UsageError(
                f"{path}: unknown key {shown(key)}; {did_you_mean(key, CONFIG_KEYS)}"
                f"allowed are {listing(CONFIG_KEYS)}"
            )
        if not isinstance(value, str) or not value:
            raise UsageError(f'{path}: {key} {shown(value)} is not text; write {key} = "…"')
        yield key, value if key == "url" else str(path.parent / _at_home(value))


def _key(places: Sequence[_Place], checkout: Checkout | None, *, own: bool) -> tuple[str, str]:
    """Return the key and its source. `own`: the address is the checkout's own."""
    for place in places:
        if path := place.values.get("key_file"):
            return _read_key(Path(path), place.names["key_file"])
        if held := place.values.get("key"):
            return _checked(held, place.names["key"]), place.names["key"]
    if checkout is not None and own:
        return _read_key(checkout.key_file, "made by make env")
    hint = f" ({checkout.key_file} goes to the stack of its own checkout only)" if checkout else ""
    raise UsageError(
        "no key is named; give a file that holds it by --key-file, HOSTBENCH_API_KEY_FILE or "
        f"key_file in the configuration{hint}"
    )


def _ca_file(places: Sequence[_Place], checkout: Checkout | None, *, own: bool) -> Path | None:
    if found := _first(places, "ca_file"):
        return Path(found[0])
    return checkout.ca_file if checkout is not None and own else None


def _read_key(path: Path, name: str, option: str = "--key-file") -> tuple[str, str]:
    where = f"{path} ({name})"
    try:
        with path.open("rb") as file:
            content = file.read(KEY_BYTES_MOST)
    except OSError as error:
        raise ResourceError(
            f"cannot read the key {where}: {error.strerror}; name a readable file with {option}; "
            "on the stack's own host make env makes secrets/api_key"
        ) from None
    return _checked(content.decode("latin-1"), where), where


def _checked(text: str, where: str) -> str:
    key = text.strip()
    if key and key.isascii() and key.isprintable() and " " not in key:
        return key
    what = "one word of ASCII characters" if key else "not empty"
    raise UsageError(f"{where} holds no key: a key is {what}; make env makes one (secrets/api_key)")
