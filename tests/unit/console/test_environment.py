"""The console's settings: read as a whole, every mistake named, secrets kept."""

import os
import socket
import stat
import threading
from pathlib import Path

import pytest

from console.environment import ClusterMark, EnvironmentProblem, read_environment
from core_broker.client import ClientTls, Credentials


def read(tmp_path: Path, **variables: str):
    return read_environment({"GANTRY_HOME": str(tmp_path), **variables})


def test_defaults_lead_to_a_local_name_server(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found.clusters == {"local": "127.0.0.1:9876"}
    assert found.clusters_from == "NAMESRV_ADDR"
    assert found.time_zone == "UTC"
    assert not found.redis_url
    assert not found.https


@pytest.mark.parametrize("text", ["h1:9876;h2:9877", "h1:9876,h2:9877", " h1:9876 ; h2:9877 ;"])
def test_name_servers_of_one_cluster(tmp_path: Path, text: str) -> None:
    assert read(tmp_path, NAMESRV_ADDR=text).clusters == {"local": "h1:9876;h2:9877"}


def test_only_names_of_this_machine_are_allowed_by_default(tmp_path: Path) -> None:
    own = set(read(tmp_path).allowed_hosts)
    assert {"localhost", "127.0.0.1", "[::1]", socket.gethostname().lower()} <= own
    assert "*" not in own
    more = read(tmp_path, CONSOLE_ALLOWED_HOSTS="a.example, .b.example").allowed_hosts
    assert set(more) == own | {"a.example", ".b.example"}


def test_proxies_are_addresses_and_networks(tmp_path: Path) -> None:
    found = read(tmp_path, CONSOLE_TRUSTED_PROXIES="127.0.0.1, 10.0.0.0/8 fd00::/8")
    assert found.trusted_proxies == ("127.0.0.1", "10.0.0.0/8", "fd00::/8")
    for wrong in ("proxy.example", "10.0.0.1/8", "*", "10.0.0.0/33"):
        with pytest.raises(EnvironmentProblem, match="CONSOLE_TRUSTED_PROXIES"):
            read(tmp_path, CONSOLE_TRUSTED_PROXIES=wrong)


def test_an_unusable_token_file_is_named(tmp_path: Path) -> None:
    absent = str(tmp_path / "absent")
    with pytest.raises(EnvironmentProblem, match=r"CONSOLE_METRICS_TOKEN_FILE .*No such file"):
        read(tmp_path, CONSOLE_METRICS_TOKEN_FILE=absent)


def test_several_clusters(tmp_path: Path) -> None:
    found = read(
        tmp_path,
        NAMESRV_ADDR="ignored:1",
        CONSOLE_CLUSTERS="local=127.0.0.1:9876; prod=h1:9876,h2:9876;v6=[::1]:9876",
    )
    assert found.clusters == {
        "local": "127.0.0.1:9876",
        "prod": "h1:9876;h2:9876",
        "v6": "[::1]:9876",
    }
    assert found.clusters_from == "CONSOLE_CLUSTERS"


def test_clusters_have_colours_and_production_marks(tmp_path: Path) -> None:
    found = read_environment(
        {
            "GANTRY_HOME": str(tmp_path),
            "CONSOLE_CLUSTERS": "a=h:1;b=h:2;c=h:3",
            "CONSOLE_CLUSTER_MARKS": "a=red+production; b=green",
        }
    )
    assert found.cluster_marks == {"a": ClusterMark("red", True), "b": ClusterMark("green")}


@pytest.mark.parametrize(
    "text", ["d=red", "a", "a=pink", "a=red+test", "a=red+production+x", "=red", "<script>=red"]
)
def test_marks_that_make_no_sense(tmp_path: Path, text: str) -> None:
    with pytest.raises(EnvironmentProblem, match="CONSOLE_CLUSTER_MARKS"):
        read_environment(
            {
                "GANTRY_HOME": str(tmp_path),
                "CONSOLE_CLUSTERS": "a=h:1",
                "CONSOLE_CLUSTER_MARKS": text,
            }
        )


def test_read_only_clusters_are_known_ones(tmp_path: Path) -> None:
    environ = {"GANTRY_HOME": str(tmp_path), "CONSOLE_CLUSTERS": "a=h:1;b=h:2"}
    found = read_environment({**environ, "CONSOLE_READ_ONLY_CLUSTERS": "b, a"})
    assert found.read_only_clusters == {"a", "b"}
    with pytest.raises(EnvironmentProblem, match="CONSOLE_READ_ONLY_CLUSTERS = 'c'"):
        read_environment({**environ, "CONSOLE_READ_ONLY_CLUSTERS": "a,c"})


def test_clusters_with_tls_have_files(tmp_path: Path) -> None:
    file = tmp_path / "tls.properties"
    file.write_text("tls.client.checkHostName=true\n")
    found = read(tmp_path, CONSOLE_CLUSTERS="a=h:1;b=h:2", CONSOLE_CLUSTER_TLS=f"b={file}")
    assert found.cluster_tls == {"b": (str(file), ClientTls(check_host_name=True))}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("c=/x", "cluster=file"),
        ("a", "cluster=file"),
        ("a=/nowhere.properties", "tls.config.file.*no such file"),
    ],
)
def test_tls_files_of_no_use(tmp_path: Path, text: str, expected: str) -> None:
    with pytest.raises(EnvironmentProblem, match=f"CONSOLE_CLUSTER_TLS.*{expected}"):
        read(tmp_path, CONSOLE_CLUSTERS="a=h:1", CONSOLE_CLUSTER_TLS=text)


