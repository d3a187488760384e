"""Reading the definitions of a cluster, and applying items, through the admin client."""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from core_broker.client.admin import AdminClient
from core_broker.definitions.comparing import Item
from core_broker.definitions.model import KINDS, PASSWORD, Document, Fields, placed
from core_broker.errors import GantryError, RequestRefused
from core_broker.message.topics import (
    CLIENT_INNER_PRODUCER_GROUP,
    DLQ_PREFIX,
    RETRY_PREFIX,
    is_system_group,
    is_system_topic,
    reply_topic,
)
from core_broker.remoting.bodies import (
    AclInfo,
    ClusterInfo,
    PolicyEntryInfo,
    PolicyInfo,
    SubscriptionGroupConfig,
    TopicConfig,
    UserInfo,
)
from core_broker.remoting.codes import ResponseCode

C = TypeVar("C", TopicConfig, SubscriptionGroupConfig)

#: Groups of RocketMQ's tools and clients, beside the system groups of `is_system_group`.
TOOL_GROUPS: Final = frozenset(
    {
        *("DEFAULT_CONSUMER", "DEFAULT_PRODUCER", "__MONITOR_CONSUMER", "SELF_TEST_P_GROUP"),
        CLIENT_INNER_PRODUCER_GROUP,
    }
)
#: Maximum number of objects applied at the same time.
APPLIED_AT_ONCE_MAX: Final = 8
#: Maximum number of kept maps of fields: thousands of objects have few different fields.
FIELDS_MAX: Final = 1_024


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an item on one broker; `error` is None after success."""

    broker: str
    error: str | None


@dataclass(frozen=True, slots=True)
class Brokers:
    """Addresses of each broker name's processes, the master first."""

    addrs: Mapping[str, Sequence[str]]
    #: Names of the cluster and of its brokers, which are names of system topics.
    own_names: frozenset[str]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self.addrs))

    def master(self, name: str) -> str:
        return self.addrs[name][0]


def brokers_of(info: ClusterInfo, cluster: str | None = None) -> Brokers:
    """The brokers with a master, of one cluster or of all clusters of the name server."""
    names = {
        name
        for known, members in info.cluster_addr_table.items()
        for name in members
        if cluster in {None, known}
    }
    addrs = {
        name: [address for _id, address in sorted(broker.broker_addrs.items())]
        for name, broker in info.broker_addr_table.items()
        if name in names and 0 in broker.broker_addrs
    }
    clusters = info.cluster_addr_table
    own = {*names, *clusters, *map(reply_topic, clusters)}
    return Brokers(addrs, frozenset(own))


@dataclass(frozen=True, slots=True)
class Tables:
    """The answers of the brokers, by kind and broker, and the reasons of refused kinds."""

    brokers: Brokers
    answers: Mapping[str, Mapping[str, Any]]
    left_out: Mapping[str, str]


async def gather(
    admin: AdminClient, brokers: Brokers, kinds: Collection[str] = tuple(KINDS)
) -> Document:
    """The definitions of the cluster; raises as `read_tables`."""
    return document_of(await read_tables(admin, brokers, kinds))


async def read_tables(
    admin: AdminClient, brokers: Brokers, kinds: Collection[str] = tuple(KINDS)
) -> Tables:
    """Ask the brokers for the definitions, with the reasons of kinds that brokers refuse to show:
    without access control there are no users and acls, and an account may lack the right to read.

    Raises the error of a broker that does not answer, and of one that refuses everything.
    """
    answers: dict[str, Mapping[str, Any]] = {}
    left_out: dict[str, str] = {}
    for kind in kinds:
        try:
            found = {
                name: await _READERS[kind](admin, brokers.master(name)) for name in brokers.names
            }
        except RequestRefused as refusal:
            is_denied = refusal.code == ResponseCode.NO_PERMISSION
            if kind not in {"users", "acls"} and not is_denied:
                raise
            left_out[kind] = refusal.remark or str(refusal)
            if len(left_out) == len(kinds):
                raise
            continue
        answers[kind] = found
    return Tables(brokers, answers, left_out)


