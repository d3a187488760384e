"""Settings of consumers, with RocketMQ's defaults."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from core_broker.client.consumer.allocate import AllocateStrategy, averagely
from core_broker.client.consumer.process_queue import CacheLimits
from core_broker.remoting.bodies import ConsumeFromWhere, MessageModel

#: Age of the default timestamp for CONSUME_FROM_TIMESTAMP, ms before the start.
CONSUME_TIMESTAMP_AGE_MS: Final = 30 * 60 * 1000


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
