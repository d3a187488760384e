"""core_broker/ha: a master sends its log to slaves, whatever slaves do."""

import socket
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from core_broker.broker import Broker
from core_broker.ha import master
from core_broker.ha.frames import encode_report
from core_broker.remoting.bodies import HARuntimeInfo, decode_body
from namesrv.server import NameServer
from tests.support.cluster import free_broker_port
from tests.support.eventually import eventually
from tests.support.scripted_slave import WAIT_S, slave_of
from tests.unit.broker.conftest import MakeBroker, WireClient, broker_config

Connect = Callable[[str], WireClient]
SEGMENT = 64 * 1024
HA_STATUS = 907
#: Longer than any test, seconds.
FOREVER_S = 86_400.0


async def fill(client: WireClient, messages: int, size: int = 3_000) -> None:
    """Send messages over the end of several log files."""
    for number in range(messages):
        answer = await client.send("T", number.to_bytes(4) * (size // 4))
        assert answer.code in {0, 11, 12}


def log_of(folder: Path, start: int, end: int) -> bytes:
    """The bytes of the log files."""
    files = sorted((folder / "store" / "commitlog").iterdir())
    first = int(files[0].name)
    return b"".join(file.read_bytes() for file in files)[start - first : end - first]


async def status(client: WireClient) -> HARuntimeInfo:
    """The answer to GET_BROKER_HA_STATUS."""
    return decode_body(HARuntimeInfo, (await client.request(HA_STATUS)).body)


class TestTransfer:
    async def test_the_whole_log_with_blank_tails_and_new_messages(
        self, start_broker: MakeBroker, connect: Connect, tmp_path: Path
    ) -> None:
        broker = await start_broker(
            mapped_file_size_commit_log=SEGMENT, ha_transfer_from_first_file=True
        )
        client = connect(broker.addr)
        await fill(client, 60)
        async with slave_of(broker.ha_port) as slave:
            slave.acknowledges = True
            await fill(client, 60)
            end = (await status(client)).master_commit_log_max_offset
            await slave.until(lambda: slave.end == end)
            assert end > 4 * SEGMENT
            assert slave.start == 0
            assert bytes(slave.log) == log_of(tmp_path, 0, end)
            assert max(slave.sizes) <= 32 * 1024
            ends, at = set(), 0
            for size in slave.sizes:
                assert at // SEGMENT == (at + size - 1) // SEGMENT, "a packet across two files"
                at += size
                ends.add(at)
            assert {SEGMENT, 2 * SEGMENT} <= ends

    async def test_an_empty_slave_gets_the_last_file(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(mapped_file_size_commit_log=SEGMENT)
        client = connect(broker.addr)
        await fill(client, 60)
        end = (await status(client)).master_commit_log_max_offset
        async with slave_of(broker.ha_port) as slave:
            await slave.until(lambda: slave.end == end)
            assert slave.start == end - end % SEGMENT > 0

    async def test_a_slave_continues_within_a_record(
        self, start_broker: MakeBroker, connect: Connect, tmp_path: Path
    ) -> None:
        broker = await start_broker()
        client = connect(broker.addr)
        await fill(client, 5)
        end = (await status(client)).master_commit_log_max_offset
        async with slave_of(broker.ha_port, 4_321) as slave:
            await slave.until(lambda: slave.end == end)
            assert slave.start == 4_321
            assert bytes(slave.log) == log_of(tmp_path, 4_321, end)

    async def test_packets_have_the_size_of_the_setting(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(ha_transfer_batch_size=1_000)
        client = connect(broker.addr)
        await fill(client, 5)
        end = (await status(client)).master_commit_log_max_offset
        async with slave_of(broker.ha_port) as slave:
            await slave.until(lambda: slave.end == end)
            assert max(slave.sizes) == 1_000

    async def test_many_new_bytes_are_sent_without_a_delay(
        self, start_broker: MakeBroker, connect: Connect, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for name in ("COALESCE_S", "COALESCE_BUSY_S", "TICK_S"):
            monkeypatch.setattr(master, name, FOREVER_S)
        broker = await start_broker()
        client = connect(broker.addr)
        await fill(client, 1)
        async with slave_of(broker.ha_port) as slave:
            await slave.until(lambda: slave.end > 0)
            await fill(client, 2 * master.TRANSFER_BYTES // 3_000)
            await slave.until(lambda: slave.end > master.TRANSFER_BYTES)

    async def test_a_slave_without_news_gets_heartbeats_with_the_next_offset(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(ha_send_heartbeat_interval=1)
        await fill(connect(broker.addr), 1)
        async with slave_of(broker.ha_port) as slave:
            await slave.until(lambda: slave.end > 0 and len(slave.heartbeats) > 2)
            assert slave.heartbeats[-1] == slave.end

    async def test_flow_control_limits_the_rate(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(
            ha_flow_control_enable=True, max_ha_transfer_byte_in_second=10_000
        )
        client = connect(broker.addr)
        await fill(client, 10)
        async with slave_of(broker.ha_port) as slave:
            await slave.until(lambda: slave.end >= 20_000)
            assert max(slave.sizes) <= 10_000
            (seen,) = (await status(client)).ha_connection_info
            assert seen.transferred_byte_in_second <= 10_000

    async def test_the_port_is_in_the_registration(
        self, start_broker: MakeBroker, namesrv: NameServer, namesrv_addr: str
    ) -> None:
        broker = await start_broker(namesrv_addr=namesrv_addr, broker_ip2="127.0.0.2")
        (live,) = await eventually(lambda: list(namesrv.routes.live.values()), WAIT_S)
        assert live.ha_server_addr == f"127.0.0.2:{broker.ha_port}" != "127.0.0.2:0"


class TestStatus:
    async def test_progress_of_each_slave(self, start_broker: MakeBroker, connect: Connect) -> None:
        broker = await start_broker(ha_slave_fallbehind_max=5_000)
        client = connect(broker.addr)
        await fill(client, 3)
        end = (await status(client)).master_commit_log_max_offset
        async with slave_of(broker.ha_port) as near, slave_of(broker.ha_port) as far:
            await near.until(lambda: near.end == end)
            await far.until(lambda: far.end == end)
            near.report(end)
            far.report(100)

            async def acknowledged() -> bool:
                seen = (await status(client)).ha_connection_info
                return {each.slave_ack_offset for each in seen} == {end, 100}

            await eventually(acknowledged, WAIT_S)
            info = await status(client)
            assert info.master
            assert info.in_sync_slave_nums == 1
            by_ack = {each.slave_ack_offset: each for each in info.ha_connection_info}
            assert by_ack[end].diff == 0
            assert by_ack[end].in_sync
            assert by_ack[100].diff == end - 100
            assert not by_ack[100].in_sync
            assert by_ack[100].transfer_from_where == end

        async def gone() -> bool:
            return not (await status(client)).ha_connection_info

        await eventually(gone, WAIT_S)


class TestHostileSlaves:
    @pytest.mark.parametrize("offset", [10**6, 2**62, 2**63 - 1])
    async def test_an_offset_behind_the_end_of_the_log(
        self,
        start_broker: MakeBroker,
        connect: Connect,
        caplog: pytest.LogCaptureFixture,
        offset: int,
    ) -> None:
        broker = await start_broker()
        await fill(connect(broker.addr), 1)
        async with slave_of(broker.ha_port, offset) as slave:
            await slave.closed()
            assert not slave.log
        assert "logs have diverged" in caplog.text

    async def test_an_acknowledgement_of_bytes_that_were_not_sent(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(
            ha_flow_control_enable=True, max_ha_transfer_byte_in_second=1_000
        )
        client = connect(broker.addr)
        await fill(client, 3)
        end = (await status(client)).master_commit_log_max_offset
        async with slave_of(broker.ha_port) as slave:
            await slave.until(lambda: slave.end > 0)
            slave.report(end)
            await slave.closed()

    async def test_an_offset_before_the_oldest_file(
        self,
        start_broker: MakeBroker,
        connect: Connect,
        tmp_path: Path,
        caplog: pytest.LogCaptureFixture,
    ) -> None:
        broker = await start_broker(mapped_file_size_commit_log=SEGMENT)
        await fill(connect(broker.addr), 60)
        await broker.stop()
        (tmp_path / "store" / "commitlog" / f"{0:020}").unlink()
        broker = await start_broker(mapped_file_size_commit_log=SEGMENT)
        async with slave_of(broker.ha_port, 100) as slave:
            await slave.closed()
        assert f"begins at {SEGMENT}" in caplog.text

    @pytest.mark.parametrize("data", [b"\xff" * 8, b"GET / HTTP/1.1\r\n\r\n", b"\x7f" * 100_000])
    async def test_other_protocols(
        self, start_broker: MakeBroker, connect: Connect, data: bytes
    ) -> None:
        broker = await start_broker()
        async with slave_of(broker.ha_port, None) as slave:
            slave.send(data)
            await slave.closed()
        assert (await connect(broker.addr).send("T")).code == 0

    async def test_a_stray_byte_shifts_later_reports(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker()
        client = connect(broker.addr)
        await fill(client, 1)
        async with slave_of(broker.ha_port) as slave:
            await slave.until(lambda: slave.end > 0)
            slave.send(b"\x7f")
            slave.send(encode_report(slave.end))
            await slave.closed()

    async def test_a_silent_peer_is_closed(
        self, start_broker: MakeBroker, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker = await start_broker(ha_housekeeping_interval=1)
        async with slave_of(broker.ha_port, 0) as slave:
            await slave.closed()
        assert "haHousekeepingInterval" in caplog.text
        replication = broker._parts.replication
        assert replication is not None
        async with slave_of(broker.ha_port, None) as slave:
            await slave.closed()
        assert replication.closings["silent"] == 1

    async def test_a_slave_that_never_reads_delays_nobody(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(ha_transfer_from_first_file=True)
        client = connect(broker.addr)
        with socket.create_connection(("127.0.0.1", broker.ha_port)) as stuck:
            stuck.sendall(encode_report(0))
            async with slave_of(broker.ha_port) as slave:
                slave.acknowledges = True
                await fill(client, 100, 100_000)
                end = (await status(client)).master_commit_log_max_offset
                await slave.until(lambda: slave.end == end)

    async def test_more_silent_peers_than_places_do_not_lock_out_a_slave(
        self, start_broker: MakeBroker, connect: Connect
    ) -> None:
        broker = await start_broker(max_ha_connection_num=3)
        client = connect(broker.addr)
        await fill(client, 1)
        end = (await status(client)).master_commit_log_max_offset
        async with AsyncExitStack() as peers:
            for _ in range(1_000):
                await peers.enter_async_context(slave_of(broker.ha_port, None))
            async with slave_of(broker.ha_port) as slave:
                await slave.until(lambda: slave.end == end)

    async def test_more_slaves_than_places(
        self, start_broker: MakeBroker, connect: Connect, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker = await start_broker(max_ha_connection_num=2)
        await fill(connect(broker.addr), 1)
        async with AsyncExitStack() as open_slaves:
            one, two = [
                await open_slaves.enter_async_context(slave_of(broker.ha_port)) for _ in range(2)
            ]
            await one.until(lambda: one.end > 0)
            await two.until(lambda: two.end > 0)
            further = await open_slaves.enter_async_context(slave_of(broker.ha_port))
            await further.closed()
        assert "maxHaConnectionNum" in caplog.text

    async def test_an_address_that_is_not_allowed(
        self, start_broker: MakeBroker, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker = await start_broker(ha_allowed_addresses="192.0.2.0/24; ::5")
        async with slave_of(broker.ha_port) as slave:
            await slave.closed()
        assert "haAllowedAddresses" in caplog.text


class TestPort:
    async def test_the_port_above_the_listen_port(self, start_broker: MakeBroker) -> None:
        broker = await start_broker(listen_port=(port := free_broker_port()))
        assert broker.ha_port == port + 1

    async def test_a_default_port_in_use_is_replaced(
        self, start_broker: MakeBroker, caplog: pytest.LogCaptureFixture
    ) -> None:
        port = free_broker_port()
        with socket.create_server(("127.0.0.1", port + 1)):
            broker = await start_broker(listen_port=port)
            assert broker.ha_port not in {0, port + 1}
        assert "haListenPort" in caplog.text

    async def test_a_port_of_the_settings_in_use_fails_the_start(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            broker = Broker(broker_config(tmp_path / "store", ha_listen_port=port))
            with pytest.raises(Exception, match="haListenPort"):
                await broker.start()
            await broker.stop()
