"""Where the orchestrator's address and key are taken from, and what is refused on the way."""

import grp
import os
import pwd
import stat
from pathlib import Path

import pytest

from hostbench.base.errors import HostbenchError, shown
from hostbench.client.connection import Connection, Reach, connection
from tests.faults.command import CHECKOUT

KEY = "key-of-the-test-0123456789"
OTHER_USER = 54321
OTHER_KEY = "another-key-0123456789"
URL = "https://bench.example.org:8000"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """As make env leaves it."""
    directory = tmp_path / "checkout"
    (directory / "secrets").mkdir(parents=True)
    (directory / ".env").write_text("# ports\nHOSTBENCH_HOST=node\nHOSTBENCH_PORT=18000\n")
    (directory / "secrets" / "api_key").write_text(f"{KEY}\n")
    return directory


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "key"
    path.write_text(f" {OTHER_KEY}\n")
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    directory = tmp_path / "home"
    (directory / "hostbench").mkdir(parents=True)
    return directory


class Places:
    """What `connection` is given in one test; nothing of this machine counts."""

    def __init__(self, home: Path) -> None:
        self.environment = {"XDG_CONFIG_HOME": str(home)}
        self.reach = Reach()
        self.checkouts: list[Path] = []

    @property
    def file(self) -> Path:
        return Path(self.environment["XDG_CONFIG_HOME"]) / "hostbench" / "config.toml"

    def found(self) -> Connection:
        return connection(self.reach, self.environment, self.checkouts)

    def refused(self) -> str:
        with pytest.raises(HostbenchError) as caught:
            self.found()
        assert "\n" not in caught.value.message
        return caught.value.message


@pytest.fixture
def places(home: Path) -> Places:
    return Places(home)


def test_nothing_named_tells_every_place(places: Places) -> None:
    message = places.refused()
    for place in ("--url", "HOSTBENCH_URL", str(places.file), "make env"):
        assert place in message


def test_a_checkout_is_enough(places: Places, checkout: Path) -> None:
    places.checkouts = [checkout]
    found = places.found()
    assert (found.address.url, found.key, found.ca_file) == ("http://127.0.0.1:18000", KEY, None)
    assert KEY not in repr(found)


def test_the_environment_changes_a_checkouts_port_as_in_compose(
    places: Places, checkout: Path
) -> None:
    places.checkouts = [checkout]
    places.environment["HOSTBENCH_PORT"] = "19000"
    assert places.found().address.url == "http://127.0.0.1:19000"


def test_a_checkout_opened_to_the_network_is_reached_with_its_authority(
    places: Places, checkout: Path
) -> None:
    with (checkout / ".env").open("a") as file:
        file.write("HOSTBENCH_BIND='192.0.2.7'\nHOSTBENCH_TLS=1\n")
    places.checkouts = [checkout]
    found = places.found()
    assert found.address.url == "https://192.0.2.7:18000"
    assert found.ca_file == checkout / "secrets" / "ca.pem"


@pytest.mark.parametrize("bind", ["0.0.0.0", "::", "[::]"])
def test_a_checkout_opened_everywhere_is_reached_here(
    places: Places, checkout: Path, bind: str
) -> None:
    with (checkout / ".env").open("a") as file:
        file.write(f"HOSTBENCH_BIND={bind}\nHOSTBENCH_TLS=1\n")
    places.checkouts = [checkout]
    assert places.found().address.url == "https://127.0.0.1:18000"


def test_the_first_checkout_counts_and_other_projects_do_not(
    places: Places, checkout: Path, tmp_path: Path
) -> None:
    (tmp_path / ".env").write_text("DATABASE_URL=postgres://\n")
    places.checkouts = [tmp_path, tmp_path / "absent", checkout]
    assert places.found().key == KEY


def test_a_checkouts_key_never_goes_elsewhere(places: Places, checkout: Path) -> None:
    places.checkouts = [checkout]
    places.reach = Reach(url=URL)
    message = places.refused()
    assert message.startswith("no key is named") and "its own checkout only" in message
    places.reach = Reach(url="http://127.0.0.1:18000/")
    assert places.found().key == KEY


