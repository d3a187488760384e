"""Queue selectors: choose the queue of a message by an argument, to keep related messages in order.

A selector gets the topic's queues, the message, and the caller's argument. Compatible with
RocketMQ's MessageQueueSelector and its implementations. Pure except for ``by_random``.
"""

import random
from collections.abc import Callable, Collection, Sequence

from core_broker.errors import ClientError
from core_broker.message.hashing import java_string_hash
from core_broker.message.model import Message
from core_broker.remoting.bodies import MessageQueue

QueueSelector = Callable[[Sequence[MessageQueue], Message, object], MessageQueue]

_INT_BITS, _LONG_BITS = 32, 64


def by_hash(queues: Sequence[MessageQueue], _message: Message, argument: object) -> MessageQueue:
    """The queue by the hash of a text or number; Java producers choose an identical queue."""
    return queues[abs(_java_hash(argument)) % len(queues)]


def by_random(queues: Sequence[MessageQueue], _message: Message, _argument: object) -> MessageQueue:
    """A random queue."""
    return random.choice(queues)


def by_machine_room(rooms: Collection[str]) -> QueueSelector:
    """A random queue of the brokers named ``room@name`` in the given machine rooms."""

    def select(
        queues: Sequence[MessageQueue], _message: Message, _argument: object
    ) -> MessageQueue:
        room_queues = [queue for queue in queues if queue.broker_name.partition("@")[0] in rooms]
        if not room_queues:
            raise ClientError(f"No queue is in the machine rooms {', '.join(sorted(rooms))}.")
        return random.choice(room_queues)

    return select


def _java_hash(argument: object) -> int:
    """Java's hashCode() of a sharding key: String, Integer, Long, Boolean."""
    if isinstance(argument, str):
        return java_string_hash(argument)
    if isinstance(argument, bool):
        return 1231 if argument else 1237
    if isinstance(argument, int):
        if -(1 << (_INT_BITS - 1)) <= argument < 1 << (_INT_BITS - 1):
            return argument
        if -(1 << (_LONG_BITS - 1)) <= argument < 1 << (_LONG_BITS - 1):
            folded = (argument ^ ((argument & ((1 << _LONG_BITS) - 1)) >> _INT_BITS)) & 0xFFFFFFFF
            return folded - (1 << _INT_BITS) if folded >> (_INT_BITS - 1) else folded
    raise ClientError(f"A sharding key must be a text or a 64-bit number, not {argument!r}.")
