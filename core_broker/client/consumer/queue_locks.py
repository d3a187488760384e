"""The locks that make one consumer the only one of its group on a queue: codes 41 and 42.

A broker grants a lock for 60 s. The holder renews it every 20 s and trusts it for no more than
30 s, so that it has stopped before anybody else can begin. Compatible with RocketMQ's
RebalanceImpl.lock, lockAll and unlock, and ProcessQueue.isLockExpired.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from time import monotonic
from typing import Final

from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.errors import GantryError
from core_broker.remoting.bodies import (
    LockBatchRequestBody,
    LockBatchResponseBody,
    MessageQueue,
    UnlockBatchRequestBody,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode

log = logging.getLogger(__name__)

LOCK_RENEW_INTERVAL_S: Final = 20.0
LOCK_TRUST_S: Final = 30.0
LOCK_TIMEOUT_MS: Final = 1000


class QueueLocks:
    """What one consumer has locked; its clock is the monotonic one."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._trusted_until: dict[MessageQueue, float] = {}
        self._locked_ms: dict[MessageQueue, int] = {}

    def holds(self, queue: MessageQueue) -> bool:
        """Whether messages of the queue may be consumed now."""
        return monotonic() < self._trusted_until.get(queue, 0.0)

    @property
    def all(self) -> list[MessageQueue]:
        """Every queue that brokers may believe to be ours."""
        return list(self._trusted_until)

    def locked_ms(self, queue: MessageQueue) -> int:
        """When the lock was last granted, in ms since 1970; 0 when it is not held."""
        return self._locked_ms.get(queue, 0) if self.holds(queue) else 0

    async def lock(self, queue: MessageQueue) -> bool:
        """Ask for one queue; False when another member has it. Raises GantryError when its
        broker cannot be asked."""
        await self._ask(queue.broker_name, [queue])
        return self.holds(queue)

    async def renew(self, queues: Collection[MessageQueue]) -> set[MessageQueue]:
        """Renew the locks of all queues that are consumed; the answer is those that are lost.

        A lock that ran out before it was granted again is lost too: another member may have
        consumed in between. A broker that is away loses nothing by itself; its locks run out.
        """
        held = {queue for queue in queues if self.holds(queue)}
        by_broker: dict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            by_broker[queue.broker_name].append(queue)
        answered = await asyncio.gather(*(self._renew(*it) for it in by_broker.items()))
        asked = {queue for part in answered for queue in part}
        return {queue for queue in asked if queue not in held or not self.holds(queue)}

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Let others have the queues. A broker that does not hear it lets the lock run out."""
        by_broker: dict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            self._locked_ms.pop(queue, None)
            if self._trusted_until.pop(queue, None) is not None:
                by_broker[queue.broker_name].append(queue)
        await asyncio.gather(*(self._unlock(*it) for it in by_broker.items()))

    async def _renew(self, broker: str, queues: list[MessageQueue]) -> list[MessageQueue]:
        """The queues that the broker was asked for, if it answered."""
        try:
            await self._ask(broker, queues)
        except GantryError as error:
            log.warning("The locks of %s at %s were not renewed: %s", self._group, broker, error)
            return []
        return queues

    async def _ask(self, broker_name: str, queues: list[MessageQueue]) -> None:
        body = LockBatchRequestBody(
            consumer_group=self._group, client_id=self._instance.client_id, mq_set=queues
        )
        # Counted from the question: the broker's time begins later, never earlier.
        until, started_ms = monotonic() + LOCK_TRUST_S, now_ms()
        answer = await self._instance.ask(
            self._instance.routes.addr(broker_name),
            RequestCode.LOCK_BATCH_MQ,
            body=encode_body(body),
            timeout_ms=LOCK_TIMEOUT_MS,
        )
        granted = set(decode_body(LockBatchResponseBody, answer.body).lock_ok_mq_set)
        for queue in queues:
            if queue in granted:
                self._trusted_until[queue] = until
                self._locked_ms[queue] = started_ms
            else:
                self._trusted_until.pop(queue, None)

    async def _unlock(self, broker_name: str, queues: list[MessageQueue]) -> None:
        body = UnlockBatchRequestBody(
            consumer_group=self._group, client_id=self._instance.client_id, mq_set=queues
        )
        try:
            addr = self._instance.routes.addr(broker_name)
            code = RequestCode.UNLOCK_BATCH_MQ
            await self._instance.ask(addr, code, body=encode_body(body), timeout_ms=LOCK_TIMEOUT_MS)
        except GantryError as error:
            log.info("%d queues at %s stay locked for a while: %s", len(queues), broker_name, error)
