"""Keys and settings of a secured home folder."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from console.launcher.access import is_secured, open_access, server_names
from console.launcher.errors import EXIT_USAGE, StartError
from core_broker.client import ClientTls, Credentials
from core_broker.config.tls import TlsSettings, tls_in_force

HOST = "127.0.0.1"


@pytest.fixture(params=["plain", "with a space, and a \\ too"])
def home(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    home = tmp_path / request.param
    (home / "conf").mkdir(parents=True)
    return home


def test_the_keys_are_made_once_and_private(home: Path) -> None:
    assert not is_secured(home)
    first, second = open_access(home, HOST), open_access(home, HOST)
    assert is_secured(home)
    assert (first.is_new, second.is_new) == (True, False)
    assert first.credentials == second.credentials == Credentials.from_file(first.tools_file)
    assert first.credentials.access_key == "admin"
    assert len(first.credentials.secret_key) >= 32
    assert first.tools_file.stat().st_mode & 0o777 == 0o600


def test_the_servers_get_the_user_and_nobody_else_the_secret(home: Path) -> None:
    access = open_access(home, HOST)
    secret = access.credentials.secret_key
    for env in (access.broker_env({}), access.namesrv_env({})):
        user = json.loads(env["ROCKETMQ_INIT_AUTHENTICATION_USER"])
        assert user == {"username": "admin", "password": secret}
    keys = json.loads(access.broker_env({})["ROCKETMQ_INNER_CLIENT_AUTHENTICATION_CREDENTIALS"])
    assert keys == {"accessKey": "admin", "secretKey": secret}
    others = [access.client_env(), access.console_env({})]
    assert not any(secret in value for each in others for value in each.values())


def test_lost_keys_become_keys_of_another_user(home: Path) -> None:
    users = home / "store" / "config" / "auth.json"
    users.parent.mkdir(parents=True)
    users.write_text("{}")
    access = open_access(home, HOST)
    assert access.credentials.access_key.startswith("admin-")


def test_the_tls_settings_name_the_files(home: Path) -> None:
    access = open_access(home, HOST)
    client = ClientTls.from_file(str(access.client_tls_file))
    assert client.auth_server
    assert Path(client.trust_cert_path) == access.trust_cert
    client.context()
    file = access.namesrv_env({})["ROCKETMQ_TLS_CONFIG_FILE"]
    server = tls_in_force(TlsSettings(tls_config_file=file), {}).settings
    assert not server.tls_test_mode_enable
    assert Path(server.tls_server_key_path).read_text().startswith("-----BEGIN PRIVATE KEY")


def test_edited_tls_settings_are_kept(home: Path) -> None:
    access = open_access(home, HOST)
    access.client_tls_file.write_text("tls.client.checkHostName=true\n")
    open_access(home, HOST)
    assert access.client_tls_file.read_text() == "tls.client.checkHostName=true\n"


def test_a_shell_gets_the_variables(home: Path) -> None:
    access = open_access(home, HOST)
    access.write_client_files("127.0.0.1:9876")
    script = f'. "$1"; {sys.executable} -c "import json, os; print(json.dumps(dict(os.environ)))"'
    command = ["/bin/sh", "-c", script, "sh", str(access.client_env_file)]
    output = subprocess.run(command, check=True, capture_output=True, text=True, timeout=180).stdout
    found = json.loads(output)
    wanted = {"NAMESRV_ADDR": "127.0.0.1:9876", **access.client_env()}
    assert {name: found.get(name) for name in wanted} == wanted


def test_named_clusters_are_the_operators(home: Path) -> None:
    access = open_access(home, HOST)
    assert access.console_env({"CONSOLE_CLUSTERS": "prod=h:9876"}) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("tools.yml", "accessKey: admin\n"),
        ("tools.yml", ""),
        ("tools.yml", "\udcff"),
        ("tls/ca.pem", "damaged"),
        ("tls/server.key", "damaged"),
    ],
)
def test_damaged_files_end_the_start(home: Path, name: str, text: str) -> None:
    open_access(home, HOST)
    (home / "conf" / name).write_text(text, errors="surrogateescape")
    with pytest.raises(StartError, match="conf") as caught:
        open_access(home, HOST)
    assert caught.value.exit_code == EXIT_USAGE


def test_names_of_servers() -> None:
    assert server_names("127.0.0.1") == {"localhost", "127.0.0.1", "::1"}
    assert "192.0.2.7" in server_names("192.0.2.7")
    assert "127.0.0.1" in server_names("0.0.0.0")


def test_the_operators_variables_take_precedence(home: Path) -> None:
    access = open_access(home, HOST)
    environ = {
        "ROCKETMQ_TLS_SERVER_MODE": "permissive",
        "ROCKETMQ_MAX_ACCESS_FAILURES": "0",
        "ROCKETMQ_AUTHENTICATION_WHITELIST": "",
    }
    assert access.namesrv_env({})["ROCKETMQ_AUTHENTICATION_WHITELIST"] == "105,106"
    assert environ.items() <= access.namesrv_env(environ).items()
    broker = access.broker_env(environ)
    assert broker["ROCKETMQ_TLS_SERVER_MODE"] == "permissive"
    assert access.broker_env({})["ROCKETMQ_MAX_ACCESS_FAILURES"] == "20"
    assert "ROCKETMQ_AUTHENTICATION_WHITELIST" not in broker


def test_the_settings_of_foreign_clients_have_no_secret(home: Path) -> None:
    access = open_access(home, HOST)
    access.write_client_files("127.0.0.1:9876")
    text = access.client_guide_file.read_text()
    assert access.credentials.secret_key not in text
    for path in (access.trust_cert, access.tools_file, access.client_env_file):
        assert str(path) in text
