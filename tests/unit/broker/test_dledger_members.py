"""A DLedger group of three brokers in this process."""

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from core_broker.broker import Broker
from core_broker.broker.dledger_roles import DLedgerRoles
from core_broker.dledger.codes import DLedgerCode, DLedgerRequest
from core_broker.dledger.messages import Response, TransferRequest, decode, encode
from core_broker.errors import TruncationRefused
from core_broker.remoting.codes import ResponseCode
from core_broker.store import files
from tests.support.cluster import free_broker_port
from tests.support.eventually import eventually
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]


async def start_group(folder: Path, start_broker: MakeBroker, **settings: object) -> list[Broker]:
    """Start three members."""
    peers = ";".join(f"n{number}-127.0.0.1:{free_broker_port()}" for number in range(3))
    return [
        await start_broker(
            store_path_root_dir=str(folder / f"n{number}"),
            broker_role="SLAVE",
            enable_d_leger_commit_log=True,
            d_leger_peers=peers,
            d_leger_self_id=f"n{number}",
            **settings,
        )
        for number in range(3)
    ]


def roles_of(broker: Broker) -> DLedgerRoles:
    roles = broker._parts.dledger
    assert roles is not None
    return roles


def master_of(brokers: Sequence[Broker]) -> Broker | None:
    """The broker that accepts messages."""
    for broker in brokers:
        state = roles_of(broker).varz()
        if state["is_acting"] and state["role"] == "leader":
            return broker
    return None


async def stored_by(brokers: Sequence[Broker], connect: Connect, body: bytes) -> Broker:
    """Send a message until one of the brokers stores it; return that one."""

    async def send() -> Broker | None:
        master = master_of(brokers)
        if master is None:
            return None
        answer = await connect(master.addr).send("T", body)
        return master if answer.code == ResponseCode.SUCCESS else None

    master = await eventually(send)
    assert master is not None
    return master


async def test_a_group_without_messages_fails_over(
    tmp_path: Path, start_broker: MakeBroker
) -> None:
    brokers = await start_group(tmp_path, start_broker)
    master = await eventually(lambda: master_of(brokers))
    assert master is not None
    others = [broker for broker in brokers if broker is not master]
    # Followers work before they have a full vote.
    await eventually(lambda: not any(roles_of(broker).varz()["problem"] for broker in others))
    await master.stop()
    await eventually(lambda: master_of(others))


class BrokenDisk:
    """fdatasync that fails for all files below a folder."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder: str | None = None
        self._sync = files._fdatasync
        self._pipe = os.pipe()
        monkeypatch.setattr(files, "_fdatasync", self)
        # The sync thread of the kernel gets the descriptor of a pipe, which cannot be synced.
        monkeypatch.setattr(files.DiskFile, "descriptor", property(self._descriptor))

    def close(self) -> None:
        for each in self._pipe:
            os.close(each)

    def _is_broken(self, fd: int) -> bool:
        path = Path(f"/proc/self/fd/{fd}").readlink()
        return self.folder is not None and path.is_relative_to(self.folder)

    def _descriptor(self, file: files.DiskFile) -> int:
        return self._pipe[1] if self._is_broken(file._fd) else file._fd

    def __call__(self, fd: int) -> None:
        if self._is_broken(fd):
            raise OSError(errno.EIO, "Input/output error")
        self._sync(fd)


async def test_a_leader_with_a_failed_disk_leaves_the_group(
    tmp_path: Path, start_broker: MakeBroker, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = BrokenDisk(monkeypatch)
    brokers = await start_group(tmp_path, start_broker, flush_disk_type="SYNC_FLUSH")
    master = await stored_by(brokers, connect, b"before")
    disk.folder = master.config.store_path_root_dir
    answer = await connect(master.addr).send("T", b"on the failed disk")
    assert answer.code == ResponseCode.SERVICE_NOT_AVAILABLE
    await stored_by([broker for broker in brokers if broker is not master], connect, b"after")
    state = roles_of(master).varz()
    assert state["role"] == "candidate"
    assert "flushing" in state["problem"]
    assert "flushing" in master.readiness.report()["role"]
    disk.folder = None
    disk.close()


async def test_a_truncation_does_not_wait_for_the_role_of_a_stopping_broker(
    tmp_path: Path, start_broker: MakeBroker
) -> None:
    """A broker that stops as the master may hear of another leader before its port is closed."""
    brokers = await start_group(tmp_path, start_broker)
    master = await eventually(lambda: master_of(brokers))
    assert master is not None
    truncation = asyncio.create_task(roles_of(master)._truncate(0))
    await master.stop()
    with pytest.raises(TruncationRefused):
        await asyncio.wait_for(truncation, 60)


async def test_a_leader_without_space_hands_over(
    tmp_path: Path, start_broker: MakeBroker, connect: Connect
) -> None:
    brokers = await start_group(tmp_path, start_broker, clean_resource_interval=100)
    master = await stored_by(brokers, connect, b"before")
    master._ctx.reconfigure(replace(master.config, disk_space_warning_level_ratio=0))
    await stored_by([broker for broker in brokers if broker is not master], connect, b"after")
    await eventually(lambda: roles_of(master).varz()["role"] == "follower")


async def test_an_operator_moves_the_leadership(
    tmp_path: Path, start_broker: MakeBroker, connect: Connect
) -> None:
    brokers = await start_group(tmp_path, start_broker)
    master = await stored_by(brokers, connect, b"before")
    target = next(broker for broker in brokers if broker is not master)

    async def is_moved() -> bool:
        leader = master_of(brokers)
        if leader is None or leader is target:
            return leader is target
        group, state = roles_of(leader).member.group, roles_of(leader).varz()
        request = TransferRequest(
            group=group.name,
            remote_id=group.self_id,
            term=state["term"],
            transfer_id=group.self_id,
            transferee_id=roles_of(target).member.group.self_id,
        )
        port = connect(group.address(group.self_id))
        answer = await port.request(DLedgerRequest.LEADERSHIP_TRANSFER, body=encode(request))
        return decode(Response, answer.body).code == DLedgerCode.SUCCESS

    assert await eventually(is_moved)
    await stored_by(brokers, connect, b"after")
