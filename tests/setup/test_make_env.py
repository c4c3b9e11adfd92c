"""scripts/make-env.sh makes what the stack needs, and never overwrites."""

import os
import shutil
import ssl
import stat
import subprocess
from pathlib import Path

import pytest

from hostbench.client.checkout import Checkout
from tests.client.canned_server import certificate

SCRIPT = Path(__file__).parents[2] / "scripts/make-env.sh"
PRIVATE = 0o700


def make_env(directory: Path, gpu: str = "", path: Path | None = None) -> str:
    found = os.environ["PATH"] if path is None else f"{path}:{os.environ['PATH']}"
    environment = {**os.environ, "GPU": gpu, "PATH": found}
    return subprocess.check_output([SCRIPT, directory], text=True, env=environment)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("env")
    make_env(directory)
    return directory


@pytest.fixture
def fresh(made: Path, tmp_path: Path) -> Path:
    """A directory of its own, as the script leaves an empty one: keys take it a while."""
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    return tmp_path


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def contents(directory: Path) -> dict[str, bytes]:
    files = [directory / ".env", *(directory / "secrets").iterdir()]
    return {path.name: path.read_bytes() for path in files}


def test_secrets_are_random_and_only_the_owner_gets_at_them(made: Path, tmp_path: Path) -> None:
    make_env(tmp_path)
    first, second = contents(made), contents(tmp_path)
    for same in (".env", "keys"):
        assert first.pop(same) == second.pop(same)
    assert set(first) == set(second)
    assert not set(first.values()) & set(second.values())
    assert min(len(content) for content in first.values()) >= 64
    assert mode(made / "secrets") == PRIVATE
    # Containers of other users read them; the CA's key is for its owner alone.
    modes = {path.name: mode(path) for path in (made / "secrets").iterdir()}
    assert modes.pop("ca.key") == 0o400
    assert set(modes.values()) == {0o444}


def test_the_host_is_named(made: Path) -> None:
    assert f"HOSTBENCH_HOST={os.uname().nodename}\n" in (made / ".env").read_text()


