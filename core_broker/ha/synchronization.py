"""Copies topics, groups, offsets and delay progress of the master: codes 21, 201, 43 and 45.

A slave asks at once, every SYNCHRONIZE_S, and when its log has messages of a topic that it does not
know yet: elected without the topic, it would refuse to read and write the topic. Topics and groups
are replaced as a whole when their data version differs. Consumer offsets are merged
(offset_merge.py). The delay progress names messages that the master has delivered, so a slave
adopts the progress only when its own log has reached the end that the master's log had. In a
DLedger group, the broker that answers may be a deposed leader with another log. Its progress counts
committed deliveries only, which every later leader has, so a member adopts what is ahead of its own
progress, and goes back in no level; leaders of older versions also count deliveries that are not
committed, so a member also waits for the end. Compatible with RocketMQ's SlaveSynchronize, which
asks for topics on port listenPort - 2; a master answers them on listenPort as well.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from core_broker.errors import GantryError, RequestRefused
from core_broker.ha.faults import ReplicationRefused
from core_broker.ha.log_comparison import LogComparison, MasterLog
from core_broker.ha.offset_merge import OffsetMerge
from core_broker.ha.offset_table import decode_offset_table
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.remoting.bodies import (
    DelayOffsetSerializeWrapper,
    SubscriptionGroupWrapper,
    TopicConfigSerializeWrapper,
    decode_body,
)
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand

#: Interval of the requests, seconds.
SYNCHRONIZE_S = 10.0
#: Pause before the first requests while the master is unknown, seconds.
SEARCH_S = 0.2
#: Interval of the search for new topics in the log, seconds.
WATCH_S = 0.5

log = logging.getLogger(__name__)


class _DelayProgress(NamedTuple):
    """Progress of the master at `addr`, to be adopted when the own log has reached `end`."""

    addr: str
    offsets: dict[int, int]
    end: int


class Synchronization:
    """Keeps the tables of a slave equal to those of its master, until cancelled.

    `master_addr` returns the master's address, "" while unknown. `diverged` is called when the
    master's log has become shorter than the slave's.
    """

    def __init__(
        self,
        ctx: BrokerContext,
        client: RemotingClient,
        comparison: LogComparison,
        master_addr: Callable[[], str],
        answered: Callable[[MasterLog], None],
        diverged: Callable[[ReplicationRefused], None],
        *,
        is_committed: bool = False,
    ) -> None:
        """Prepare; with `is_committed`, every later master has the master's deliveries."""
        #: Table → reason of the last failure; "" after a success.
        self.problems: dict[str, str] = {}
        self._ctx = ctx
        self._client = client
        self._comparison = comparison
        self._master_addr = master_addr
        self._answered = answered
        self._diverged = diverged
        self._merge = OffsetMerge(ctx.offsets)
        self._delays: _DelayProgress | None = None
        self._is_committed = is_committed

    async def run(self) -> None:
        """Synchronize for ever."""
        while True:
            addr = self._master_addr()
            if not addr:
                await asyncio.sleep(SEARCH_S)
                continue
            topics = self._ctx.store.topics_on_disk()
            await self.synchronize(addr)
            await self._rest(addr, topics)

    async def _rest(self, addr: str, topics: list[str]) -> None:
        """Wait SYNCHRONIZE_S, less for another master, or a topic that was not in the log before.

        `topics` are those of the log when the requests began.
        """
        end = asyncio.get_running_loop().time() + SYNCHRONIZE_S
        while asyncio.get_running_loop().time() < end and self._master_addr() == addr:
            await asyncio.sleep(WATCH_S)
            seen, topics = set(topics), self._ctx.store.topics_on_disk()
            # A topic that was unknown before stays unknown: the master has deleted it.
            if any(self._ctx.topics.get(each) is None for each in topics if each not in seen):
                return

    async def synchronize(self, addr: str) -> None:
        """Ask for all tables once; a table that fails does not prevent the others."""
        self._adopt_delays(addr)
        for name, work in (
            ("topics", self._topics),
            ("groups", self._groups),
            ("consumer offsets", self._offsets),
            ("delay progress", self._delay_progress),
        ):
            await self._attempt(name, work, addr)

    async def _attempt(self, name: str, work: Callable[[str], Awaitable[None]], addr: str) -> None:
        problem = ""
        try:
            await work(addr)
        except ReplicationRefused as refusal:
            self._diverged(refusal)
        except GantryError as error:
            problem = str(error)
        except Exception:
            log.exception("synchronizing %s with %s failed", name, addr)
            problem = "see the log"
        if problem and problem != self.problems.get(name):
            log.warning("%s are not synchronized with %s: %s", name, addr, problem)
        self.problems[name] = problem

    async def _topics(self, addr: str) -> None:
        ctx = self._ctx
        body = await self._answer(addr, RequestCode.GET_ALL_TOPIC_CONFIG)
        table = decode_body(TopicConfigSerializeWrapper, body)
        if table.data_version != ctx.topics.version:
            ctx.topics.replace_all(table.topic_config_table, table.data_version)
            ctx.saver.save(ConfigTable.TOPICS)
            ctx.registrar.all_changed()

    async def _groups(self, addr: str) -> None:
        ctx = self._ctx
        body = await self._answer(addr, RequestCode.GET_ALL_SUBSCRIPTIONGROUP_CONFIG)
        table = decode_body(SubscriptionGroupWrapper, body)
        if table.data_version != ctx.groups.version:
            ctx.groups.replace_all(table.subscription_group_table, table.data_version)
            ctx.saver.save(ConfigTable.GROUPS)

    async def _offsets(self, addr: str) -> None:
        body = await self._answer(addr, RequestCode.GET_ALL_CONSUMER_OFFSET)
        table = await decode_offset_table(body)
        master = await self._master_log(addr)
        for _ in self._merge.merge(table, master.boot_ms):
            await asyncio.sleep(0)

    async def _delay_progress(self, addr: str) -> None:
        body = await self._answer(addr, RequestCode.GET_ALL_DELAY_OFFSET)
        table = decode_body(DelayOffsetSerializeWrapper, body)
        master = await self._master_log(addr)
        if self._delays is None or self._delays.end > master.max_offset:
            self._delays = _DelayProgress(addr, dict(table.offset_table), master.max_offset)
        self._adopt_delays(addr)

    def _adopt_delays(self, addr: str) -> None:
        """Adopt the progress that waits; that of another master belongs to another log."""
        delays, progress = self._delays, self._ctx.delay_progress
        if delays is None:
            return
        if delays.addr != addr:
            self._delays = None
        elif self._ctx.store.replica.end >= delays.end:
            adopt = progress.advance_all if self._is_committed else progress.replace_all
            adopt(delays.offsets)
            self._delays = None

    async def _master_log(self, addr: str) -> MasterLog:
        end = self._ctx.store.replica.end
        master = await self._comparison.master_log(addr)
        self._answered(master)
        self._comparison.check_range(end, master)
        return master

    async def _answer(self, addr: str, code: RequestCode) -> bytes:
        answer = await self._client.invoke(addr, RemotingCommand.request(code))
        if answer.code != ResponseCode.SUCCESS:
            raise RequestRefused(answer.code, f"{addr}: {answer.remark or ''}")
        return bytes(answer.body)