@pytest.mark.parametrize("name", [".", ".env", "secrets"])
@pytest.mark.parametrize("how", ["everybody", "group", "owner"])
def test_a_checkout_that_others_may_have_written(
    places: Places, checkout: Path, key_file: Path, name: str, how: str
) -> None:
    path = checkout / name
    if how == "owner":
        if os.geteuid() != 0:
            pytest.skip("only root gives files away")
        os.chown(path, OTHER_USER, -1)
    elif how == "group":
        if os.geteuid() == 0:
            os.chown(path, -1, OTHER_USER)
        elif path.stat().st_gid == os.getegid():
            pytest.skip("only root gives files to another group")
        path.chmod(path.stat().st_mode | stat.S_IWGRP)
    else:
        path.chmod(path.stat().st_mode | stat.S_IWOTH)
    places.checkouts = [checkout]
    message = places.refused()
    assert str(path.absolute()) in message and "--url and --key-file" in message
    # As it says.
    places.reach = Reach(url="http://127.0.0.1:18000", key_file=key_file)
    assert places.found().key == OTHER_KEY


def test_a_checkout_of_ones_own_group_is_ones_own(places: Places, checkout: Path) -> None:
    entry = pwd.getpwuid(os.geteuid())
    if grp.getgrgid(entry.pw_gid).gr_name != entry.pw_name:
        pytest.skip("this user has no group of its own")
    os.chown(checkout, -1, entry.pw_gid)
    checkout.chmod(0o775)
    places.checkouts = [checkout]
    assert places.found().key == KEY


def test_options_come_before_environment_before_file(
    places: Places, key_file: Path, tmp_path: Path, checkout: Path
) -> None:
    places.checkouts = [checkout]
    places.file.write_text('url = "https://file.example.org"\nkey_file = "beside"\n')
    (places.file.parent / "beside").write_text("key-in-the-file")
    assert places.found().address.url == "https://file.example.org"
    assert places.found().key == "key-in-the-file"

    places.environment |= {
        "HOSTBENCH_URL": "https://environment.example.org",
        "HOSTBENCH_API_KEY": "key-in-the-environment",
        "HOSTBENCH_CA_FILE": "/environment.pem",
    }
    assert places.found().address.url == "https://environment.example.org"
    assert places.found().key == "key-in-the-environment"
    assert places.found().ca_file == Path("/environment.pem")

    places.environment["HOSTBENCH_API_KEY_FILE"] = str(key_file)
    assert places.found().key == OTHER_KEY

    option_key = tmp_path / "option"
    option_key.write_text("key-of-the-option")
    places.reach = Reach(URL, option_key, Path("/option.pem"))
    found = places.found()
    assert (found.address.url, found.key) == (URL, "key-of-the-option")
    assert found.ca_file == Path("/option.pem")
    assert (found.named_by, found.key_from) == ("--url", f"{option_key} (--key-file)")


def test_each_value_has_its_own_first_place(places: Places, key_file: Path) -> None:
    places.file.write_text(f'key_file = "{key_file}"\nca_file = "~/ca.pem"\n')
    places.environment["HOSTBENCH_URL"] = URL
    found = places.found()
    assert (found.address.url, found.key) == (URL, OTHER_KEY)
    assert found.ca_file == Path.home() / "ca.pem"
    assert found.named_by == "HOSTBENCH_URL"


def test_the_file_may_be_named(places: Places, key_file: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one.toml", tmp_path / "other.toml"
    one.write_text(f'url = "https://one.example.org"\nkey_file = "{key_file}"\n')
    other.write_text(f'url = "https://other.example.org"\nkey_file = "{key_file}"\n')
    places.environment["HOSTBENCH_CONFIG"] = str(one)
    assert places.found().address.url == "https://one.example.org"
    places.reach = Reach(config=other)
    assert places.found().address.url == "https://other.example.org"


@pytest.mark.parametrize("by_option", [True, False])
def test_a_file_that_was_named_must_be_there(places: Places, by_option: bool) -> None:
    if by_option:
        places.reach = Reach(url=URL, config=Path("absent.toml"))
    else:
        places.environment["HOSTBENCH_CONFIG"] = "absent.toml"
    assert places.refused() == (
        "cannot read the configuration absent.toml: No such file or directory; name another one "
        "with --config or HOSTBENCH_CONFIG"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('urll = "x"', "unknown key 'urll'; did you mean 'url'? allowed are url, key_file or"),
        ('key = "secret"', "unknown key 'key'"),
        ("url = 8000", "url 8000 is not text"),
        ('url = ""', "url '' is not text"),
        ("url =", "is not TOML"),
        ('url = "a"\nurl = "b"', "is not TOML"),
        ("\udcff", "is not TOML"),
    ],
)
def test_what_is_wrong_in_the_file(places: Places, text: str, says: str) -> None:
    places.file.write_bytes(text.encode("utf-8", "surrogateescape"))
    message = places.refused()
    assert says in message and str(places.file) in message