def test_what_exists_stays(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("HOSTBENCH_HOST=mine\n")
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets/api_key").write_text("mine\n")
    message = make_env(tmp_path)
    before = contents(tmp_path)
    assert before[".env"] == b"HOSTBENCH_HOST=mine\n" and before["api_key"] == b"mine\n"
    assert "secrets/service_key" in message and "api_key" not in message and ".env" not in message
    assert "nothing was changed" in make_env(tmp_path)
    assert contents(tmp_path) == before


def test_the_host_has_its_key(fresh: Path) -> None:
    def keys() -> list[str]:
        return (fresh / "secrets/host_keys").read_text().splitlines()[1:]

    key = (fresh / "secrets/service_key").read_text().strip()
    assert keys() == [f"{os.uname().nodename} {key}"]
    (fresh / "secrets/host_keys").chmod(0o644)
    with (fresh / "secrets/host_keys").open("a") as file:
        file.write("bench-2 its-own-long-key\n")
    # Under another name it keeps its key, and the key is for that name alone.
    env = fresh / ".env"
    env.write_text(env.read_text().replace(f"HOST={os.uname().nodename}", "HOST=bench-1"))
    assert "secrets/host_keys" in make_env(fresh)
    assert keys() == ["bench-2 its-own-long-key", f"bench-1 {key}"]
    (fresh / "secrets/service_key").unlink()
    make_env(fresh)
    assert keys()[1] == "bench-1 " + (fresh / "secrets/service_key").read_text().strip() != key


@pytest.mark.parametrize(
    "lines",
    [
        "",
        "HOSTBENCH_BIND=0.0.0.0\nHOSTBENCH_PORT=8443\nHOSTBENCH_TLS=1\n",
        "HOSTBENCH_BIND=192.0.2.7\nHOSTBENCH_TLS=1\n",
        'HOSTBENCH_BIND="[::1]"\n',
    ],
)
def test_it_says_where_the_console_will_be(fresh: Path, lines: str) -> None:
    with (fresh / ".env").open("a") as env:
        env.write(lines)
    checkout = Checkout.found([fresh], {})
    assert checkout is not None
    next_step, then = make_env(fresh).splitlines()[-2:]
    assert next_step == "Next: make up (or docker compose up -d --wait)"
    assert then.startswith(f"Then: {checkout.address.url}/ui/ in a browser; ")
    assert then.endswith(".venv/bin/hostbench console --open logs it in")


def test_versions_without_a_choice_follow_the_stack(fresh: Path) -> None:
    env = fresh / ".env"
    text = env.read_text().replace("REDIS_VERSION=\n", "REDIS_VERSION=8.2.4-alpine\n")
    env.write_text(text.replace("GRAFANA_VERSION=\n", "GRAFANA_VERSION=12.3.0\n"))
    assert "HOSTBENCH_REDIS_VERSION as compose.yaml has it" in make_env(fresh)
    assert "\nHOSTBENCH_REDIS_VERSION=\n" in env.read_text()
    assert "\nHOSTBENCH_GRAFANA_VERSION=12.3.0\n" in env.read_text(), "somebody's choice"


def test_what_is_deleted_is_made_anew(made: Path) -> None:
    before = contents(made)
    (made / "secrets/server.pem").unlink()
    assert "  secrets/server.pem\n" in make_env(made)
    changed = {name for name, content in contents(made).items() if content != before[name]}
    assert changed == {"server.pem"}


def test_the_line_for_curl_follows_the_key(fresh: Path) -> None:
    line, key = fresh / "secrets/authorization", fresh / "secrets/api_key"
    assert line.read_text() == f"Authorization: Bearer {key.read_text()}"
    key.unlink()
    assert "secrets/authorization" in make_env(fresh)
    assert line.read_text() == f"Authorization: Bearer {key.read_text()}"


@pytest.mark.parametrize(
    ("deleted", "remade"),
    [
        ("server.key", {"server.key", "server.pem"}),
        ("ca.key", {"ca.key", "ca.pem", "server.pem"}),
        ("ca.pem", {"ca.pem"}),
    ],
)
def test_what_a_key_was_made_for_follows_it(fresh: Path, deleted: str, remade: set[str]) -> None:
    before = contents(fresh)
    (fresh / "secrets" / deleted).unlink()
    make_env(fresh)
    changed = {name for name, content in contents(fresh).items() if content != before[name]}
    assert changed == remade
    assert reaches(fresh, "localhost")
    assert "nothing was changed" in make_env(fresh)


def test_names_of_the_settings_are_in_the_certificate(fresh: Path) -> None:
    settings = fresh / ".env"
    names = ("bench.example.org", "192.0.2.7", "2001:db8::7")
    settings.write_text(
        settings.read_text().replace(
            "HOSTBENCH_CERTIFICATE_NAMES=", f'HOSTBENCH_CERTIFICATE_NAMES="{" ".join(names)}"'
        )
    )
    assert make_env(fresh).count("secrets/") == 1
    for name in (*names, "localhost"):
        assert reaches(fresh, name)
    assert "nothing was changed" in make_env(fresh)


def test_a_certificate_of_ones_own_stays_where_it_fits(fresh: Path) -> None:
    secrets = fresh / "secrets"
    made = certificate(fresh, "DNS:bench.example.org")
    for name, own in (("server.pem", made.certificate), ("server.key", made.key)):
        (secrets / name).unlink()
        (secrets / name).write_bytes(own.read_bytes())
    # It is its own authority.
    assert "not valid by the authorities" in refused(fresh)
    (secrets / "ca.pem").unlink()
    (secrets / "ca.pem").write_bytes(made.certificate.read_bytes())
    before = contents(fresh)
    assert "nothing was changed" in make_env(fresh)
    assert contents(fresh) == before
    assert reaches(fresh, "bench.example.org")
    (secrets / "server.key").unlink()
    assert "is not the certificate of secrets/server.key" in refused(fresh)
    assert (secrets / "server.pem").read_bytes() == before["server.pem"]


# ---- GPUs ----


def settings(directory: Path) -> dict[str, str]:
    lines = (directory / ".env").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def getent(directory: Path, groups: dict[str, int]) -> Path:
    """A directory with a getent that knows these groups."""
    cases = " ".join(f"group-{name}) echo {name}:x:{id_}: ;;" for name, id_ in groups.items())
    directory.mkdir()
    (directory / "getent").write_text(f"#!/bin/bash\ncase $1-$2 in {cases} *) exit 2 ;; esac\n")
    (directory / "getent").chmod(0o755)
    return directory


def test_without_a_request_it_gives_no_gpu(made: Path) -> None:
    assert "COMPOSE_FILE" not in settings(made)


def test_nvidias_gpus_are_given_and_taken_away(tmp_path: Path) -> None:
    message = make_env(tmp_path, "nvidia")
    before = settings(tmp_path)
    assert before["COMPOSE_FILE"] == "compose.yaml:compose.gpu.yaml"
    assert before["COMPOSE_FILE"] in message
    lines = (tmp_path / ".env").read_text()
    assert lines.count("COMPOSE_FILE=") == 1, "it takes the place of the example"
    assert "nothing was changed" in make_env(tmp_path, "nvidia")
    assert "nothing was changed" in make_env(tmp_path), "what is there stays"
    assert "no COMPOSE_FILE" in make_env(tmp_path, "none")
    del before["COMPOSE_FILE"]
    assert settings(tmp_path) == before
    assert "nothing was changed" in make_env(tmp_path, "none")
    make_env(tmp_path, "nvidia")
    assert (tmp_path / ".env").read_text() == lines


def test_amds_gpus_belong_to_groups_of_the_host(tmp_path: Path) -> None:
    known = getent(tmp_path / "bin", {"video": 44, "render": 992})
    make_env(tmp_path, "amd", known)
    found = settings(tmp_path)
    assert found["COMPOSE_FILE"] == "compose.yaml:compose.amd.yaml"
    assert (found["HOSTBENCH_VIDEO_GROUP"], found["HOSTBENCH_RENDER_GROUP"]) == ("44", "992")


def test_a_host_without_these_groups_is_reported(tmp_path: Path) -> None:
    known = getent(tmp_path / "bin", {"video": 44})
    message = refused(tmp_path, GPU="amd", PATH=f"{known}:{os.environ['PATH']}")
    assert "no group render" in message and "amdgpu" in message
    assert "COMPOSE_FILE" not in settings(tmp_path)


def test_compose_files_of_ones_own_stay(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("COMPOSE_FILE=compose.yaml:mine.yaml\n")
    assert "COMPOSE_FILE in .env is compose.yaml:mine.yaml;" in refused(tmp_path, GPU="nvidia")
    assert "by hand" in refused(tmp_path, GPU="none")
    assert settings(tmp_path) == {"COMPOSE_FILE": "compose.yaml:mine.yaml"}


def test_an_unknown_gpu(tmp_path: Path) -> None:
    message = refused(tmp_path, exit_code=2, GPU="1")
    assert "GPU=1" in message and "GPU=nvidia, GPU=amd or GPU=none" in message
    assert not (tmp_path / ".env").exists()


def test_the_longest_name_a_host_can_have(tmp_path: Path) -> None:
    uname = tmp_path / "bin/uname"
    uname.parent.mkdir()
    uname.write_text(f"#!/bin/sh\necho {'h' * 63}\n")
    uname.chmod(0o755)
    path = {**os.environ, "PATH": f"{uname.parent}:{os.environ['PATH']}"}
    subprocess.run([SCRIPT, tmp_path], check=True, env=path, stdout=subprocess.DEVNULL)
    assert reaches(tmp_path, "h" * 63)


def refused(directory: Path, exit_code: int = 3, **environment: str) -> str:
    known = {**os.environ, **environment}
    ended = subprocess.run([SCRIPT, directory], capture_output=True, text=True, env=known)
    assert ended.returncode == exit_code and len(ended.stderr.splitlines()) == 1
    return ended.stderr


def reaches(directory: Path, name: str) -> bool:
    """Whether a client that trusts ca.pem accepts the server by this name."""
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(directory / "secrets/server.pem", directory / "secrets/server.key")
    trusting = ssl.create_default_context(cafile=directory / "secrets/ca.pem")
    shake_hands(server, trusting, name)
    return True


def test_clients_that_trust_the_ca_reach_the_server_by_its_names(made: Path) -> None:
    secrets = made / "secrets"
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(secrets / "server.pem", secrets / "server.key")
    trusting = ssl.create_default_context(cafile=secrets / "ca.pem")
    trusting.verify_flags |= ssl.VERIFY_X509_STRICT
    for name in ("localhost", "127.0.0.1", "::1", "orchestrator", os.uname().nodename):
        shake_hands(server, trusting, name)
    with pytest.raises(ssl.SSLCertVerificationError, match="not valid for"):
        shake_hands(server, trusting, "example.org")
    with pytest.raises(ssl.SSLCertVerificationError, match="unable to get local issuer"):
        shake_hands(server, ssl.create_default_context(), "localhost")


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, name: str) -> None:
    """A TLS handshake in memory."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for end in ends * 3:
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    ends[0].getpeercert()
