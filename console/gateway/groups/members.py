"""Questions about the members of a group: connections, subscriptions, queue ownership."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import ask_masters, masters
from console.gateway.engine.answers import Answer, BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import GatewayError, NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.errors import GantryError, RequestRefused
from core_broker.remoting.bodies import ConsumerConnection, ConsumerRunningInfo, SubscriptionData
from core_broker.remoting.codes import ResponseCode

#: Timeout of a request that the broker relays to a client, seconds; a page waits for the slowest.
OWNER_WAIT_S = 1.5
OWNERS_ASKED_MAX = 32
RUNNING_DEADLINE_MS = 14_000
VERSION_4_SNAPSHOT = 212
BROADCASTING = "BROADCASTING"


@dataclass(frozen=True, slots=True)
class Client:
    """A connected consumer and the brokers of its connections."""

    client_id: str
    addr: str
    language: str
    version: str
    brokers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupClients:
    """The current members of a group. Terms are RocketMQ's; None without members.

    `unseen_topics` counts the subscriptions of topics whose names the reader does not see.
    """

    clients: tuple[Client, ...]
    subscriptions: tuple[SubscriptionData, ...]
    consume_type: str | None
    message_model: str | None
    consume_from_where: str | None
    unseen_topics: int = 0

    @property
    def online(self) -> bool:
        return bool(self.clients)

    @property
    def broadcasting(self) -> bool:
        return self.message_model == BROADCASTING


@question(fresh_for_ms=2_000)
async def group_clients(session: ClusterSession, group: str) -> Partial[GroupClients]:
    """The members of a group, merged over all brokers."""
    found, failures = await ask_masters(
        session, lambda ref: _connections(session, ref, group), keep=("connections", group)
    )
    return Partial(merge_connections(found), failures)


@question(fresh_for_ms=2_000)
async def clients_of(
    session: ClusterSession, groups: tuple[str, ...]
) -> Partial[Mapping[str, GroupClients]]:
    """The members of several groups, for one page."""
    answers = await asyncio.gather(
        *(session.ask(group_clients, group) for group in groups), return_exceptions=True
    )
    clients: dict[str, GroupClients] = {}
    failures: list[tuple[BrokerFailure, ...]] = []
    for group, answer in zip(groups, answers, strict=True):
        if isinstance(answer, Answer):
            clients[group] = answer.value
            failures.append(answer.failures)
        elif isinstance(answer, GatewayError):
            failures.append(answer.failures)
        else:
            raise answer
    return Partial(clients, merge_failures(*failures))


@question(fresh_for_ms=3_000)
async def queue_owners(
    session: ClusterSession, group: str
) -> Partial[Mapping[tuple[str, str, int], str]]:
    """The owner of each queue, from the clients that answer within OWNER_WAIT_S."""
    members = (await session.ask(group_clients, group)).value.clients[:OWNERS_ASKED_MAX]
    addrs = {ref.name: ref.addr for ref in await masters(session)}

    async def held(client: Client) -> dict[tuple[str, str, int], str]:
        try:
            async with asyncio.timeout(OWNER_WAIT_S):
                info = await session.admin.consumer_running_info(
                    addrs[client.brokers[0]], group, client.client_id
                )
        except (TimeoutError, GantryError):
            return {}  # older clients do not support this request: owners stay unknown
        return {
            (queue.topic, queue.broker_name, queue.queue_id): client.client_id
            for queue in info.mq_table
        }

    owners: dict[tuple[str, str, int], str] = {}
    for part in await asyncio.gather(*(held(client) for client in members)):
        owners.update(part)
    return Partial(owners)


@question(fresh_for_ms=1_000, deadline_ms=RUNNING_DEADLINE_MS)
async def running_info(
    session: ClusterSession, group: str, client_id: str, with_stack: bool = False
) -> Partial[tuple[Client, ConsumerRunningInfo]]:
    """The running information of one consumer (307), relayed by a broker."""
    members = (await session.ask(group_clients, group)).value.clients
    client = next((member for member in members if member.client_id == client_id), None)
    if client is None:
        raise NotFound(
            format_lazy(
                _("No client “{client}” of group “{group}” is connected."),
                client=client_id,
                group=group,
            )
        )
    addrs = {ref.name: ref.addr for ref in await masters(session)}
    info = await session.admin.consumer_running_info(
        addrs[client.brokers[0]], group, client_id, with_stack
    )
    return Partial((client, info))


async def _connections(
    session: ClusterSession, ref: BrokerRef, group: str
) -> ConsumerConnection | None:
    """Return the group's connections on one broker; None without connections."""
    try:
        return await session.admin.consumer_connections(ref.addr, group)
    except RequestRefused as refusal:
        if refusal.code == ResponseCode.CONSUMER_NOT_ONLINE:
            return None
        raise


def merge_connections(found: Mapping[BrokerRef, ConsumerConnection | None]) -> GroupClients:
    """Merge connections by client: one client connects to several brokers."""
    brokers: dict[str, list[str]] = {}
    clients: dict[str, Client] = {}
    subscriptions: dict[str, SubscriptionData] = {}
    seen: ConsumerConnection | None = None
    for ref, connection in found.items():
        if connection is None:
            continue
        seen = seen or connection
        subscriptions.update(connection.subscription_table)
        for member in connection.connection_set:
            brokers.setdefault(member.client_id, []).append(ref.name)
            clients[member.client_id] = Client(
                member.client_id,
                member.client_addr,
                member.language,
                version_text(member.version),
                tuple(brokers[member.client_id]),
            )
    return GroupClients(
        clients=tuple(clients[client_id] for client_id in sorted(clients)),
        subscriptions=tuple(subscriptions[topic] for topic in sorted(subscriptions)),
        consume_type=seen.consume_type if seen else None,
        message_model=seen.message_model if seen else None,
        consume_from_where=seen.consume_from_where if seen else None,
    )


def version_text(number: int) -> str:
    """Return the release for the version number of a client: 409 → "4.9.8".

    RocketMQ numbers its releases in order, each after its snapshot, ten patches to a minor and
    ten minors to a major version, with 4.0.0 as 213. Before that the order was less regular.
    """
    index, is_release = divmod(number - VERSION_4_SNAPSHOT, 2)
    if index < 0:
        return "3.x"
    minor, patch = divmod(index, 10)
    major, minor = divmod(minor, 10)
    return f"{4 + major}.{minor}.{patch}{'' if is_release else '-SNAPSHOT'}"