@pytest.mark.parametrize(
    "url",
    ["127.0.0.1:8000", "ftp://x", "http://", "http://[::1", "https://x:99999999", "https://a b",
     "https://user@x", "https://x/?q=1", "https://x/#a", "latest", " ",
     "https://a..b", "https://xn--a", "https://\u2024.org", f"https://{'a' * 70}.org"],
)  # fmt: skip
def test_what_is_no_address(places: Places, url: str) -> None:
    places.reach = Reach(url=url)
    message = places.refused()
    assert message.startswith(f"--url {shown(url.strip())} is not the address of an orchestrator;")


def test_an_empty_option_is_no_omission(places: Places) -> None:
    places.reach = Reach(url="")
    assert places.refused() == "--url is empty; give a value or leave it out"


def test_no_key_in_clear_over_a_network(places: Places, key_file: Path) -> None:
    places.reach = Reach(url="http://bench.example.org:8000", key_file=key_file)
    assert "ssh -L 8000:127.0.0.1:8000 bench.example.org" in places.refused()


@pytest.mark.parametrize(
    "url", ["http://localhost:8000", "http://127.8.8.8", "http://[::1]:8000/bench/"]
)
def test_this_machine_needs_no_encryption(places: Places, key_file: Path, url: str) -> None:
    places.reach = Reach(url=url, key_file=key_file, ca_file=Path("/ca.pem"))
    found = places.found()
    assert found.address.url == url.rstrip("/")
    assert found.address.is_local and found.ca_file is None


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "a key is not empty"),
        (b" \n", "a key is not empty"),
        (b"two words", "a key is one word of ASCII"),
        (b"two\nlines", "a key is one word of ASCII"),
        ("schlüssel".encode(), "a key is one word of ASCII"),
        (b"\x00\x01", "a key is one word of ASCII"),
    ],
)
def test_what_is_no_key(places: Places, tmp_path: Path, content: bytes, says: str) -> None:
    path = tmp_path / "bad"
    path.write_bytes(content)
    places.reach = Reach(url=URL, key_file=path)
    message = places.refused()
    assert message.startswith(f"{path} (--key-file) holds no key: ") and says in message


def test_a_key_that_cannot_be_read(places: Places, checkout: Path) -> None:
    places.reach = Reach(url=URL, key_file=Path("absent"))
    assert places.refused().startswith("cannot read the key absent (--key-file): No such file")
    (checkout / "secrets" / "api_key").unlink()
    places.reach, places.checkouts = Reach(), [checkout]
    assert "made by make env" in places.refused()


def test_a_port_that_is_none_is_named(places: Places, checkout: Path) -> None:
    (checkout / ".env").write_text("HOSTBENCH_PORT=none\n")
    places.checkouts = [checkout]
    assert places.refused().startswith("HOSTBENCH_BIND and HOSTBENCH_PORT in ")


def test_a_user_without_a_home(places: Places, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_user(_user: int) -> None:
        raise KeyError

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr("pwd.getpwuid", no_user)
    del places.environment["XDG_CONFIG_HOME"]
    assert "in ~/.config/hostbench/config.toml, or work in a checkout" in places.refused()


def test_the_page_tells_every_command_and_every_place() -> None:
    from hostbench.cli.stack import stack
    from hostbench.client.connection import CONFIG_KEYS, _environment

    page = (CHECKOUT / "docs" / "client.md").read_text()
    for command in stack.registered_commands:
        assert command.callback is not None
        assert f"hostbench {command.name or command.callback.__name__} " in page
    for name in (*CONFIG_KEYS, *_environment({}).names.values(), "HOSTBENCH_CONFIG", "--config"):
        assert f"`{name}`" in page