def document_of(found: Tables) -> Document:
    """The document of the answers."""
    document = Document(left_out=dict(found.left_out))
    for kind, answers in found.answers.items():
        tables = {name: _FIELDS[kind](each, found.brokers) for name, each in answers.items()}
        objects = sorted({name for table in tables.values() for name in table})
        document.objects[kind] = {
            name: placed(
                {broker: table[name] for broker, table in tables.items() if name in table},
                len(tables),
            )
            for name in objects
        }
    return document


async def apply(
    admin: AdminClient, brokers: Brokers, items: Iterable[Item]
) -> dict[tuple[str, str], tuple[Outcome, ...]]:
    """Apply the items; kinds in order, because a list needs its user.

    Every item with differences has an outcome per broker, by kind and name.
    """
    gate = asyncio.Semaphore(APPLIED_AT_ONCE_MAX)
    results: dict[tuple[str, str], tuple[Outcome, ...]] = {}
    waiting = [item for item in items if item.is_drift]
    held = _Held(admin, brokers)

    async def one(item: Item) -> None:
        async with gate:
            results[item.kind, item.name] = await _apply(held, item)

    for kind in KINDS:
        await asyncio.gather(*(one(item) for item in waiting if item.kind == kind))
    return results


class _Held:
    """The configurations on the brokers, read once per broker and kind."""

    def __init__(self, admin: AdminClient, brokers: Brokers) -> None:
        self.admin = admin
        self.brokers = brokers
        self._lock = asyncio.Lock()
        self._tables: dict[tuple[str, str], Mapping[str, Any]] = {}

    async def config(self, broker: str, kind: str, name: str) -> Any:
        """The configuration of a topic or group; None where the broker lacks the object."""
        addr = self.brokers.master(broker)
        async with self._lock:
            if (broker, kind) not in self._tables:
                read = self.admin.topic_configs if kind == "topics" else self.admin.group_configs
                self._tables[broker, kind] = await read(addr)
        return self._tables[broker, kind].get(name)


async def _apply(held: _Held, item: Item) -> tuple[Outcome, ...]:
    if item.problem or item.wanted is None:
        return (Outcome("", item.problem),)
    outcomes = []
    for broker in sorted({change.broker for change in item.changes}):
        try:
            await _apply_on(held, item, broker, item.wanted[broker])
            outcomes.append(Outcome(broker, None))
        except GantryError as failure:
            outcomes.append(Outcome(broker, str(failure)))
    return tuple(outcomes)


async def _apply_on(held: _Held, item: Item, broker: str, fields: Fields) -> None:
    admin, brokers = held.admin, held.brokers
    if item.kind == "topics":
        topic = await held.config(broker, item.kind, item.name)
        new = topic or TopicConfig(topic_name=item.name, read_queue_nums=8, write_queue_nums=8)
        await admin.create_topic(brokers.master(broker), _replaced(new, fields))
    elif item.kind == "groups":
        group = await held.config(broker, item.kind, item.name)
        config = group or SubscriptionGroupConfig(group_name=item.name)
        await admin.create_group(brokers.master(broker), _replaced(config, fields))
    else:
        write = _write_user if item.kind == "users" else _write_acl
        for addr in brokers.addrs[broker]:
            await write(admin, addr, item.name, fields, broker in item.missing)


def _replaced(config: C, fields: Fields) -> C:
    """The configuration with the fields of the document; other fields stay unchanged."""
    return msgspec.convert({**msgspec.to_builtins(config), **fields}, type(config))


def is_own(topic: str, brokers: Brokers) -> bool:
    """True for topics that brokers make themselves: system, retry and dead-letter topics."""
    return (
        is_system_topic(topic)
        or topic in brokers.own_names
        or topic.startswith((RETRY_PREFIX, DLQ_PREFIX))
    )


async def _read_topics(
    admin: AdminClient, addr: str
) -> tuple[frozenset[str], Mapping[str, TopicConfig]]:
    """The names of system topics, and all topics."""
    return frozenset(await admin.system_topics(addr)), await admin.topic_configs(addr)


def _topics(
    answer: tuple[frozenset[str], Mapping[str, TopicConfig]], brokers: Brokers
) -> dict[str, Fields]:
    system, configs = answer
    return {
        name: _plain(config, "topics")
        for name, config in configs.items()
        if name not in system and not is_own(name, brokers)
    }


