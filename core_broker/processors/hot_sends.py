"""Usual sends, straight from the read buffer: the hot path of the broker, through the kernel.

For each read the kernel takes what it knows (core_broker/kernel/sends.py) and this hands the result
on: records, units and index entries to the store, counts to the statistics, answers to the
connection. Whatever is unusual, in a frame or in the broker's state, goes the plain way (send.py),
which decides alone what is refused. Without the compiled kernel there is only the plain way.
"""

import time
from functools import partial
from typing import Any

from core_broker.config import BrokerConfig
from core_broker.message.hosts import packed_address
from core_broker.message.topics import RETRY_PREFIX, SEND_FORBIDDEN_TOPICS
from core_broker.processors.context import BrokerContext
from core_broker.processors.put_answers import message_id, stored_answer, unflushed_answer
from core_broker.processors.turn import Turn
from core_broker.remoting.bodies import FILTER_MULTI_TAG
from core_broker.remoting.connection import Connection
from core_broker.remoting.frames import FrameSplitter
from core_broker.store.consume_queue import ConsumeQueue

try:
    from core_broker.kernel.queues import HotTopic
    from core_broker.kernel.sends import SendKernel
except ImportError:
    SendKernel = None

#: What stands for the numbers of an answer while it is cut into parts.
_MARKS = (1_111_111_111, 22_222_222, 3_333_333_333)
_ID_DIGITS = 16


def has_kernel() -> bool:
    """Whether the kernel is compiled on this machine."""
    return SendKernel is not None


class HotSends:
    """The hot path of one server; `feed` is called for each read, before anything else."""

    def __init__(self, ctx: BrokerContext, turn: Turn, read_buffer: memoryview) -> None:
        self._ctx = ctx
        self._turn = turn
        self._read_buffer = read_buffer
        #: The store decides about the index when it starts, whatever the setting becomes.
        self._is_indexing = ctx.config.message_index_enable
        self._kernel: Any = None
        self._config: BrokerConfig | None = None
        self._seen: tuple[object, int] = (None, 0)
        #: Messages that came this way.
        self.messages = 0

    def feed(self, connection: Connection, end: int) -> int:
        """Take usual sends from the first `end` bytes of the read buffer; return how many bytes."""
        ctx = self._ctx
        if not self._is_open(connection):
            return 0
        peer = connection.peer_record or _peer_record(connection)
        if not peer:
            return 0
        kernel, made = self._kernel, ctx.store.made
        now = made.now_ms()
        try:
            used: int = kernel.run(end, peer, made.position, made.room(), now)
        except BaseException:
            # What it has of this read must not come into the next one: a new kernel knows nothing.
            self._config = None
            raise
        if used:
            self._store(kernel, now)
            self.messages += kernel.messages
            self._answer(connection, kernel.answers, kernel.frames)
        return used

    def _is_open(self, connection: Connection) -> bool:
        """Whether nothing about the broker asks for a second look at a send."""
        ctx, turn = self._ctx, self._turn
        config = ctx.config
        if config is not self._config:
            self._make_kernel(config)
        if self._kernel is None or not ctx.is_accepting or ctx.unsaved_topics:
            return False
        seen = (ctx.topics.version, ctx.store.made.queue_removals)
        if seen != self._seen:
            self._kernel.forget()
            self._seen = seen
        began, ended = turn.last_write
        waited_ms = (time.monotonic() - connection.arrived) * 1000
        return (
            (ended - began) * 1000 <= config.os_page_cache_busy_time_out_mills
            and waited_ms <= config.wait_time_mills_in_send_queue
            and turn.flush_waiters < config.send_thread_pool_queue_capacity
            and connection.held < connection.limits.in_flight_max
        )

    def _make_kernel(self, config: BrokerConfig) -> None:
        host, port = self._ctx.host
        self._config = config
        self._kernel = None
        is_closed = config.start_accept_send_request_time_stamp or not config.kernel_enable
        if SendKernel is None or is_closed or ":" in host:
            return
        self._kernel = SendKernel(
            self._read_buffer,
            self,
            host=packed_address(host) + port.to_bytes(4, "big"),
            id_prefix=message_id((host, port), 0)[:_ID_DIGITS].encode(),
            cluster=config.broker_cluster_name.encode(),
            answer_parts=_answer_parts(config),
            is_indexing=self._is_indexing,
            is_sync=config.flush_disk_type == "SYNC_FLUSH",
            body_max=config.max_message_size,
        )

    # -- what the kernel asks for --

    def topic(self, name: bytes) -> "HotTopic | None":
        """The topic, when sending to it needs no second look."""
        text = name.decode()
        topic = self._ctx.topics.get(text)
        if topic is None or topic.order or topic.topic_filter_type == FILTER_MULTI_TAG:
            return None
        if text.startswith(RETRY_PREFIX) or text in SEND_FORBIDDEN_TOPICS:
            return None
        return HotTopic(name, topic.write_queue_nums)

    def queue(self, name: bytes, queue_id: int) -> ConsumeQueue:
        """Where the units of a queue go."""
        return self._ctx.store.made.queue(name.decode(), queue_id)

    # -- what the kernel made --

    def _store(self, kernel: Any, now: int) -> None:
        queues = []
        puts_of = self._ctx.statistics.puts_of
        for hot in kernel.touched:
            queue: ConsumeQueue = hot.queue
            puts = puts_of(queue.topic)
            puts.count_of[queue.queue_id] += hot.count
            puts.bytes_of[queue.queue_id] += hot.stored_bytes
            queues.append((queue, hot.take_units(), hot.end))
        self._ctx.store.made.stage(kernel.records, kernel.newest, queues, kernel.entries, now)

    def _answer(self, connection: Connection, answers: bytes, frames: int) -> None:
        if self._ctx.config.flush_disk_type == "SYNC_FLUSH":
            connection.hold(frames)
            self._turn.when_flushed(
                partial(self._flushed, connection, answers, frames), producers=frames
            )
        else:
            connection.answer_made(answers)

    def _flushed(
        self, connection: Connection, answers: bytes, frames: int, is_on_disk: bool
    ) -> None:
        connection.release(frames)
        if is_on_disk:
            connection.answer_made(answers)
            return
        is_writable = self._ctx.store.writable
        for stored in FrameSplitter().feed(answers):
            opaque = stored.opaque
            unflushed = unflushed_answer(self._ctx.config, stored, is_writable)
            unflushed.opaque = opaque
            connection.answer_made(unflushed.encode())


def _answer_parts(config: BrokerConfig) -> tuple[bytes, ...]:
    """An answer of the plain path, cut where numbers and ids stand."""
    opaque, queue_id, offset = _MARKS
    answer = stored_answer(config, "*", queue_id, offset)
    answer.opaque = opaque
    rest = answer.encode_head()[8:]
    parts = []
    for mark in (str(opaque), "*", str(queue_id), str(offset)):
        part, _, rest = rest.partition(mark.encode())
        parts.append(part)
    return (*parts, rest)


def _peer_record(connection: Connection) -> bytes:
    """The peer's address as a record holds it, kept with the connection; empty for IPv6."""
    if ":" not in connection.peer_host:
        port = connection.peer_port.to_bytes(4, "big")
        connection.peer_record = packed_address(connection.peer_host) + port
    return connection.peer_record
