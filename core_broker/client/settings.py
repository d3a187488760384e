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

#: Response codes for a retry at another queue, as in RocketMQ 4.9; SYSTEM_BUSY is not included.
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
    """Settings of a producer."""

    #: Timeout of one send over all attempts, ms.
    send_timeout_ms: int = 3000
    #: Attempts after the first attempt.
    retry_times: int = 2
    retry_codes: frozenset[int] = RETRY_CODES
    #: Also retry after a status other than SEND_OK; retries store duplicates.
    retry_when_not_stored_ok: bool = False
    #: Avoid slow and failing brokers for a while, by RocketMQ's latency table.
    send_latency_fault_enable: bool = False
    compress_over_bytes: int = COMPRESS_OVER_BYTES
    #: LZ4 and ZSTD need consumers of 4.9.4 or later and ``pip install gantry[compression]``.
    compress_type: CompressionType = CompressionType.ZLIB
    compress_level: int = COMPRESS_LEVEL
    message_bytes_max: int = MESSAGE_BYTES_MAX
    #: Queues per broker of a topic created by the first message.
    new_topic_queue_nums: int = DEFAULT_TOPIC_QUEUE_NUMS
    #: Send to the brokers' VIP port (listen port - 2), free of pull requests.
    vip_channel: bool = False
    #: Maximum messages of ``submit`` in flight.
    in_flight_max: int = 10_000
    #: Maximum wait of ``stop`` for running sends, s.
    drain_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Settings of all consumers of a group, push and pull."""

    model: MessageModel = MessageModel.CLUSTERING
    #: Start offset in queues without a committed offset.
    consume_from: ConsumeFromWhere = ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET
    #: Timestamp for CONSUME_FROM_TIMESTAMP; None is half an hour before the start.
    consume_timestamp_ms: int | None = None
    allocate: AllocateStrategy = averagely
    pull_count: int = 32
    #: Limits of cached messages per queue; at a limit, pulling from the queue pauses.
    cache: CacheLimits = field(default_factory=CacheLimits)
    commit_interval_s: float = 5.0
    rebalance_interval_s: float = 20.0
    #: Folder of the offsets of a broadcasting consumer; None is ~/.rocketmq_offsets.
    local_offsets: Path | None = None


@dataclass(frozen=True, slots=True)
class ConsumerSettings(GroupSettings):
    """Settings of a push consumer."""

    #: Maximum concurrent calls of the listener.
    concurrency: int = 20
    #: Maximum messages in one call of the listener.
    batch_max: int = 1
    #: Timeout of a listener call, ms; after the timeout the call is cancelled and retried.
    consume_timeout_ms: int = 15 * 60 * 1000
    #: Retries of a message. -1 is 16 for a concurrent listener, and unlimited for an orderly
    #: listener: a failing message blocks the queue.
    max_reconsume_times: int = -1
    #: Pause of a queue after a failed call of an orderly listener, ms.
    suspend_current_queue_ms: int = 1000
    #: Maximum wait of ``stop`` for running listener calls, s.
    drain_timeout_s: float = 5.0


@dataclass(frozen=True, slots=True)
class LitePullSettings(GroupSettings):
    """Settings of a lite pull consumer."""

    pull_count: int = 10
    #: Maximum messages returned by one poll.
    poll_count: int = 10
    #: Default timeout of a poll, ms.
    poll_timeout_ms: int = 5000
    #: Commit consumed messages every ``commit_interval_s``; the next poll marks the messages of the
    #: previous poll as consumed.
    auto_commit: bool = True
    #: Interval of queue checks for ``on_queues_changed``, s.
    topic_check_interval_s: float = 30.0
