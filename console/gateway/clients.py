"""Questions about all clients of a cluster: consumers and producers of all groups.

A Gantry broker reports every connection. Other brokers report all their producers (328), and the
consumers of one group per request: the console requests SCAN_MAX groups, and `left_out` counts the
rest. RocketMQ brokers do not report accounts, and no time of a consumer's last heartbeat: None.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import masters
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.groups.listing import group_configs
from console.gateway.groups.members import group_clients, version_text
from console.gateway.inventory import INVENTORY_DEADLINE_MS, client_inventory
from console.gateway.metrics import SCAN_MAX, ask_each
from core_broker.remoting.bodies import ProducerInfo

#: Protocol of a client whose broker does not report one.
REMOTING = "remoting"


@dataclass(frozen=True, slots=True)
class ConnectedClient:
    """A client, merged over its brokers. `groups` maps consumer groups to subscribed topics."""

    client_id: str
    addr: str
    protocol: str
    language: str
    version: str
    groups: Mapping[str, tuple[str, ...]]
    producer_groups: tuple[str, ...]
    brokers: tuple[str, ...]
    heartbeat_ms: int | None
    #: Accounts that signed the heartbeats; empty if no broker reports an account.
    accounts: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Id and host: the same id may be in use on several machines."""
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
    """A producer group. `heartbeat_ms` is the latest heartbeat of its members."""

    name: str
    clients: int
    languages: tuple[str, ...]
    versions: tuple[str, ...]
    brokers: tuple[str, ...]
    heartbeat_ms: int | None


@dataclass(frozen=True, slots=True)
class AllClients:
    """All connected clients; `left_out` consumer groups were not requested."""

    clients: tuple[ConnectedClient, ...]
    left_out: int


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS, costly=True)
async def all_clients(session: ClusterSession) -> Partial[AllClients]:
    """Every connected client, in order of client id."""
    inventory = await session.ask(client_inventory)
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
            (client.account,) if client.account else (),
        )
        for ref, body in inventory.value.items()
        for client in body.clients
    ]
    others = [ref for ref in await masters(session) if ref not in inventory.value]
    producers, producer_failures = await session.fan_out(
        others, lambda ref: session.admin.all_producers(ref.addr), one_must_answer=False
    )
    found += (_producer(ref, group, one) for ref, group, one in _each_producer(producers))
    consumers, left_out, failures = await _consumers(session, others)
    return Partial(
        AllClients(merge_clients([*found, *consumers]), left_out),
        merge_failures(inventory.failures, producer_failures, failures),
    )


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS)
async def clients_with_id(
    session: ClusterSession, client_id: str
) -> Partial[tuple[ConnectedClient, ...]]:
    """The clients with this id, one per machine."""
    answer = await session.ask(all_clients)
    found = tuple(client for client in answer.value.clients if client.client_id == client_id)
    if not found:
        raise NotFound(
            format_lazy(_("No client “{client}” is connected."), client=client_id),
            hint=_("Brokers drop a client when its connection ends."),
            failures=answer.failures,
        )
    return Partial(found, answer.failures)


@question(fresh_for_ms=2_000, deadline_ms=INVENTORY_DEADLINE_MS)
async def producer_groups(session: ClusterSession) -> Partial[tuple[ProducerGroup, ...]]:
    """The producer groups with connected clients, in order of name."""
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


def _producer(ref: BrokerRef, group: str, info: ProducerInfo) -> ConnectedClient:
    return ConnectedClient(
        info.client_id,
        info.remote_ip.lstrip("/"),
        REMOTING,
        info.language,
        version_text(info.version),
        {},
        (group,),
        (ref.name,),
        info.last_update_timestamp if info.last_update_timestamp > 0 else None,
    )


async def _consumers(
    session: ClusterSession, refs: list[BrokerRef]
) -> tuple[list[ConnectedClient], int, tuple[BrokerFailure, ...]]:
    """Return the consumers of these brokers' groups, the count of groups left out, failures."""
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
    """Merge the connections of each client, in order of client id and host."""
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
        tuple(sorted({account for part in parts for account in part.accounts})),
    )


def signing_clients(account: str, connected: AllClients) -> int | None:
    """Count the connected clients that sign as the account.

    None when no client is known to sign as the account, and some clients' accounts are unknown.
    """
    accounts = [client.accounts for client in connected.clients]
    signing = sum(account in each for each in accounts)
    is_complete = all(accounts) and not connected.left_out
    return signing if signing or is_complete else None
