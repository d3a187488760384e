"""Usual sends, straight from the read buffer: the shell around the kernel that takes them.

The kernel (core_broker/kernel/sends.py, or express_sends.py in plain Python) asks once a turn
whether it may, and keeps what it makes until the turn ends or the store wants it. This hands it on
then: records, units and index entries to the store, counts to the statistics, answers that wait for
the disk to the turn. Whatever is unusual, in a request or in the broker's state, goes the plain way
(send.py), which decides alone what is refused.
"""

from array import array
from functools import partial
from typing import Any

from core_broker.config import BrokerConfig
from core_broker.fastpath.python_sends import PythonSends, PythonTopic
from core_broker.message.hosts import packed_address
from core_broker.message.properties import encode_properties
from core_broker.message.topics import RETRY_PREFIX, SEND_FORBIDDEN_TOPICS
from core_broker.processors.added_properties import added_properties
from core_broker.processors.context import BrokerContext
from core_broker.processors.put_answers import answer_parts, message_id, unflushed_answer
from core_broker.processors.turn import Turn
from core_broker.remoting.bodies import FILTER_MULTI_TAG
from core_broker.remoting.connection import Connection
from core_broker.remoting.frames import FrameSplitter
from core_broker.store.consume_queue import ConsumeQueue

try:
    from core_broker.kernel.queues import SendTopic
    from core_broker.kernel.sends import CompiledSends
except ImportError:
    CompiledSends = SendTopic = None

_ID_DIGITS = 16

#: A connection, answers to it, and to how many requests.
_Waiting = tuple[Connection, bytes, int]
#: Where the first record goes, bytes that have room there, the store time in ms, how long a send
#: may have waited in ms, and how many may wait for the disk.
Place = tuple[int, int, int, float, int]


class FastSends:
    """Sends of one server that need no second look."""

    def __init__(self, ctx: BrokerContext, turn: Turn, *, is_compiled: bool) -> None:
        self.kernel: Any = CompiledSends(self) if is_compiled else PythonSends(self)
        self._make_topic: Any = SendTopic if is_compiled else PythonTopic
        #: Messages that came this way.
        self.messages = 0
        self._ctx = ctx
        self._turn = turn
        self._is_compiled = is_compiled
        #: The store decides about the index when it starts, whatever the setting becomes.
        self._is_indexing = ctx.config.message_index_enable
        self._config: BrokerConfig | None = None
        self._is_closed = True
        self._is_sync = False
        self._seen: tuple[object, int] = (None, 0)
        # One object, which the store can compare.
        self._hand_over = self.hand_over
        ctx.statistics.suppliers.append(self.count_puts)

    # -- what the kernel asks for --

    def begin(self) -> Place | None:
        """Where sends go in this turn; None when something about the broker needs a second look."""
        ctx, turn, made = self._ctx, self._turn, self._ctx.store.fast_writes
        made.settle()
        config = ctx.config
        if config is not self._config:
            self._configure(config)
        if self._is_closed or not ctx.is_accepting or ctx.unsaved_topics:
            return None
        seen = (ctx.topics.version, made.queue_removals)
        if seen != self._seen:
            self.count_puts()
            self.kernel.forget()
            self._seen = seen
        began, ended = turn.last_write
        if (ended - began) * 1000 > config.os_page_cache_busy_time_out_mills:
            return None
        if self._is_sync:
            turn.end_soon()
        made.keep(self._hand_over)
        waiters_max = config.send_thread_pool_queue_capacity - turn.flush_waiters
        waited_max_ms = config.wait_time_mills_in_send_queue
        return made.position, made.capacity_bytes(), made.now_ms(), waited_max_ms, waiters_max

    def _configure(self, config: BrokerConfig) -> None:
        host, port = self._ctx.host
        self._config = config
        self._is_sync = config.flush_disk_type == "SYNC_FLUSH"
        self._is_closed = (
            bool(config.start_accept_send_request_time_stamp)
            or not (config.kernel_enable or not self._is_compiled)
            or ":" in host
        )
        if not self._is_closed:
            self.kernel.configure(
                host=packed_address(host) + port.to_bytes(4, "big"),
                id_prefix=message_id((host, port), 0)[:_ID_DIGITS].encode(),
                added=encode_properties(added_properties(config)),
                answer_parts=answer_parts(config),
                is_indexing=self._is_indexing,
                is_sync=self._is_sync,
                body_max=config.max_message_size,
            )

    def topic(self, name: bytes) -> "SendTopic | PythonTopic | None":
        """The topic, when sending to it needs no second look."""
        text = name.decode()
        topic = self._ctx.topics.get(text)
        if topic is None or topic.order or topic.topic_filter_type == FILTER_MULTI_TAG:
            return None
        if text.startswith(RETRY_PREFIX) or text in SEND_FORBIDDEN_TOPICS:
            return None
        return self._make_topic(name, topic.write_queue_nums)

    def queue(self, name: bytes, queue_id: int) -> ConsumeQueue:
        """Where the units of a queue go."""
        return self._ctx.store.fast_writes.queue(name.decode(), queue_id)

    # -- what the kernel made --

    def hand_over(self) -> None:
        """Stage what the kernel keeps, if anything; in either case it begins anew then."""
        kernel = self.kernel
        if not kernel.messages:
            kernel.look_again()
            return
        messages, newest, now = kernel.messages, kernel.newest, kernel.now
        self.messages += messages
        queues = kernel.take_queues()
        records, numbers = kernel.take_records()
        entries = array("q", numbers)
        self._ctx.store.fast_writes.stage(records, newest, messages, queues, entries, now)
        if kernel.waiting:
            count = kernel.waiting_count
            self._turn.line_up(partial(self._flushed, kernel.take_waiting()), count)

    def count_puts(self) -> None:
        """Add to the statistics what was made since the last time."""
        self.hand_over()
        for hot in self.kernel.queues():
            count, stored_bytes = hot.take_counts()
            if count:
                puts = self._ctx.statistics.puts_of(hot.queue.topic)
                puts.count_of[hot.queue_id] += count
                puts.bytes_of[hot.queue_id] += stored_bytes

    def _flushed(self, waiting: list[_Waiting], is_on_disk: bool) -> None:
        if is_on_disk and self._is_compiled:
            self.kernel.release(waiting)
            return
        for connection, answers, count in waiting:
            connection.answers_made(answers if is_on_disk else self._unflushed(answers), count)

    def _unflushed(self, answers: bytes) -> bytes:
        """What is said instead when the disk did not confirm."""
        config, is_writable = self._ctx.config, self._ctx.store.writable
        said = []
        for stored in FrameSplitter().feed(answers):
            opaque = stored.opaque
            unflushed = unflushed_answer(config, stored, is_writable)
            unflushed.opaque = opaque
            said.append(unflushed.encode())
        return b"".join(said)
