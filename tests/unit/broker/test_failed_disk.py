"""fsync fails once and works again: no send is acknowledged until a restart."""

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.message.record import decode_records
from core_broker.remoting.bodies import KVTable, TopicRouteData, decode_body
from core_broker.remoting.codes import ResponseCode
from core_broker.store import files
from tests.support.eventually import eventually
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]


class OneFailure:
    """fdatasync that fails once after `fail_next`, and works before and after the failure.

    The sync thread of the kernel gets the descriptor of a pipe, which cannot be synced.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._sync = files._fdatasync
        self._is_due = False
        self._pipe = os.pipe()
        monkeypatch.setattr(files, "_fdatasync", self)
        monkeypatch.setattr(files.DiskFile, "descriptor", property(self._descriptor))

    def fail_next(self) -> None:
        self._is_due = True

    def close(self) -> None:
        for each in self._pipe:
            os.close(each)

    def _take(self) -> bool:
        was_due, self._is_due = self._is_due, False
        return was_due

    def _descriptor(self, file: files.DiskFile) -> int:
        return self._pipe[1] if self._take() else file._fd

    def __call__(self, fd: int) -> None:
        if self._take():
            raise OSError(errno.EIO, "Input/output error")
        self._sync(fd)


async def bodies(client: WireClient) -> list[bytes]:
    """Bodies of the messages in queue 0 of the topic."""
    found: list[bytes] = []
    while (answer := await client.pull("T", len(found), sys_flag=4)).code == 0:
        found += [each.body for each in decode_records(answer.body)]
    return found


async def test_reliability_09_a_failed_sync_is_final(
    tmp_path: Path,
    start_broker: MakeBroker,
    connect: Connect,
    namesrv_addr: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failure = OneFailure(monkeypatch)
    settings = {"flush_disk_type": "SYNC_FLUSH", "namesrv_addr": namesrv_addr}
    broker = await start_broker(**settings)
    client, names = connect(broker.addr), connect(namesrv_addr)
    for number in range(5):
        assert (await client.send("T", b"before %d" % number)).code == 0
    assert "gantryReadOnlyReason" not in await runtime_info(client)
    failure.fail_next()
    for number in range(5):
        answer = await client.send("T", b"after %d" % number)
        assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
    # Reads continue; readiness and name server report the failure.
    assert (await bodies(client))[:5] == [b"before %d" % number for number in range(5)]
    assert "flushing" in broker.readiness.report()["store"]
    assert "flushing" in (await runtime_info(client))["gantryReadOnlyReason"]
    await eventually(lambda: permission_of(names, "T"))
    await broker.stop()

    broker = await start_broker(**settings)
    client = connect(broker.addr)
    assert (await client.send("T", b"again")).code == 0
    found = await bodies(client)
    assert found[:5] == [b"before %d" % number for number in range(5)]
    assert found[-1] == b"again"
    assert set(found[5:-1]) <= {b"after 0"}, "only messages of the failed flush may be stored"
    failure.close()


async def runtime_info(client: WireClient) -> dict[str, str]:
    answer = await client.request(28, {})
    return decode_body(KVTable, answer.body).table


async def permission_of(names: WireClient, topic: str) -> bool:
    """Return whether the route of the topic is read-only."""
    answer = await names.request(105, {"topic": topic})
    if answer.code != 0:
        return False
    route = decode_body(TopicRouteData, answer.body)
    return [each.perm for each in route.queue_datas] == [4]
