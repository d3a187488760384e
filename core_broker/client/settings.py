"""Settings of producers and consumers, with RocketMQ's defaults."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core_broker.client.consumer.allocate import AllocateStrategy, averagely
from core_broker.client.consumer.process_queue import CacheLimits
from core_broker.client.sending import (
    COMPRESS_OVER_BYTES,
    DEFAULT_TOPIC_QUEUE_NUMS,
    MESSAGE_BYTES_MAX,
    CompressionType,
)
from core_broker.message.compression import COMPRESS_LEVEL
from core_broker.remoting.bodies import ConsumeFromWhere, MessageModel
from core_broker.remoting.codes import ResponseCode

#: Refusals after which RocketMQ 4.9 tries another queue; SYSTEM_BUSY is not one of them.
RETRY_CODES: Final = frozenset(
    {
        ResponseCode.TOPIC_NOT_EXIST,
        ResponseCode.SERVICE_NOT_AVAILABLE,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.NO_PERMISSION,
        ResponseCode.NO_BUYER_ID,
        ResponseCode.NOT_IN_CURRENT_UNIT,
    }
)

CONSUME_TIMESTAMP_AGE_MS: Final = 30 * 60 * 1000


@dataclass(frozen=True, slots=True)
class ProducerSettings:
    """How a producer sends."""

    #: For all tries of one message together.
    send_timeout_ms: int = 3000
    #: Tries after the first one.
    retry_times: int = 2
    retry_codes: frozenset[int] = RETRY_CODES
    #: Also try another broker when a flush or replica did not confirm; this makes duplicates.
    retry_when_not_stored_ok: bool = False
    #: Avoid brokers for a while that were slow or failed, by RocketMQ's table of times.
    send_latency_fault_enable: bool = False
    compress_over_bytes: int = COMPRESS_OVER_BYTES
    #: LZ4 and ZSTD need consumers of 4.9.4 or later and ``pip install gantry[compression]``.
    compress_type: CompressionType = CompressionType.ZLIB
    compress_level: int = COMPRESS_LEVEL
    message_bytes_max: int = MESSAGE_BYTES_MAX
    #: Queues to ask for when the first message creates its topic.
    new_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS
    #: Send to the port below the brokers' own, where no consumer is in the way.
    vip_channel: bool = False
    #: Messages given to ``submit`` that have no outcome yet.
    in_flight_max: int = 10_000
    #: How long ``stop`` waits for sends that are running.
    drain_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """What all members of a group have in common, however they consume."""

    model: MessageModel = MessageModel.CLUSTERING
    #: Where a group starts in a queue that it has no offset for.
    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    #: For CONSUME_FROM_TIMESTAMP; None is half an hour before the start.
    consume_timestamp_ms: int | None = None
    allocate: AllocateStrategy = averagely
    pull_count: int = 32
    #: What each queue may hold before its pulling pauses.
    cache: CacheLimits = field(default_factory=CacheLimits)
    commit_interval_s: float = 5.0
    rebalance_interval_s: float = 20.0
    #: Folder of the offsets of a broadcasting consumer; None is ~/.rocketmq_offsets.
    local_offsets: Path | None = None


@dataclass(frozen=True, slots=True)
class ConsumerSettings(GroupSettings):
    """How a push consumer consumes."""

    #: Calls of the listener at the same time.
    concurrency: int = 20
    #: Messages in one call of the listener.
    batch_max: int = 1
    #: A listener that takes longer is cancelled and its messages are retried.
    consume_timeout_ms: int = 15 * 60 * 1000
    #: Tries after the first one; -1 is 16 for a concurrent listener and no end for an orderly one,
    #: where a message that does not succeed holds up its queue.
    max_reconsume_times: int = -1
    #: How long a queue pauses after an orderly listener did not succeed.
    suspend_current_queue_ms: int = 1000
    #: How long ``stop`` waits for listeners that are running.
    drain_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class LitePullSettings(GroupSettings):
    """How a lite pull consumer pulls ahead and commits."""

    pull_count: int = 10
    #: Messages that one poll gives at most.
    poll_count: int = 10
    #: How long a poll waits when it is not told.
    poll_timeout_ms: int = 5000
    #: Commit what was polled every ``commit_interval_s``, once the next poll has begun.
    auto_commit: bool = True
    #: How often queues are looked at for ``on_queues_changed``.
    topic_check_interval_s: float = 30.0
