"""Direct delivery: a consumer consumes a stored message at once and reports the result.

The broker relays the message to the consumer (309). The consumer calls its listener and answers
with the result and the text of an exception. The delivery is real: after a success the listener has
processed the message.
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
from console.gateway.messages.stored import view
from core_broker.message.topics import dlq_topic

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
async def deliver_directly(session: ClusterSession, group: str, offset_msg_id: str) -> DirectResult:
    """Deliver a dead letter of the group to one of its consumers.

    Raises NotFound for a message that is no dead letter of the group, NotAllowedNow without an
    online consumer.
    """
    ref = (await session.ask(view, offset_msg_id)).value
    if ref is None or ref.message.topic != dlq_topic(group):
        raise NotFound(format_lazy(_("“{group}” has no such dead letter any more."), group=group))
    members = (await session.ask(group_clients, group)).value.clients
    addrs = {each.name: each.addr for each in await masters(session)}
    # A broker relays only to consumers that are connected to this broker.
    near = next((each for each in members if ref.broker.name in each.brokers), None)
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
