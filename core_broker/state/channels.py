"""A client and its connection, as entry of the producer and consumer tables.

Compatible with RocketMQ's ClientChannelInfo.
"""

from collections.abc import Hashable
from dataclasses import dataclass

#: Heartbeat timeout of a client, ms.
CHANNEL_EXPIRED_MS = 120_000
#: Time between two searches for expired clients, ms.
SCAN_INTERVAL_MS = 10_000

#: The broker's channels are connections; the tables only compare and hash channels.
Channel = Hashable


@dataclass(slots=True)
class ClientChannel:
    """One client, as described by its last heartbeat on this connection."""

    channel: Channel
    client_id: str
    language: int
    version: int
    #: Time of the last heartbeat, ms. A heartbeat without changes only updates this field.
    seen_ms: int
    #: Account that signed the last heartbeat of the slow path; None without access control, and for
    #: clients that need no signature.
    account: str | None = None
