"""A broker's processors on a real store, without sockets and with a manual clock.

broker.send("T", b"body")                 send a message, return the answer
broker.ask(code, header)                  any request, answered at once or later
broker.peer()                             a client, which records what it is told
"""

import asyncio
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, cast

from core_broker.auth.gate import Gate
from core_broker.errors import ConnectionClosed, GantryError, RequestRefused, TransportError
from core_broker.message.model import MessageExt
from core_broker.message.record import decode_records
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.processors.delay_delivery import DelayDelivery
from core_broker.processors.table import RequestTable
from core_broker.processors.transaction_checks import TransactionChecks
from core_broker.remoting.bodies import TopicConfig, TopicRouteData, encode_body
from core_broker.remoting.codes import PROTOCOL_VERSION, LanguageCode, RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.connection_state import ConnectionState
from core_broker.remoting.headers import Header
from core_broker.state.delay_levels import DelayLevels
from core_broker.state.statistics import Statistics
from core_broker.state.topics import system_topics
from core_broker.store import MessageStore
from core_broker.store.consume_queues import ArrivalListener
from core_broker.store.files import Files
from tests.support.broker_requests import pull_header, send_header
from tests.support.stores import NOW_MS, ManualExecutor, StillLoop, store_config

DELAYS = "1s 5s 10s 30s"
VIP_PORT = 10909


class Peer:
    """A connection to a client: records commands, and answers requests by the test's script."""

    def __init__(self, port: int) -> None:
        self.peer_host = "127.0.0.1"
        self.peer_port = port
        self.peer = f"127.0.0.1:{port}"
        self.local_port = 10911
        self.held = 1
        self.state = ConnectionState()
        #: Arrival time of requests; infinity stands for requests that have just arrived.
        self.state.arrived = math.inf
        self.answers: dict[int, RemotingCommand] = {}
        self.told: list[RemotingCommand] = []
        #: Bytes that the peer accepts before reading; 0 for a peer that does not read.
        self.answer_capacity_bytes = 1 << 20
        self.closed_for = ""
        self.replies: Callable[[RemotingCommand], RemotingCommand] | None = None

    def answer(self, request: RemotingCommand, response: RemotingCommand) -> None:
        assert request.opaque not in self.answers, "answered twice"
        self.answers[request.opaque] = response

    def answer_frame(self, request: RemotingCommand, frame: bytes) -> None:
        self.answer(request, RemotingCommand.decode(frame))

    def send(self, command: RemotingCommand) -> None:
        if self.closed_for:
            raise ConnectionClosed(self.peer, self.closed_for)
        self.told.append(command)

    async def invoke(self, command: RemotingCommand, timeout_ms: float) -> RemotingCommand:
        self.told.append(command)
        if self.replies is None:
            raise ConnectionClosed(self.peer, "no script")
        return self.replies(command)

    def close(self, reason: str) -> None:
        self.closed_for = reason


class NoteSaver:
    """Records saves without writing; reports success, an error or a delay, as the test sets."""

    def __init__(self) -> None:
        self.saved: list[str] = []
        self.error: Exception | None = None
        self.is_slow = False
        self._waiting: list[Callable[[Exception | None], None]] = []

    def save(
        self, table: ConfigTable, then: Callable[[Exception | None], None] | None = None
    ) -> None:
        self.saved.append(table.value)
        if then is not None and self.is_slow:
            self._waiting.append(then)
        elif then is not None:
            then(self.error)

    def retry_failed(self) -> None:
        """Nothing failed: `error` is reported without a write."""

    def finish(self) -> None:
        """Complete all pending saves."""
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then(self.error)


class NoteRegistrar:
    """Records the topics that a broker would register at name servers; has scripted routes."""

    def __init__(self) -> None:
        self.topics: list[str] = []
        self.all = 0
        #: Routes at the name server, the topics asked for, and the error of every query.
        self.routes: dict[str, TopicRouteData] = {}
        self.asked: list[str] = []
        self.route_failure: TransportError | None = None

    def announce(self, topics: Iterable[TopicConfig]) -> None:
        self.topics += [topic.topic_name for topic in topics]

    def topics_changed(self, topics: Iterable[TopicConfig]) -> "asyncio.Future[None]":
        self.announce(topics)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        done.set_result(None)
        return done

    def all_changed(self) -> None:
        self.all += 1

    async def route(self, topic: str) -> TopicRouteData | None:
        self.asked.append(topic)
        if self.route_failure is not None:
            raise self.route_failure
        return self.routes.get(topic)


