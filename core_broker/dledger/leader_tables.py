"""A follower's copies of its leader's tables: topics, groups, consumer offsets, delay progress.

The group tells the leader's member, the name servers its broker: a registration of a slave answers
with the address of the broker that is registered with id 0. That answer may be old after an
election, so a follower registers again and again for a while. Compatible with RocketMQ's
SlaveSynchronize in a broker with DLedger.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from core_broker.ha.log_comparison import LogComparison, MasterLog
from core_broker.ha.master import monotonic_ms
from core_broker.ha.synchronization import Synchronization
from core_broker.processors.context import BrokerContext
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.tls_client import ClientTls

#: Interval of registrations while the address of the leader may be old, and their time, seconds.
FIND_S = 2.0
FIND_LONG_S = 20.0


class Names(Protocol):
    """The registration at the name servers."""

    master_found: Callable[[str, str], None] | None


class LeaderTables:
    """Copies tables while this broker follows. Event loop only."""

    def __init__(
        self,
        ctx: BrokerContext,
        names: Names,
        tls: ClientTls | None,
        rpc_hooks: Sequence[RpcHook],
        changed_ms: Callable[[], int],
    ) -> None:
        """Prepare; `changed_ms` returns when the leader changed."""
        #: Address of the leader's broker; "" while unknown, and on the leader.
        self.master_addr = ""
        self._ctx = ctx
        self._names = names
        self._changed_ms = changed_ms
        self._client = RemotingClient(name="broker-leader", tls=tls, rpc_hooks=rpc_hooks)
        comparison = _CommonLog(self._client, ctx.store.replica, self._read_record)
        self._synchronization = Synchronization(
            *(ctx, self._client, comparison, lambda: self.master_addr, _ignore, _ignore),
            is_committed=True,
        )
        self._tasks: list[asyncio.Task[None]] = []

    @property
    def problems(self) -> dict[str, str]:
        """Tables that could not be copied, with the reason."""
        return {name: each for name, each in self._synchronization.problems.items() if each}

    def follow(self) -> None:
        """Copy the tables of the leader."""
        self._names.master_found = self._found
        if not self._tasks:
            loop = asyncio.get_running_loop()
            for work in (self._synchronization.run(), self._find()):
                self._tasks.append(loop.create_task(work))

    async def rest(self) -> None:
        """Stop copying."""
        self._names.master_found, self.master_addr = None, ""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def close(self) -> None:
        """Stop copying, and disconnect."""
        await self.rest()
        await self._client.close()

    def _found(self, ha_addr: str, master_addr: str) -> None:
        self.master_addr = "" if master_addr == self._ctx.addr else master_addr

    async def _find(self) -> None:
        while True:
            await asyncio.sleep(FIND_S)
            is_fresh = monotonic_ms() - self._changed_ms() < FIND_LONG_S * 1000
            if is_fresh or not self.master_addr:
                self._ctx.registrar.all_changed()

    async def _read_record(self, offset: int) -> bytes | None:
        store = self._ctx.store
        return await store.cold_reads.when_warm(partial(store.read_at, offset))


class _CommonLog(LogComparison):
    """The group compares the logs; a Java leader reports only the committed part of its own."""

    def check_range(self, end: int, master: MasterLog) -> None:
        """Accept any range."""


def _ignore(_: object) -> None:
    """The group keeps the logs equal."""
