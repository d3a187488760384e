"""Limits of protocol and store that several packages share, each defined once.

The compiled kernel has its own copies; tests/unit/kernel/test_layouts.py compares them.
"""

from typing import Final

#: Default of the broker's maxMessageSize and the clients' limit for a body, bytes.
MESSAGE_BYTES_MAX: Final = 4 * 1024 * 1024
#: NettyDecoder's default: bytes that a frame may claim after its length field.
FRAME_BYTES_MAX: Final = 16 * 1024 * 1024
#: Messages in one batch request.
BATCH_MESSAGES_MAX: Final = 32_768
#: Properties of a stored message, bytes: their length is a signed short in RocketMQ.
PROPERTIES_BYTES_MAX: Final = 32_767
#: Decompressed size of a body or a registration, bytes, whatever a sender claims.
DECOMPRESSED_BYTES_MAX: Final = 64 * 1024 * 1024
#: Highest TCP port.
PORT_MAX: Final = 65_535
