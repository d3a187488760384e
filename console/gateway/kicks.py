"""Kicks of a client: what a kick would move, the command, and whether the client came back.

A Gantry broker closes the connections of a client (60006). RocketMQ's brokers cannot. The client
may reconnect at once: a kick releases its queues, and bans nobody.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import broker_refs
from console.gateway.clients import ConnectedClient, all_clients, clients_with_id
from console.gateway.engine.answers import Partial, now_ms
from console.gateway.engine.errors import NotAllowedNow, NotFound
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.members import BROADCASTING, group_clients, queue_owners
from console.gateway.inventory import INVENTORY_DEADLINE_MS, offers
from core_broker.allocation import averagely, sorted_client_ids, sorted_queues
from core_broker.client.admin.inventory import offered_codes
from core_broker.remoting.bodies import MessageQueue
from core_broker.remoting.codes import RequestCode

#: Maximum groups of a preview: each needs a request to every member.
GROUPS_PREVIEWED_MAX = 8
#: Maximum length of a reason, characters: the brokers' bound.
REASON_CHARS_MAX = 200
KICK_DEADLINE_MS = 12_000


@dataclass(frozen=True, slots=True)
class QueueMove:
    """A queue of the client and the member that gets the queue; None: no member is left."""

    group: str
    topic: str
    broker: str
    queue_id: int
    heir: str | None


@dataclass(frozen=True, slots=True)
class KickPlan:
    """What a kick would do. `moves` covers `groups` without `unknown`, whose members keep silent.

    `brokers` can kick, `unable` cannot. `left_out` counts groups without a preview.
    """

    clients: tuple[ConnectedClient, ...]
    #: The requested group; empty: every group of the client.
    group: str
    groups: tuple[str, ...]
    moves: tuple[QueueMove, ...]
    unknown: tuple[str, ...]
    left_out: int
    brokers: tuple[str, ...]
    unable: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class BrokerKick:
    """The result of a kick on one broker; `error` is None after success."""

    broker: str
    addr: str
    closed: tuple[str, ...]
    error: str | None


@dataclass(frozen=True, slots=True)
class KickResult:
    brokers: tuple[BrokerKick, ...]
    kicked_ms: int


@question(fresh_for_ms=1_000, deadline_ms=INVENTORY_DEADLINE_MS)
async def kick_plan(session: ClusterSession, client_id: str, group: str = "") -> Partial[KickPlan]:
    """The plan for a connected client. Raises NotFound for another one, or a foreign group."""
    found = await session.ask(clients_with_id, client_id)
    groups = sorted({name for client in found.value for name in client.groups})
    if group and group not in groups:
        raise NotFound(
            format_lazy(
                _("No client “{client}” of group “{group}” is connected."),
                client=client_id,
                group=group,
            )
        )
    chosen = (group,) if group else tuple(groups)
    moves: list[QueueMove] = []
    unknown: list[str] = []
    for name in chosen[:GROUPS_PREVIEWED_MAX]:
        part = await _moves(session, client_id, name)
        if part is None:
            unknown.append(name)
        else:
            moves += part
    codes = {ref.name: known for ref, known in (await session.ask(offers)).value.items()}
    brokers = sorted({name for client in found.value for name in client.brokers})
    able = tuple(name for name in brokers if RequestCode.KICK_CLIENT in codes.get(name, ()))
    return Partial(
        KickPlan(
            found.value,
            group,
            chosen,
            tuple(moves),
            tuple(unknown),
            max(0, len(chosen) - GROUPS_PREVIEWED_MAX),
            able,
            tuple(name for name in brokers if name not in able),
        ),
        found.failures,
    )


async def _moves(session: ClusterSession, client_id: str, group: str) -> list[QueueMove] | None:
    """Return the client's queues with the members that get them; None if the client reports none.

    Averagely is the default strategy of RocketMQ's clients; a client's setting is not readable.
    """
    members = (await session.ask(group_clients, group)).value
    if members.message_model == BROADCASTING:
        return []
    owners: Mapping[tuple[str, str, int], str] = (await session.ask(queue_owners, group)).value
    own = [key for key, owner in owners.items() if owner == client_id]
    if not own:
        return None
    rest = sorted_client_ids({each.client_id for each in members.clients} - {client_id})
    heirs: dict[MessageQueue, str] = {}
    for topic in {topic for topic, _broker, _queue in own}:
        queues = sorted_queues(MessageQueue(*key) for key in owners if key[0] == topic)
        heirs |= {queue: one for one in rest for queue in averagely(one, queues, rest)}
    return [QueueMove(group, *key, heirs.get(MessageQueue(*key))) for key in sorted(own)]


@command(deadline_ms=KICK_DEADLINE_MS)
async def kick_client(
    session: ClusterSession, client_id: str, reason: str, group: str = ""
) -> KickResult:
    """Kick the client from every Gantry broker, slaves too; one result per broker with the client.

    Raises NotAllowedNow when no broker can kick, NotFound when none has the client.
    """
    refs = await broker_refs(session)

    async def kick(ref: BrokerRef) -> tuple[bool, tuple[str, ...]]:
        codes = offered_codes(await session.admin.runtime_info(ref.addr))
        if RequestCode.KICK_CLIENT not in codes:
            return False, ()
        clients = (await session.admin.all_clients(ref.addr)).clients
        if not any(
            client.client_id == client_id and (not group or group in client.consumer_groups)
            for client in clients
        ):
            return True, ()
        body = await session.admin.kick_client(ref.addr, client_id, reason, group or None)
        return True, tuple(body.addrs)

    found, failures = await session.fan_out(refs, kick)
    done = tuple(
        BrokerKick(ref.name, ref.addr, closed, None)
        for ref, (_able, closed) in found.items()
        if closed
    )
    failed = tuple(BrokerKick(one.broker, one.addr, (), one.reason) for one in failures)
    if not done and not failed:
        if not any(able for able, _closed in found.values()):
            raise NotAllowedNow(
                _("No broker of this cluster can kick clients."),
                hint=_("Apache RocketMQ has no such request; stop the client instead."),
            )
        raise NotFound(format_lazy(_("No client “{client}” is connected."), client=client_id))
    return KickResult((*done, *failed), now_ms())


@question(fresh_for_ms=500, deadline_ms=INVENTORY_DEADLINE_MS)
async def reconnected_ms(
    session: ClusterSession, client_id: str, kicked_ms: int, group: str = ""
) -> Partial[int | None]:
    """The time of a heartbeat after a kick; None while the client is gone."""
    answer = await session.ask(all_clients)
    beats = [
        client.heartbeat_ms
        for client in answer.value.clients
        if client.client_id == client_id and (not group or group in client.groups)
    ]
    later = [beat for beat in beats if beat is not None and beat >= kicked_ms]
    return Partial(min(later, default=None), answer.failures)
