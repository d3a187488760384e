"""The shell around the kernel's taker of sends (kernel/sends.py).

The taker calls `begin` once per iteration, and keeps records, units, index entries and answers
until the end of the iteration or until the store asks. `hand_over` then gives records, units and
index entries to the store, and answers that wait for the disk to the turn; `count_puts` gives the
counts to the statistics. The slow path (processors/send.py) takes the remaining requests, and alone
refuses requests.
"""

from array import array
from collections.abc import Sequence
from functools import partial

from core_broker.config import BrokerConfig
from core_broker.fastpath.contracts import (
    HeldAnswers,
    SendSettings,
    SendTaker,
    SendWindow,
)
from core_broker.fastpath.templates import send_template
from core_broker.kernel.queues import SendTopic
from core_broker.kernel.sends import CompiledSends
from core_broker.message.hosts import packed_address
from core_broker.message.properties import encode_properties
from core_broker.message.topics import RETRY_PREFIX, SEND_FORBIDDEN_TOPICS
from core_broker.processors.added_properties import added_properties
from core_broker.processors.context import BrokerContext
from core_broker.processors.put_answers import message_id, unconfirmed_answer
from core_broker.processors.turn import Turn
from core_broker.remoting.bodies import FILTER_MULTI_TAG
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.frames import FrameSplitter
from core_broker.store.consume_queue import ConsumeQueue

_ID_DIGITS = 16


class FastSends:
    """Common-case sends of a server."""

    def __init__(self, ctx: BrokerContext, turn: Turn) -> None:
        self.taker: SendTaker = CompiledSends(self)
        #: Messages taken since the start.
        self.messages = 0
        self._ctx = ctx
        self._turn = turn
        #: The store reads the setting once, at the start.
        self._is_indexing = ctx.config.message_index_enable
        self._config: BrokerConfig | None = None
        self._is_closed = True
        self._is_sync = False
        #: Changes of existing topics and queues at the last check of the taker's topics and queues.
        self._checked_versions = (-1, 0)
        ctx.statistics.suppliers.append(self.count_puts)

    # Called by the taker

    def begin(self) -> SendWindow | None:
        """Return the window of the iteration; None when the slow path must take all sends."""
        ctx, turn, writes = self._ctx, self._turn, self._ctx.store.fast_writes
        writes.settle()
        config = ctx.config
        if config is not self._config:
            self._configure(config)
        if self._is_closed or not ctx.is_accepting or ctx.unsaved_topics:
            return None
        if not ctx.has_enough_members():
            return None
        versions = (ctx.topics.replacements, writes.queue_removals)
        if versions != self._checked_versions:
            self.count_puts()
            self.taker.forget()
            self._checked_versions = versions
        began, ended = turn.last_write
        if (ended - began) * 1000 > config.os_page_cache_busy_time_out_mills:
            return None
        if self._is_sync:
            turn.end_soon()
        position, capacity_bytes, now_ms = writes.begin(self.hand_over)
        return (
            position,
            capacity_bytes,
            now_ms,
            config.wait_time_mills_in_send_queue,
            config.send_thread_pool_queue_capacity - turn.waiters,
        )

    def _configure(self, config: BrokerConfig) -> None:
        host, port = self._ctx.host
        self._config = config
        self._is_sync = self._turn.durability.is_awaited
        self._is_closed = (
            bool(config.start_accept_send_request_time_stamp)
            or config.enable_d_leger_commit_log
            or not config.kernel_enable
            or ":" in host
        )
        if not self._is_closed:
            self.taker.configure(
                SendSettings(
                    host=packed_address(host) + port.to_bytes(4, "big"),
                    id_prefix=message_id((host, port), 0)[:_ID_DIGITS].encode(),
                    added_properties=encode_properties(added_properties(config)),
                    answer_template=send_template(config),
                    is_indexing=self._is_indexing,
                    is_sync=self._is_sync,
                    body_bytes_max=config.max_message_size,
                )
            )

    def topic(self, name: bytes) -> SendTopic | None:
        """Return a topic; None for a topic of the slow path. Kept until `forget`."""
        text = name.decode()
        topic = self._ctx.topics.get(text)
        if topic is None or topic.order or topic.topic_filter_type == FILTER_MULTI_TAG:
            return None
        if text.startswith(RETRY_PREFIX) or text in SEND_FORBIDDEN_TOPICS:
            return None
        return SendTopic(name, topic.write_queue_nums)

    def queue(self, name: bytes, queue_id: int) -> ConsumeQueue:
        """Return a queue of the store; a missing queue is made. Kept until `forget`."""
        return self._ctx.store.fast_writes.queue(name.decode(), queue_id)

    # From the taker to the broker

    def hand_over(self) -> None:
        """Stage the taker's messages; the taker calls `begin` again before the next send."""
        taker = self.taker
        if not taker.messages:
            taker.ask_again()
            return
        messages, newest, now = taker.messages, taker.newest, taker.now
        self.messages += messages
        records, entries = taker.take_records(), taker.take_entries()
        self._ctx.store.fast_writes.stage(
            records, newest, messages, taker.enter_units, array("q", entries), now
        )
        if taker.held_count:
            count = taker.held_count
            self._turn.add_waiters(partial(self._confirmed, taker.take_held()), count)

    def count_puts(self) -> None:
        """Add the messages since the last call to the statistics."""
        self.hand_over()
        for each in self.taker.queues():
            if each.messages:
                puts = self._ctx.statistics.puts_of(each.queue.topic)
                puts.count_of[each.queue_id] += each.messages
                puts.bytes_of[each.queue_id] += each.stored_bytes
                each.forget_counts()

    def _confirmed(self, held: Sequence[HeldAnswers], code: ResponseCode) -> None:
        if code == ResponseCode.SUCCESS:
            self.taker.release(held)
            return
        for each in held:
            answers = self._unconfirmed(each.answers, code)
            each.connection.answer_frames(answers, each.answer_count)

    def _unconfirmed(self, answers: bytes, code: ResponseCode) -> bytes:
        """Return the answers for messages that disk or slaves did not confirm."""
        config, is_writable = self._ctx.config, self._ctx.store.writable
        frames = []
        for stored in FrameSplitter().feed(answers):
            opaque = stored.opaque
            unconfirmed = unconfirmed_answer(config, stored, code, is_writable)
            unconfirmed.opaque = opaque
            frames.append(unconfirmed.encode())
        return b"".join(frames)
