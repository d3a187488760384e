"""Direct delivery: a consumer consumes a stored message at once and reports the result.

The broker relays the message to the consumer (309). The consumer calls its listener and answers
with the result and the text of an exception. The delivery is real: after a success the listener has
processed the message. The offsets of the group do not move.
"""

from dataclasses import dataclass
from enum import StrEnum

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import masters
from console.gateway.engine.errors import NotAllowedNow, NotFound
from console.gateway.engine.questions import command
from console.gateway.engine.session import ClusterSession
from console.gateway.groups.members import group_clients
from console.gateway.messages.stored import MessageRef, view

DIRECT_DEADLINE_MS = 16_000
REMARK_CHARS_MAX = 4_000


class ListenerResult(StrEnum):
    """The result of the listener."""

    SUCCESS = "success"
    LATER = "later"
    EXCEPTION = "exception"
    NULL = "null"
    OTHER = "other"


_LISTENER_RESULTS = {
    "CR_SUCCESS": ListenerResult.SUCCESS,
    "CR_COMMIT": ListenerResult.SUCCESS,
    "CR_LATER": ListenerResult.LATER,
    "CR_ROLLBACK": ListenerResult.LATER,
    "CR_THROW_EXCEPTION": ListenerResult.EXCEPTION,
    "CR_RETURN_NULL": ListenerResult.NULL,
}


@dataclass(frozen=True, slots=True)
class DirectResult:
    """The answer of one consumer; `remark` is the text of the listener's exception."""

    verdict: ListenerResult
    remark: str
    client: str
    took_ms: int
    msg_id: str
    died_ms: int


@command(deadline_ms=DIRECT_DEADLINE_MS)
async def deliver_message(
    session: ClusterSession, offset_msg_id: str, group: str, client: str = ""
) -> DirectResult:
    """Deliver a message to a consumer of the group: to the named client, else to any.

    Raises NotFound for an unknown message, NotAllowedNow without such an online consumer.
    """
    ref = (await session.ask(view, offset_msg_id)).value
    if ref is None:
        raise NotFound(
            format_lazy(
                _("The cluster has no message with offset message ID “{id}”."),
                id=offset_msg_id[:64],
            )
        )
    return await relay(session, ref, group, client)


async def relay(
    session: ClusterSession, ref: MessageRef, group: str, client: str = ""
) -> DirectResult:
    """Relay a message by its broker. Raises NotAllowedNow without such an online consumer."""
    members = (await session.ask(group_clients, group)).value.clients
    addrs = {each.name: each.addr for each in await masters(session)}
    # A broker relays only to consumers that are connected to this broker.
    near = next(
        (
            each
            for each in members
            if ref.broker.name in each.brokers and client in ("", each.client_id)
        ),
        None,
    )
    if near is None and client:
        raise NotAllowedNow(
            format_lazy(
                _("Client “{client}” of group “{group}” is not connected to broker {broker}."),
                client=client[:255],
                group=group,
                broker=ref.broker.name,
            )
        )
    if near is None:
        raise NotAllowedNow(
            format_lazy(_("No consumer of group “{group}” is online."), group=group),
            hint=_("Start one, or send the message again: it waits in the group's retry topic."),
        )
    answer = await session.admin.consume_message_directly(
        addrs[ref.broker.name],
        group,
        near.client_id,
        ref.message.offset_msg_id,
        ref.message.topic,
    )
    return DirectResult(
        _LISTENER_RESULTS.get(answer.consume_result or "", ListenerResult.OTHER),
        (answer.remark or "")[:REMARK_CHARS_MAX],
        near.client_id,
        max(0, answer.spent_time_mills),
        ref.message.msg_id,
        ref.message.store_timestamp,
    )
