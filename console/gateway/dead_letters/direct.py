"""Direct delivery of a dead letter to a consumer of its group."""

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import command
from console.gateway.engine.session import ClusterSession
from console.gateway.messages.direct import DIRECT_DEADLINE_MS, DirectResult, relay
from console.gateway.messages.stored import view
from core_broker.message.topics import dlq_topic


@command(deadline_ms=DIRECT_DEADLINE_MS)
async def deliver_directly(session: ClusterSession, group: str, offset_msg_id: str) -> DirectResult:
    """Deliver a dead letter of the group to one of its consumers.

    Raises NotFound for a message that is no dead letter of the group, NotAllowedNow without an
    online consumer.
    """
    ref = (await session.ask(view, offset_msg_id)).value
    if ref is None or ref.message.topic != dlq_topic(group):
        raise NotFound(format_lazy(_("“{group}” has no such dead letter any more."), group=group))
    return await relay(session, ref, group)