class BrokerHarness:
    """The processors of a broker. Made inside a running event loop."""

    def __init__(
        self, folder: Path, files: Files | None = None, gate: Gate | None = None, **settings: Any
    ) -> None:
        self.now_ms = NOW_MS
        self.executors: list[ManualExecutor] = []
        self.saver = NoteSaver()
        self.registrar = NoteRegistrar()
        defaults = {"broker_name": "b", "broker_ip1": "127.0.0.1", "message_delay_level": DELAYS}
        config = store_config(folder / "store", **defaults | settings)
        store = MessageStore(
            config, files=files, clock_ms=lambda: self.now_ms, executors=self._executor
        )
        self.ctx = BrokerContext(
            config=config,
            store=store,
            saver=self.saver,
            registrar=self.registrar,
            now_ms=lambda: self.now_ms,
            host=("127.0.0.1", 10911),
            delay_levels=DelayLevels(config.message_delay_level),
            statistics=Statistics(config.broker_cluster_name),
            vip_port=VIP_PORT,
            boot_ms=NOW_MS,
            gate=gate,
        )
        self.ctx.topics.add_system_topics(
            system_topics(
                cluster=config.broker_cluster_name,
                broker=config.broker_name,
                template_queues=config.default_topic_queue_nums,
                delay_levels=self.ctx.delay_levels.level_max,
                auto_create=config.auto_create_topic_enable,
                cluster_topic=True,
                broker_topic=True,
                trace_topic=None,
            )
        )
        self.requests = RequestTable(self.ctx)
        self.delays = DelayDelivery(self.ctx, self.requests.turn)
        self.checks = TransactionChecks(self.ctx, self.requests.turn)
        for waiting in (self.requests.held_pulls, self.delays):
            store.arrival_listeners.append(ArrivalListener(waiting.topics, waiting.arrived))
        self._opaque = 0
        self._peers = 0
        self.client = self.peer()
        self._open()

    def _open(self) -> None:
        self.ctx.store.load()
        self.ctx.store.start(cast("asyncio.AbstractEventLoop", StillLoop()))

    def _executor(self, name: str) -> ManualExecutor:
        self.executors.append(ManualExecutor(name))
        return self.executors[-1]

    def read_cold(self) -> None:
        """Complete pending reads from the disk."""
        for executor in self.executors:
            if executor.name.startswith("store-read"):
                executor.run()

    def close(self) -> None:
        """Close the store."""
        self.ctx.store.close()

    def peer(self) -> Peer:
        """Create a connection to a further client."""
        self._peers += 1
        return Peer(50_000 + self._peers)

    def topic(self, name: str = "T", queues: int = 4, perm: int = 6) -> str:
        """Create a topic as an administrator would have."""
        self.ctx.topics.put(
            TopicConfig(
                topic_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=perm
            ),
            self.now_ms,
        )
        return name

    def request(
        self,
        code: int,
        header: Header | dict[str, str] | None = None,
        body: bytes | object = b"",
        *,
        version: int = PROTOCOL_VERSION,
        language: LanguageCode = LanguageCode.JAVA,
    ) -> RemotingCommand:
        """A request of a client; struct bodies are encoded."""
        content = body if isinstance(body, bytes) else encode_body(body)
        command = RemotingCommand.request(code, header, content)
        self._opaque += 1
        command.opaque = self._opaque
        command.version = version
        command.language = language
        return command

    def give(self, request: RemotingCommand, peer: Peer | None = None) -> RemotingCommand | None:
        """Hand in a request and end the turn; None when it is not answered yet."""
        peer = peer or self.client
        try:
            response = self.requests.dispatch(cast("Connection", peer), request)
        except RequestRefused as refusal:
            response = RemotingCommand.response(refusal.code, refusal.remark)
        except GantryError as error:
            response = RemotingCommand.response(1, f"{type(error).__name__}: {error}")
        self.requests.turn.end()
        return response or peer.answers.get(request.opaque)

    async def ask(
        self,
        code: int,
        header: Header | dict[str, str] | None = None,
        body: bytes | object = b"",
        *,
        peer: Peer | None = None,
        **kinds: Any,
    ) -> RemotingCommand:
        """Dispatch a request and wait for the answer."""
        request = self.request(code, header, body, **kinds)
        response = self.give(request, peer)
        while response is None:
            self.read_cold()
            assert self.ctx.tasks, "no task is left that could answer the request"
            await asyncio.sleep(0)
            response = (peer or self.client).answers.get(request.opaque)
        return response

    async def send(
        self,
        topic: str,
        body: bytes = b"body",
        properties: str = "",
        *,
        code: int = RequestCode.SEND_MESSAGE_V2,
        version: int = PROTOCOL_VERSION,
        **fields: Any,
    ) -> RemotingCommand:
        """Send a message."""
        return await self.ask(code, send_header(topic, properties, **fields), body, version=version)

    async def check_half_messages(self) -> None:
        """Run a round of transaction checks, with a disk that confirms flushes."""
        round_ = asyncio.create_task(self.checks.check())
        while not round_.done():
            await asyncio.sleep(0)
            for executor in self.executors:
                executor.run()
        await round_

    async def pull(self, topic: str, offset: int = 0, **fields: Any) -> RemotingCommand:
        """Pull without waiting."""
        return await self.ask(RequestCode.PULL_MESSAGE, pull_header(topic, offset, **fields))

    async def messages(self, topic: str, queue_id: int = 0) -> list[MessageExt]:
        """The first 32 messages of a queue; an empty list for a missing queue."""
        store = self.ctx.store
        first, end = store.queue_range(topic, queue_id)
        found = store.get(topic, queue_id, first, 32) if end > first else None
        return decode_records(b"".join(found.records)) if found is not None else []
