"""Offset stores of consumers: on the brokers when clustering, in a file when broadcasting.

Compatible with RocketMQ's RemoteBrokerOffsetStore and LocalFileOffsetStore. The file is
``<folder>/<client id>/<group>/offsets.json``: {"offsetTable":{<MessageQueue>:<offset>}}; the
previous version is ``offsets.json.bak``.
"""

import asyncio
import logging
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Protocol

from core_broker.client.instance import ClientInstance
from core_broker.errors import ClientError, GantryError, ProtocolError, RequestRefused
from core_broker.remoting.bodies import MessageQueue, ResetOffsetBody, decode_body, encode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.headers import (
    QueryConsumerOffsetRequestHeader,
    QueryConsumerOffsetResponseHeader,
    UpdateConsumerOffsetRequestHeader,
)

log = logging.getLogger(__name__)


class OffsetStore(Protocol):
    """Offsets in memory, persisted at an interval; at most one offset per assigned queue."""

    async def read(self, queue: MessageQueue) -> int | None:
        """The persisted offset; None without a committed offset."""

    def cached(self, queue: MessageQueue) -> int | None:
        """The offset in memory; None without an update."""

    def update(self, queue: MessageQueue, offset: int, *, force: bool = False) -> None:
        """Set the offset in memory; without ``force`` a lower offset is ignored."""

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        """Persist the offsets in memory of the queues; failures are logged, without raising."""

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Persist an offset now, higher or lower; raises GantryError after a failure."""

    def forget(self, queue: MessageQueue) -> None:
        """Remove the offset in memory, because the queue moved to another member."""


class CachedOffsets:
    """The offsets in memory, common to both stores."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}

    def cached(self, queue: MessageQueue) -> int | None:
        return self._offsets.get(queue)

    def update(self, queue: MessageQueue, offset: int, *, force: bool = False) -> None:
        if force or offset > self._offsets.get(queue, -1):
            self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        self._offsets.pop(queue, None)


class BrokerOffsets(CachedOffsets):
    """Offsets on the brokers of the queues, shared by the members of a group."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        super().__init__()
        self._instance = instance
        self._group = group
        self._persisted: dict[MessageQueue, int] = {}

    async def read(self, queue: MessageQueue) -> int | None:
        header = QueryConsumerOffsetRequestHeader(
            consumer_group=self._group, topic=queue.topic, queue_id=queue.queue_id
        )
        addr = self._instance.routes.addr(queue.broker_name)
        try:
            answer = await self._instance.ask(addr, RequestCode.QUERY_CONSUMER_OFFSET, header)
        except RequestRefused as refused:
            if refused.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return answer.header(QueryConsumerOffsetResponseHeader).offset

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        await asyncio.gather(*(self._persist_one(queue) for queue in queues))

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        self.update(queue, offset, force=True)
        await self._send(queue, offset)

    def forget(self, queue: MessageQueue) -> None:
        super().forget(queue)
        self._persisted.pop(queue, None)

    async def _persist_one(self, queue: MessageQueue) -> None:
        offset = self._offsets.get(queue)
        if offset is None or self._persisted.get(queue) == offset:
            return
        try:
            await self._send(queue, offset)
        except GantryError as error:
            log.warning("The offset %d of %s was not committed: %s", offset, queue, error)

    async def _send(self, queue: MessageQueue, offset: int) -> None:
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )
        addr = self._instance.routes.addr(queue.broker_name)
        try:
            await self._instance.ask(addr, RequestCode.UPDATE_CONSUMER_OFFSET, header)
        except GantryError as error:
            self._instance.routes.note_failure(queue.topic, error)
            raise
        self._persisted[queue] = offset


class LocalOffsets(CachedOffsets):
    """Offsets in a local file: broadcasting consumers do not share offsets."""

    def __init__(self, folder: Path, client_id: str, group: str) -> None:
        super().__init__()
        self._path = folder / client_id / group / "offsets.json"
        self._backup = self._path.with_suffix(".json.bak")
        self._is_valid = False
        self._loaded: dict[MessageQueue, int] | None = None

    async def read(self, queue: MessageQueue) -> int | None:
        return (await self._table()).get(queue)

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        updates = {queue: self._offsets[queue] for queue in queues if queue in self._offsets}
        try:
            await self._merge(updates)
        except OSError as error:
            log.warning("The offsets in %s were not saved: %s", self._path, error)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        self.update(queue, offset, force=True)
        try:
            await self._merge({queue: offset})
        except OSError as error:
            raise ClientError(f"The offsets in {self._path} were not saved: {error}.") from None

    async def _merge(self, updates: dict[MessageQueue, int]) -> None:
        saved = await self._table()
        table = {**saved, **updates}
        if table != saved:
            await _in_thread(self._save, table)
            self._loaded = table

    async def _table(self) -> dict[MessageQueue, int]:
        if self._loaded is None:
            self._loaded = await asyncio.to_thread(self._load)
        return self._loaded

    def _load(self) -> dict[MessageQueue, int]:
        for path in (self._path, self._backup):
            try:
                table = decode_body(ResetOffsetBody, path.read_bytes()).offset_table
            except FileNotFoundError:
                continue
            except (OSError, ProtocolError) as error:
                log.warning("The offsets in %s cannot be read: %s", path, error)
            else:
                self._is_valid = path is self._path
                return table
        return {}

    def _save(self, table: dict[MessageQueue, int]) -> None:
        """Write a temporary file and rename: a crash leaves the old or the new file complete."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._path.with_suffix(".json.tmp")
        temporary.write_bytes(encode_body(ResetOffsetBody(offset_table=table)))
        if self._is_valid:
            shutil.copyfile(self._path, self._backup)
        temporary.replace(self._path)
        self._is_valid = True


async def _in_thread(
    work: Callable[[dict[MessageQueue, int]], None], table: dict[MessageQueue, int]
) -> None:
    """Work in a thread; during the interpreter's shutdown, when threads cannot start, work on the
    event loop."""
    try:
        await asyncio.to_thread(work, table)
    except RuntimeError:
        work(table)