def test_all_mistakes_are_told_together(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentProblem) as caught:
        read(
            tmp_path,
            CONSOLE_CLUSTERS="a=h:1;a=h:2;../b=h:3;c=h;d=h:99999",
            CONSOLE_TIME_ZONE="Mars/Base",
            CONSOLE_HTTPS="perhaps",
            REDIS_URL="http://user:secret@h",
            DATABASE_URL="oracle://x",
            CONSOLE_TRUSTED_ORIGINS="console.example.org",
        )
    text = str(caught.value)
    assert len(text.splitlines()) == 9
    for word in ("'a=h:2'", "'../b=h:3'", "'h'", "'h:99999'", "Mars/Base", "perhaps", "oracle:"):
        assert word in text
    assert "secret" not in text, "a value that may hold a password is not repeated"


def test_the_secret_key_is_made_once_and_kept_private(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    first = read_environment({"GANTRY_HOME": str(home)}).secret_key
    assert len(first) >= 50
    assert read_environment({"GANTRY_HOME": str(home)}).secret_key == first
    assert stat.S_IMODE((home / "secret_key").stat().st_mode) == 0o600
    assert [path.name for path in home.iterdir()] == ["secret_key"]


def test_processes_that_start_together_agree_on_the_secret_key(tmp_path: Path) -> None:
    keys: list[str] = []
    gate = threading.Barrier(8)

    def start() -> None:
        gate.wait()
        keys.append(read(tmp_path).secret_key)

    threads = [threading.Thread(target=start) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(keys)) == 1


def test_a_given_secret_key_touches_no_folder(tmp_path: Path) -> None:
    home = tmp_path / "absent"
    found = read_environment({"GANTRY_HOME": str(home), "SECRET_KEY": "given"})
    assert found.secret_key == "given"
    assert not home.exists()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_cannot_be_written_names_the_settings(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(EnvironmentProblem, match=r"GANTRY_HOME .* SECRET_KEY"):
        read_environment({"GANTRY_HOME": str(tmp_path / "home")})


def test_a_home_that_is_a_file_names_the_settings(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentProblem, match=r"GANTRY_HOME .* SECRET_KEY"):
        read_environment({"GANTRY_HOME": str(tmp_path / "file")})


def test_credentials_of_clusters_come_from_files(tmp_path: Path) -> None:
    file = tmp_path / "tools.yml"
    file.write_text("accessKey: root\nsecretKey: secret-of-root\n")
    found = read_environment(
        {
            "CONSOLE_CLUSTERS": "a=host:9876; b=host:9877",
            "CONSOLE_CLUSTER_CREDENTIALS": f"b={file}",
            "GANTRY_HOME": str(tmp_path),
        }
    )
    assert found.cluster_credentials == {"b": Credentials("root", "secret-of-root")}
    assert "secret-of-root" not in repr(found)


@pytest.mark.parametrize("text", ["", "accessKey: root\n", "- a\n- b\n", "\x00"])
def test_a_file_without_keys_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tools.yml"
    file.write_text(text)
    with pytest.raises(EnvironmentProblem, match=r"CONSOLE_CLUSTER_CREDENTIALS.*tools\.yml"):
        read_environment(
            {
                "CONSOLE_CLUSTERS": "a=host:9876",
                "CONSOLE_CLUSTER_CREDENTIALS": f"a={file}",
                "GANTRY_HOME": str(tmp_path),
            }
        )


@pytest.mark.parametrize(
    ("variables", "in_database"),
    [
        ({}, False),
        ({"DATABASE_URL": "sqlite:////tmp/a.sqlite3"}, False),
        ({"DATABASE_URL": "postgres://host/gantry"}, True),
        ({"DATABASE_URL": "postgres://host/gantry", "CONSOLE_HISTORY_STORE": "files"}, False),
        ({"DATABASE_URL": "postgres://host/gantry", "CONSOLE_HISTORY_STORE": "Database"}, True),
    ],
)
def test_the_history_is_in_postgresql_where_there_is_one(
    tmp_path: Path, variables: dict[str, str], in_database: bool
) -> None:
    assert read(tmp_path, **variables).history.in_database is in_database


@pytest.mark.parametrize("store", ["database", "duckdb"])
def test_an_unusable_store_of_the_history_is_named(tmp_path: Path, store: str) -> None:
    with pytest.raises(EnvironmentProblem, match=f"CONSOLE_HISTORY_STORE = '{store}'"):
        read(tmp_path, CONSOLE_HISTORY_STORE=store)
