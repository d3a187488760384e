"""broker/lifecycle.py, saving.py and jobs.py: errors of a start, files after a stop."""

import asyncio
import json
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from core_broker.broker import Broker
from core_broker.errors import GantryError
from core_broker.remoting.headers import UpdateConsumerOffsetRequestHeader
from tests.support.eventually import eventually
from tests.unit.broker.conftest import MakeBroker, WireClient, broker_config

Connect = Callable[[str], WireClient]


async def failure(config: Any) -> str:
    """Return the error of a start that fails."""
    broker = Broker(config)
    with pytest.raises(GantryError) as caught:
        await broker.start()
    await broker.stop()
    return str(caught.value)


class TestStart:
    async def test_an_occupied_port_is_named(self, tmp_path: Path) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            error = await failure(broker_config(tmp_path / "store", listen_port=port))
        assert "listenPort" in error
        assert str(port) in error

    async def test_an_occupied_side_port_is_named(self, tmp_path: Path) -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            port = other.getsockname()[1]
            error = await failure(broker_config(tmp_path / "store", http_port=port))
        assert "httpPort" in error

    async def test_an_address_of_another_machine(self, tmp_path: Path) -> None:
        error = await failure(broker_config(tmp_path / "store", bind_address="192.0.2.1"))
        assert "bindAddress" in error

    async def test_an_unknown_host_name(self, tmp_path: Path) -> None:
        error = await failure(broker_config(tmp_path / "store", broker_ip1="no such host"))
        assert "brokerIP1" in error

    async def test_a_store_folder_that_is_a_file(self, tmp_path: Path) -> None:
        (tmp_path / "store").write_bytes(b"")
        error = await failure(broker_config(tmp_path / "store"))
        assert "storePathRootDir" in error

    async def test_a_store_that_is_in_use(
        self, tmp_path: Path, start_broker: MakeBroker, connect: Connect
    ) -> None:
        first = await start_broker()
        error = await failure(broker_config(tmp_path / "store"))
        assert "in use by another broker" in error
        assert (await connect(first.addr).send("T")).code == 0

    async def test_a_commit_log_that_is_in_use(
        self, tmp_path: Path, start_broker: MakeBroker, connect: Connect
    ) -> None:
        first = await start_broker()
        log = str(tmp_path / "store" / "commitlog")
        error = await failure(broker_config(tmp_path / "second", store_path_commit_log=log))
        assert f"{log} is in use by another broker" in error
        assert "storePathCommitLog or storePathRootDir" in error
        assert (await connect(first.addr).send("T")).code == 0

    async def test_topics_that_cannot_be_read(
        self, tmp_path: Path, start_broker: MakeBroker
    ) -> None:
        await (await start_broker()).stop()
        folder = tmp_path / "store" / "config"
        for name in ("topics.json", "topics.json.bak"):
            (folder / name).write_bytes(b"{broken")
        error = await failure(broker_config(tmp_path / "store"))
        assert "topics.json" in error
        assert (folder / "topics.json").read_bytes() == b"{broken", (
            "the damaged file must not be overwritten"
        )

    async def test_the_previous_version_of_the_topics_is_enough(
        self, tmp_path: Path, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker()
        await connect(broker.addr).send("T", b"kept")
        await broker.stop()
        (tmp_path / "store" / "config" / "topics.json").write_bytes(b"")
        broker = await start_broker()
        assert (await connect(broker.addr).pull("T")).code == 0


class TestStop:
    async def test_held_pulls_are_answered(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker()
        client = connect(broker.addr)
        await client.send("T")
        waiting = asyncio.create_task(client.pull("T", 1, suspend_timeout_millis=60_000))
        await eventually(lambda: broker._parts.requests.held_pulls)
        await broker.stop()
        assert (await waiting).code == 19

    async def test_a_second_stop_does_nothing(
        self, tmp_path: Path, start_broker: MakeBroker
    ) -> None:
        broker = await start_broker()
        await broker.stop()
        file = tmp_path / "store" / "config" / "topics.json"
        file.write_bytes(b"another broker's")
        await broker.stop()
        assert file.read_bytes() == b"another broker's"

    async def test_a_stop_leaves_a_clean_store(
        self, tmp_path: Path, start_broker: MakeBroker
    ) -> None:
        broker = await start_broker()
        assert (tmp_path / "store" / "abort").exists()
        await broker.stop()
        assert not (tmp_path / "store" / "abort").exists()


class TestFiles:
    async def test_offsets_are_written_while_the_broker_runs(
        self, tmp_path: Path, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(flush_consumer_offset_interval=20)
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group="CG", topic="T", queue_id=1, commit_offset=5
        )
        await connect(broker.addr).request(15, header)
        file = tmp_path / "store" / "config" / "consumerOffset.json"
        await eventually(lambda: file.exists() and b"T@CG" in file.read_bytes())
        assert json.loads(file.read_bytes()) == {"offsetTable": {"T@CG": {"1": 5}}}

    async def test_delay_offsets_are_written_while_the_broker_runs(
        self, tmp_path: Path, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(flush_delay_offset_interval=20)
        client = connect(broker.addr)
        await client.send("T", b"x", "DELAY\x011")
        await client.pull("T")
        file = tmp_path / "store" / "config" / "delayOffset.json"
        await eventually(lambda: file.exists() and b"{1:1}" in file.read_bytes())

    async def test_the_response_reports_an_unwritable_folder(
        self, tmp_path: Path, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker()
        client = connect(broker.addr)
        config = tmp_path / "store" / "config"
        aside = tmp_path / "aside"
        # No write of the start may be pending while the folder moves.
        assert (await client.send("Before")).code == 0
        await eventually(lambda: b"Before" in (config / "topics.json").read_bytes())
        config.rename(aside)
        config.write_bytes(b"a file where the folder was")
        answer = await client.send("New")
        assert answer.code == 1
        assert "topics.json could not be written" in (answer.remark or "")
        config.unlink()
        aside.rename(config)
        assert (await client.send("New")).code == 0
