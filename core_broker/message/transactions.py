"""What half messages and op messages say about a transaction. Pure.

    half   TRANSACTION_CHECK_TIMES: the number of checks
    op     TAGS is "d", the body is the queue offset of the half message, in decimal; RocketMQ 5
           writes several, each followed by a comma. MOVED_TO, a property of Gantry, is the queue
           offset at which the half message was stored again without being ended; RocketMQ treats
           the old copy as ended

Compatible with RocketMQ's TransactionalMessageBridge.
"""

from collections.abc import Mapping

from core_broker.message.model import MessageExt
from core_broker.message.properties import PROPERTY_TRANSACTION_CHECK_TIMES

#: Tag of an op message.
REMOVE_TAG = "d"
PROPERTY_MOVED_TO = "MOVED_TO"
_DIGITS_MAX = 18


def ended_halves(op: MessageExt) -> list[int]:
    """Queue offsets of the half messages in an op message."""
    if op.tags != REMOVE_TAG:
        return []
    parts = op.body.split(b",")
    return [int(part) for part in parts if part.isdigit() and len(part) <= _DIGITS_MAX]


def moved_to(op: MessageExt) -> int | None:
    """MOVED_TO of an op message; None when the transaction was ended."""
    return whole_number(op.properties.get(PROPERTY_MOVED_TO))


def times_checked(properties: Mapping[str, str]) -> int:
    """Number of checks of a half message."""
    return whole_number(properties.get(PROPERTY_TRANSACTION_CHECK_TIMES)) or 0


def whole_number(text: str | None) -> int | None:
    """The number of a property; None for a missing or malformed one."""
    if text is None or not text.isascii() or not text.isdigit() or len(text) > _DIGITS_MAX:
        return None
    return int(text)
