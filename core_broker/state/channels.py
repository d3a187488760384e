"""A client on its connection, as producer and consumer tables know it.

Compatible with RocketMQ's ClientChannelInfo.
"""

from collections.abc import Hashable
from dataclasses import dataclass

#: A client that sends no heartbeat for this long is gone.
CHANNEL_EXPIRED_MS = 120_000
SCAN_INTERVAL_MS = 10_000

#: The tables only compare channels; the broker puts its connections in.
Channel = Hashable


@dataclass(slots=True)
class ClientChannel:
    """One client, as its last heartbeat on this connection described it."""

    channel: Channel
    client_id: str
    language: int
    version: int
    #: When the last heartbeat came; those that say nothing new only set this.
    seen_ms: int
