"""Queue locks of orderly consumers: exclusive within the group, codes 41 and 42.

A broker grants a lock for 60 s. The holder renews the lock every 20 s and trusts the lock for 30 s:
the holder stops consuming before the broker grants the lock to another member. Compatible with
RocketMQ's RebalanceImpl.lock, lockAll and unlock, and ProcessQueue.isLockExpired.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Collection, Iterable
from time import monotonic
from typing import Final

from core_broker.client.identity import now_ms
from core_broker.client.instance import ClientInstance
from core_broker.errors import ClientError, GantryError
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
    """The locks of one consumer, timed by the monotonic clock."""

    def __init__(self, instance: ClientInstance, group: str) -> None:
        self._instance = instance
        self._group = group
        self._trusted_until: dict[MessageQueue, float] = {}
        self._locked_ms: dict[MessageQueue, int] = {}

    def holds(self, queue: MessageQueue) -> bool:
        """True while the lock is trusted: messages of the queue may be consumed."""
        return monotonic() < self._trusted_until.get(queue, 0.0)

    @property
    def all(self) -> list[MessageQueue]:
        """Every queue possibly locked by the consumer at a broker, trusted or not."""
        return list(self._trusted_until)

    def locked_ms(self, queue: MessageQueue) -> int:
        """Time of the last grant, ms since 1970; 0 for a queue without a held lock."""
        return self._locked_ms.get(queue, 0) if self.holds(queue) else 0

    async def lock(self, queue: MessageQueue) -> bool:
        """Lock one queue; False when another member holds the lock. Raises GantryError when the
        broker does not answer."""
        await self._ask(queue.broker_name, [queue])
        return self.holds(queue)

    async def renew(self, queues: Collection[MessageQueue]) -> set[MessageQueue]:
        """Renew the locks of the consumed queues; returns the queues with lost locks.

        A lock expired before the renewal is lost too: another member may have consumed in between.
        Locks at an unreachable broker are not returned; these locks expire.
        """
        held = {queue for queue in queues if self.holds(queue)}
        by_broker: dict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            by_broker[queue.broker_name].append(queue)
        answered = await asyncio.gather(*(self._renew(*it) for it in by_broker.items()))
        renewed = {queue for part in answered for queue in part}
        return {queue for queue in renewed if queue not in held or not self.holds(queue)}

    async def unlock(self, queues: Iterable[MessageQueue]) -> None:
        """Unlock queues for other members. At an unreachable broker the locks expire."""
        by_broker: dict[str, list[MessageQueue]] = defaultdict(list)
        for queue in queues:
            self._locked_ms.pop(queue, None)
            if self._trusted_until.pop(queue, None) is not None:
                by_broker[queue.broker_name].append(queue)
        await asyncio.gather(*(self._unlock(*it) for it in by_broker.items()))

    async def _renew(self, broker: str, queues: list[MessageQueue]) -> list[MessageQueue]:
        """Renew the locks at one broker; returns the queues, or no queues without an answer."""
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
        # Start of the trusted time: before the request, so never later than the broker's grant.
        until, started_ms = monotonic() + LOCK_TRUST_S, now_ms()
        routes = self._instance.routes
        await routes.route(queues[0].topic)
        addr = routes.master_addr(broker_name)
        if addr is None:
            # Only a master grants locks: those of a slave would not exclude those of the next one.
            raise ClientError(f"The broker {broker_name} has no master, which grants locks.")
        try:
            answer = await self._instance.ask(
                addr,
                RequestCode.LOCK_BATCH_MQ,
                body=encode_body(body),
                timeout_ms=LOCK_TIMEOUT_MS,
            )
        except GantryError as error:
            for queue in queues:
                routes.note_failure(queue.topic, error)
            raise
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
            log.info("%d locks at %s were not released: %s", len(queues), broker_name, error)
