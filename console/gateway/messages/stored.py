"""The question of one stored message by its offset message id."""

from dataclasses import dataclass, replace

from console.gateway.brokers.listing import masters
from console.gateway.engine.answers import BrokerFailure, Partial
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.messages.masks import NO_MASK, Mask
from core_broker.errors import ClientError, ProtocolError, RequestRefused
from core_broker.message.ids import parse_offset_msg_id
from core_broker.message.model import MessageExt

#: Maximum number of queues of a topic that are read at the same time.
QUEUES_AT_ONCE_MAX = 32


@dataclass(frozen=True, slots=True)
class MessageRef:
    """A stored message and its broker. `masked`: fields of the message are replaced."""

    broker: BrokerRef
    message: MessageExt
    masked: bool = False

    def seen_through(self, mask: Mask) -> "MessageRef":
        message = mask.message(self.message)
        return self if message is self.message else replace(self, message=message, masked=True)


@question(fresh_for_ms=2_000)
async def view(
    session: ClusterSession, offset_msg_id: str, mask: Mask = NO_MASK
) -> Partial[MessageRef | None]:
    """The message with this offset message id; None when no reachable broker has the message."""
    ref, failures = await message_at(session, offset_msg_id)
    return Partial(ref and ref.seen_through(mask), failures)


async def message_at(
    session: ClusterSession, offset_msg_id: str
) -> tuple[MessageRef | None, tuple[BrokerFailure, ...]]:
    """Return the record of an offset message id, and the failures of brokers.

    The id carries the address of its broker at store time. The address only decides which broker
    is asked first: the console never connects to an address from an id, and asks all brokers in
    case the broker has a new address.
    """
    try:
        host, port, offset_physical = parse_offset_msg_id(offset_msg_id)
    except ClientError:
        return None, ()

    async def read(broker: BrokerRef) -> MessageExt | None:
        try:
            message = await session.admin.view_message(broker.addr, offset_physical)
        except (RequestRefused, ProtocolError):
            return None  # no record begins at this offset
        return message if message.offset_msg_id == offset_msg_id.upper() else None

    refs = await masters(session)
    named = [each for each in refs if each.addr == f"{host}:{port}"]
    failures: tuple[BrokerFailure, ...] = ()
    for brokers in (named, [each for each in refs if each not in named]):
        found, failed = await session.fan_out(brokers, read, one_must_answer=False)
        failures += failed
        for broker, message in found.items():
            if message is not None:
                return MessageRef(broker, message), ()
    return None, failures
