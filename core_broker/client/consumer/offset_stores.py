"""Where a consumer keeps its offsets: on the broker when clustering, in a file when broadcasting.

Compatible with RocketMQ's RemoteBrokerOffsetStore and LocalFileOffsetStore. The file is
``<folder>/<client id>/<group>/offsets.json``: {"offsetTable":{<MessageQueue>:<offset>}}; the one
before it is ``offsets.json.bak``.
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
    """Offsets live in memory and are persisted now and then; at most as many as queues are held."""

    async def read(self, queue: MessageQueue) -> int | None:
        """The persisted offset; None when the group never committed one."""

    def remembered(self, queue: MessageQueue) -> int | None:
        """The offset in memory."""

    def update(self, queue: MessageQueue, offset: int, *, force: bool = False) -> None:
        """Remember an offset; without ``force`` it never goes back."""

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        """Make what is remembered of these queues last; a failure is logged and tried again."""

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        """Make an offset last now, forward or back; raises GantryError when that fails."""

    def forget(self, queue: MessageQueue) -> None:
        """The queue belongs to somebody else now."""


class RememberedOffsets:
    """The part in memory, common to all stores."""

    def __init__(self) -> None:
        self._offsets: dict[MessageQueue, int] = {}

    def remembered(self, queue: MessageQueue) -> int | None:
        return self._offsets.get(queue)

    def update(self, queue: MessageQueue, offset: int, *, force: bool = False) -> None:
        if force or offset > self._offsets.get(queue, -1):
            self._offsets[queue] = offset

    def forget(self, queue: MessageQueue) -> None:
        self._offsets.pop(queue, None)


class BrokerOffsets(RememberedOffsets):
    """Kept by each queue's broker, for whichever member of the group has the queue."""

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
        await self._tell(queue, offset)

    def forget(self, queue: MessageQueue) -> None:
        super().forget(queue)
        self._persisted.pop(queue, None)

    async def _persist_one(self, queue: MessageQueue) -> None:
        offset = self._offsets.get(queue)
        if offset is None or self._persisted.get(queue) == offset:
            return
        try:
            await self._tell(queue, offset)
        except GantryError as error:
            log.warning("The offset %d of %s was not committed: %s", offset, queue, error)

    async def _tell(self, queue: MessageQueue, offset: int) -> None:
        header = UpdateConsumerOffsetRequestHeader(
            consumer_group=self._group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            commit_offset=offset,
        )
        addr = self._instance.routes.addr(queue.broker_name)
        await self._instance.ask(addr, RequestCode.UPDATE_CONSUMER_OFFSET, header)
        self._persisted[queue] = offset


class LocalOffsets(RememberedOffsets):
    """Kept in a file of this machine: a broadcasting consumer shares its offsets with nobody."""

    def __init__(self, folder: Path, client_id: str, group: str) -> None:
        super().__init__()
        self._path = folder / client_id / group / "offsets.json"
        self._backup = self._path.with_suffix(".json.bak")
        self._is_whole = False
        self._loaded: dict[MessageQueue, int] | None = None

    async def read(self, queue: MessageQueue) -> int | None:
        return (await self._table()).get(queue)

    async def persist(self, queues: Iterable[MessageQueue]) -> None:
        wanted = {queue: self._offsets[queue] for queue in queues if queue in self._offsets}
        try:
            await self._keep(wanted)
        except OSError as error:
            log.warning("The offsets in %s were not saved: %s", self._path, error)

    async def commit(self, queue: MessageQueue, offset: int) -> None:
        self.update(queue, offset, force=True)
        try:
            await self._keep({queue: offset})
        except OSError as error:
            raise ClientError(f"The offsets in {self._path} were not saved: {error}.") from None

    async def _keep(self, wanted: dict[MessageQueue, int]) -> None:
        known = await self._table()
        table = {**known, **wanted}
        if table != known:
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
                self._is_whole = path is self._path
                return table
        return {}

    def _save(self, table: dict[MessageQueue, int]) -> None:
        """Write beside the file and rename, so that there is a whole one at any time."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fresh = self._path.with_suffix(".json.tmp")
        fresh.write_bytes(encode_body(ResetOffsetBody(offset_table=table)))
        if self._is_whole:
            shutil.copyfile(self._path, self._backup)
        fresh.replace(self._path)
        self._is_whole = True


async def _in_thread(
    work: Callable[[dict[MessageQueue, int]], None], table: dict[MessageQueue, int]
) -> None:
    """Away from the event loop. An interpreter that ends starts no threads: then do it here."""
    try:
        await asyncio.to_thread(work, table)
    except RuntimeError:
        work(table)
