"""Members and queues of a group for the diagnosis: who subscribes to what, and who owns a queue.

A broker keeps one subscription per group, the newest. Only the clients themselves know their own
subscriptions and queues: each client of a group is asked over a broker (307), MEMBERS_ASKED_MAX at
most. Clients before RocketMQ 3.1 and some clients in other languages do not answer.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from console.gateway.brokers.listing import masters
from console.gateway.engine.answers import Partial, merge_failures, now_ms
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import ClusterSession
from console.gateway.groups.members import OWNER_WAIT_S, Client, group_clients
from console.gateway.groups.progress import GroupQueue, queue_progress
from console.gateway.metrics import ask_each
from core_broker.errors import GantryError
from core_broker.message.topics import RETRY_PREFIX
from core_broker.remoting.bodies import SubscriptionData

#: Maximum number of members of one group that are asked for subscriptions and queues.
MEMBERS_ASKED_MAX = 16
MEMBERS_DEADLINE_MS = 12_000
TAG = "TAG"

#: Topic, kind of expression (TAG, SQL92) and expression, in a form that is equal for equal filters.
Subscription = tuple[str, str, str]
#: Topic, broker and queue id.
QueueKey = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Member:
    """A connected member of a group, without the group's retry topic.

    `subscriptions` and `queues` are None for a client that did not answer.
    """

    client_id: str
    subscriptions: frozenset[Subscription] | None
    queues: frozenset[QueueKey] | None


@dataclass(frozen=True, slots=True)
class GroupDiagnosis:
    """A group at `taken_ms`; `not_asked` counts the members beyond MEMBERS_ASKED_MAX."""

    group: str
    taken_ms: int
    members: tuple[Member, ...]
    not_asked: int
    broadcasting: bool
    queues: tuple[GroupQueue, ...]


@question(fresh_for_ms=5_000, deadline_ms=MEMBERS_DEADLINE_MS)
async def group_diagnoses(
    session: ClusterSession, groups: tuple[str, ...]
) -> Partial[Mapping[str, GroupDiagnosis]]:
    """The diagnoses of the named groups; groups whose brokers do not answer are left out."""
    return await ask_each(session, _diagnosis, groups)


@question(fresh_for_ms=5_000, deadline_ms=MEMBERS_DEADLINE_MS)
async def _diagnosis(session: ClusterSession, group: str) -> Partial[GroupDiagnosis]:
    clients = await session.ask(group_clients, group)
    addrs = {ref.name: ref.addr for ref in await masters(session)}
    asked = clients.value.clients[:MEMBERS_ASKED_MAX]
    try:
        progress = await session.ask(queue_progress, group)
        queues, failures = progress.value, progress.failures
    except NotFound:  # the group was deleted meanwhile, or has no configuration
        queues, failures = (), ()
    taken_ms = now_ms()
    members = await asyncio.gather(
        *(_member(session, group, client, addrs[client.brokers[0]]) for client in asked)
    )
    return Partial(
        GroupDiagnosis(
            group,
            taken_ms,
            tuple(members),
            len(clients.value.clients) - len(asked),
            clients.value.broadcasting,
            queues,
        ),
        merge_failures(clients.failures, failures),
    )


async def _member(session: ClusterSession, group: str, client: Client, addr: str) -> Member:
    try:
        async with asyncio.timeout(OWNER_WAIT_S):
            info = await session.admin.consumer_running_info(addr, group, client.client_id)
    except (TimeoutError, GantryError):
        return Member(client.client_id, None, None)
    own = [each for each in info.subscription_set if not each.topic.startswith(RETRY_PREFIX)]
    return Member(
        client.client_id,
        frozenset(map(subscription_of, own)),
        frozenset(
            (queue.topic, queue.broker_name, queue.queue_id)
            for queue in info.mq_table
            if not queue.topic.startswith(RETRY_PREFIX)
        ),
    )


def subscription_of(data: SubscriptionData) -> Subscription:
    """Return the filter in a comparable form: tags in any order, with any blanks, are equal."""
    text = data.sub_string.strip()
    if data.expression_type in {"", TAG}:
        tags = sorted({tag.strip() for tag in text.split("||")} - {""})
        return data.topic, TAG, " || ".join(tags) or "*"
    return data.topic, data.expression_type, text
