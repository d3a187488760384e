"""Headers of a client's sends and pulls, with defaults for most fields."""

import time
from typing import Any

from core_broker.remoting.headers import PullMessageRequestHeader, SendMessageRequestHeaderV2


def send_header(topic: str, properties: str = "", **fields: Any) -> SendMessageRequestHeaderV2:
    """The header of a message to queue 0."""
    defaults: dict[str, Any] = {
        "producer_group": "PG",
        "default_topic": "TBW102",
        "default_topic_queue_nums": 4,
        "queue_id": 0,
        "sys_flag": 0,
        "born_timestamp": time.time_ns() // 1_000_000,
        "flag": 0,
    }
    return SendMessageRequestHeaderV2(topic=topic, properties=properties, **defaults | fields)


def pull_header(topic: str, offset: int = 0, **fields: Any) -> PullMessageRequestHeader:
    """The header of a pull from queue 0, with a subscription and without holding."""
    defaults: dict[str, Any] = {
        "consumer_group": "CG",
        "queue_id": 0,
        "max_msg_nums": 32,
        "sys_flag": 4,
        "commit_offset": 0,
        "suspend_timeout_millis": 15_000,
        "sub_version": 0,
        "subscription": "*",
    }
    return PullMessageRequestHeader(topic=topic, queue_offset=offset, **defaults | fields)