def _groups(answer: Mapping[str, SubscriptionGroupConfig], _brokers: Brokers) -> dict[str, Fields]:
    return {
        name: _plain(config, "groups")
        for name, config in answer.items()
        if not is_system_group(name) and name not in TOOL_GROUPS
    }


async def _read_users(admin: AdminClient, addr: str) -> Sequence[UserInfo]:
    """The users without the passwords that Java brokers return: callers may keep the answers."""
    found = await admin.users(addr)
    for user in found:
        user.password = None
    return found


def _users(answer: Iterable[UserInfo], _brokers: Brokers) -> dict[str, Fields]:
    return {user.username: _plain(user, "users") for user in answer if user.username}


def _acls(answer: Iterable[AclInfo], _brokers: Brokers) -> dict[str, Fields]:
    return {acl.subject: _policies(acl) for acl in answer if acl.subject}


#: By kind: the requests to one broker, and the fields of the objects in its answer.
_READERS: Final[Mapping[str, Callable[[AdminClient, str], Awaitable[Any]]]] = {
    "topics": _read_topics,
    "groups": lambda admin, addr: admin.group_configs(addr),
    "users": _read_users,
    "acls": lambda admin, addr: admin.acls(addr),
}
_FIELDS: Final[Mapping[str, Callable[[Any, Brokers], dict[str, Fields]]]] = {
    "topics": _topics,
    "groups": _groups,
    "users": _users,
    "acls": _acls,
}


def _plain(config: msgspec.Struct, kind: str) -> Fields:
    keys, read = _reader(kind, type(config))
    return _fields(keys, *read(config))


@cache
def _reader(
    kind: str, config: type[msgspec.Struct]
) -> tuple[tuple[str, ...], Callable[[Any], Any]]:
    """Return the keys of a document's object, and the reader of their values."""
    names = {each.encode_name: each.name for each in msgspec.structs.fields(config)}
    keys = tuple(key for key in KINDS[kind] if key in names and key != PASSWORD)
    return keys, attrgetter(*(names[key] for key in keys))


# `typed`: true and 1 are equal, and different values of a document.
@lru_cache(maxsize=FIELDS_MAX, typed=True)
def _fields(keys: tuple[str, ...], *values: Any) -> Fields:
    """Return the fields of all objects with these values; nobody changes the shared map."""
    return dict(zip(keys, values, strict=True))


def _policies(acl: AclInfo) -> Fields:
    found: dict[str, list[dict[str, Any]]] = {}
    for policy in acl.policies or ():
        for entry in policy.entries or ():
            values: dict[str, Any] = {
                "actions": list(entry.actions or ()),
                "decision": entry.decision or "Allow",
                "resource": entry.resource or "",
            }
            if entry.source_ips:
                values["sourceIps"] = list(entry.source_ips)
            found.setdefault(policy.policy_type or "Custom", []).append(values)
    return {
        policy: sorted(entries, key=lambda entry: str(entry["resource"]))
        for policy, entries in found.items()
    }


async def _write_user(
    admin: AdminClient, addr: str, name: str, fields: Fields, is_new: bool
) -> None:
    user = msgspec.convert({"username": name, **fields}, UserInfo)
    if is_new:
        await admin.create_user(addr, user)
        return
    user.password = None  # a document never changes the password of an existing user
    await admin.update_user(addr, user)


async def _write_acl(
    admin: AdminClient, addr: str, name: str, fields: Fields, is_new: bool
) -> None:
    """Write the entries of each policy, then delete entries that the document lacks."""
    policies = [
        PolicyInfo(policy_type=policy, entries=msgspec.convert(entries, list[PolicyEntryInfo]))
        for policy, entries in fields.items()
    ]
    acl = AclInfo(subject=name, policies=policies)
    if is_new:
        await admin.create_acl(addr, acl)
        return
    held = await admin.acl(addr, name)
    await admin.update_acl(addr, acl)
    for policy, entries in _policies(held).items() if held is not None else ():
        if policy not in fields:
            continue
        kept = {each["resource"] for each in fields[policy]}
        for entry in entries:
            if entry["resource"] not in kept:
                await admin.delete_acl(addr, name, entry["resource"], policy)
