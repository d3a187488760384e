"""Settings of producers, with RocketMQ's defaults."""

from dataclasses import dataclass
from typing import Final

from core_broker.client.sending import (
    COMPRESS_OVER_BYTES,
    DEFAULT_TOPIC_QUEUE_NUMS,
    CompressionType,
)
from core_broker.limits import MESSAGE_BYTES_MAX
from core_broker.message.compression import COMPRESS_LEVEL
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
