"""Limits of protocol and store, and ports, that several packages share, each defined once.

The compiled kernel has its own copies; tests/unit/kernel/test_layouts.py compares them.
"""

from typing import Final

#: Default of the broker's maxMessageSize and the clients' limit for a body, bytes.
MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
#: NettyDecoder's default: bytes that a frame may claim after its length field.
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
#: Header of a frame, bytes. RocketMQ's longest headers have 32 KiB of properties, which JSON may
#: escape; the layout of a frame has 24 bits for the length.
HEADER_TEXT_BYTES_MAX: Final = 256 * 1024
#: Messages in one batch request. RocketMQ recommends batches up to 1 MiB, which hold so many of the
#: smallest messages of its clients; on the slow path a message takes about 9 µs of the event loop.
BATCH_MESSAGES_MAX: Final = 16_384
#: Properties and keys of all messages in a batch request on the slow path.
BATCH_PROPERTIES_MAX: Final = 131_072
BATCH_KEYS_MAX: Final = 32_768
#: Properties of a stored message, bytes: their length is a signed short in RocketMQ.
PROPERTIES_BYTES_MAX: Final = 32_767
#: Decompressed size of a body or a registration, bytes, whatever a sender claims.
DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
#: Highest TCP port.
PORT_MAX: Final = 65_535
#: Default TCP ports of the HTTP side listeners; Apache's rocketmq-exporter listens on 5557.
BROKER_HTTP_PORT: Final = 5559
NAMESRV_HTTP_PORT: Final = 5558
#: Bytes of the commit log in one replication packet. A Java slave keeps the packet with its header
#: of 12 bytes in a buffer of 4 MiB; a larger packet would never be complete.
REPLICATED_BYTES_MAX: Final = 4 * 1024 * 1024 - 12
