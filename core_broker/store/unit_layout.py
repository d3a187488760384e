"""The layout of a consume queue's unit.

    8  physical offset    4  size of the record    8  tags code

A unit counts when its offset is >= 0 and its size > 0. Blank units, of size 2^31-1, stand where a
queue begins in the middle of a file: (0, 2^31-1, 0). Compatible with RocketMQ's ConsumeQueue.
"""

from core_broker.message.layout import Layout

UNIT_LAYOUT = Layout(("physical_offset", "q"), ("size", "i"), ("tags_code", "q"))
UNIT = UNIT_LAYOUT.struct
UNIT_BYTES = UNIT_LAYOUT.size
SIZE_AT = UNIT_LAYOUT.at("size")
#: Size in a unit that stands for no message.
BLANK_SIZE = 2**31 - 1
#: Prefix of the topics of RocketMQ 5's light queues, whose units point to messages of other topics.
LIGHT_QUEUE_PREFIX = "%LMQ%"
#: Highest tags code that is an address in consumequeue_ext (RocketMQ's ConsumeQueueExt).
EXT_ADDRESS_MAX = -(2**31) - 1
