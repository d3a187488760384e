"""Questions about all clients of a cluster, consumers and producers, whoever they work for.

Brokers of Gantry tell of every connection. Others tell of all their producers (328), and of the
consumers of one group at a time: of the first SCAN_MAX groups they are asked, `left_out` counts the
rest. They do not tell when a consumer's last heartbeat came, so that is None.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import masters
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import NotThere
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.listing import group_configs
from console.gateway.groups.members import group_clients, version_text
from console.gateway.inventory import INVENTORY_DEADLINE_MS, client_inventory
from console.gateway.metrics import SCAN_MAX, ask_each
from core_broker.remoting.bodies import ProducerInfo

#: How clients speak with brokers of RocketMQ, where nothing else is announced.
REMOTING = "remoting"


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A client as one or several brokers see it. `groups` are the groups it consumes for, each with
    the topics that it subscribes to; `producer_groups` those it produces for."""

    client_id: str
    addr: str
    protocol: str
    language: str
    version: str
    groups: Mapping[str, tuple[str, ...]]
    producer_groups: tuple[str, ...]
    brokers: tuple[str, ...]
    heartbeat_ms: int | None

    @property
    def name(self) -> str:
        """Tells clients apart that have the same id on different machines."""
        return f"{self.client_id} {self.host}"

    @property
    def host(self) -> str:
        return self.addr.rpartition(":")[0]

    @property
    def topics(self) -> tuple[str, ...]:
        return tuple(sorted({topic for topics in self.groups.values() for topic in topics}))

    @property
    def roles(self) -> tuple[str, ...]:
        roles = (("consumer", self.groups), ("producer", self.producer_groups))
        return tuple(role for role, groups in roles if groups)


@dataclass(frozen=True, slots=True)
class ProducerGroup:
    """A group that clients produce for. `heartbeat_ms` is the latest of its members."""

    name: str
    clients: int
    languages: tuple[str, ...]
    versions: tuple[str, ...]
    brokers: tuple[str, ...]
    heartbeat_ms: int | None


@dataclass(frozen=True, slots=True)
class AllClients:
    """Everybody who is connected; `left_out` consumer groups were not asked about."""

    clients: tuple[ConnectedClient, ...]
    left_out: int


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def all_clients(session: ClusterSession) -> Partial[AllClients]:
    """Every connected client, in order of its id."""
    told = await session.ask(client_inventory)
    found = [
        ConnectedClient(
            client.client_id,
            client.client_addr,
            client.protocol,
            client.language,
            version_text(client.version),
            {group: tuple(topics) for group, topics in client.consumer_groups.items()},
            tuple(client.producer_groups),
            (ref.name,),
            client.last_heartbeat_timestamp,
        )
        for ref, body in told.value.items()
        for client in body.clients
    ]
    others = [ref for ref in await masters(session) if ref not in told.value]
    producers, producer_failures = await session.fan_out(
        others, lambda ref: session.admin.all_producers(ref.addr), one_must_answer=False
    )
    found += (_producer(ref, group, one) for ref, group, one in _each_producer(producers))
    consumers, left_out, failures = await _consumers(session, others)
    return Partial(
        AllClients(merge_clients([*found, *consumers]), left_out),
        merge_failures(told.failures, producer_failures, failures),
    )


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS)
async def clients_with_id(
    session: ClusterSession, client_id: str
) -> Partial[tuple[ConnectedClient, ...]]:
    """The clients with this id, one for each machine it is connected from."""
    answer = await session.ask(all_clients)
    found = tuple(client for client in answer.value.clients if client.client_id == client_id)
    if not found:
        raise NotThere(
            format_lazy(_("No client “{client}” is connected."), client=client_id),
            hint=_("Brokers drop a client when its connection ends."),
            failures=answer.failures,
        )
    return Partial(found, answer.failures)


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS)
async def producer_groups(session: ClusterSession) -> Partial[tuple[ProducerGroup, ...]]:
    """The groups that somebody produces for, in order of name."""
    answer = await session.ask(all_clients)
    members: dict[str, list[ConnectedClient]] = {}
    for client in answer.value.clients:
        for group in client.producer_groups:
            members.setdefault(group, []).append(client)
    return Partial(
        tuple(_producer_group(name, members[name]) for name in sorted(members)), answer.failures
    )


def _producer_group(name: str, members: list[ConnectedClient]) -> ProducerGroup:
    beats = [client.heartbeat_ms for client in members if client.heartbeat_ms is not None]
    return ProducerGroup(
        name,
        len(members),
        tuple(sorted({client.language for client in members})),
        tuple(sorted({client.version for client in members})),
        tuple(sorted({broker for client in members for broker in client.brokers})),
        max(beats, default=None),
    )


def _each_producer(
    tables: Mapping[BrokerRef, Mapping[str, list[ProducerInfo]]],
) -> Iterable[tuple[BrokerRef, str, ProducerInfo]]:
    for ref, table in tables.items():
        for group, members in table.items():
            for one in members:
                yield ref, group, one


def _producer(ref: BrokerRef, group: str, told: ProducerInfo) -> ConnectedClient:
    return ConnectedClient(
        told.client_id,
        told.remote_ip.lstrip("/"),
        REMOTING,
        told.language,
        version_text(told.version),
        {},
        (group,),
        (ref.name,),
        told.last_update_timestamp if told.last_update_timestamp > 0 else None,
    )


async def _consumers(
    session: ClusterSession, refs: list[BrokerRef]
) -> tuple[list[ConnectedClient], int, tuple[BrokerFailure, ...]]:
    """The consumers of these brokers' groups, how many groups were left out, who did not answer."""
    configs = (await session.ask(group_configs)).value
    groups = sorted({group for ref in refs for group in configs.get(ref, ())})
    answer = await ask_each(session, group_clients, groups[:SCAN_MAX])
    found = [
        ConnectedClient(
            client.client_id,
            client.addr,
            REMOTING,
            client.language,
            client.version,
            {group: tuple(each.topic for each in members.subscriptions)},
            (),
            client.brokers,
            None,
        )
        for group, members in answer.value.items()
        for client in members.clients
    ]
    return found, max(0, len(groups) - SCAN_MAX), answer.failures


def merge_clients(clients: Iterable[ConnectedClient]) -> tuple[ConnectedClient, ...]:
    """Each client once, with all that its connections told."""
    by_name: dict[str, list[ConnectedClient]] = {}
    for client in clients:
        by_name.setdefault(client.name, []).append(client)
    return tuple(_merged(by_name[name]) for name in sorted(by_name))


def _merged(parts: list[ConnectedClient]) -> ConnectedClient:
    first = parts[0]
    groups: dict[str, tuple[str, ...]] = {}
    for part in parts:
        for group, topics in part.groups.items():
            groups[group] = tuple(sorted({*groups.get(group, ()), *topics}))
    beats = [part.heartbeat_ms for part in parts if part.heartbeat_ms is not None]
    return ConnectedClient(
        first.client_id,
        first.addr,
        first.protocol,
        first.language,
        first.version,
        dict(sorted(groups.items())),
        tuple(sorted({group for part in parts for group in part.producer_groups})),
        tuple(sorted({broker for part in parts for broker in part.brokers})),
        max(beats, default=None),
    )
