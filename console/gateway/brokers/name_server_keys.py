"""Key-value settings of the name servers (codes 100, 102, 219).

Name servers do not replicate: a change is sent to each of them, and keys can differ between them.
The protocol has no list of namespaces. RocketMQ's own namespace is ORDER_TOPIC_CONFIG: the queues
of ordered topics by broker, which routes contain.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from console.gateway.brokers.listing import NAME_SERVER
from console.gateway.brokers.secrets import shown
from console.gateway.changes import (
    BrokerOutcome,
    FieldChange,
    apply_change,
    check_unchanged,
    etag_of,
)
from console.gateway.engine.answers import BrokerFailure, Partial
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession

ORDER_NAMESPACE: Final = "ORDER_TOPIC_CONFIG"
#: Namespaces that programs of RocketMQ use.
KNOWN_NAMESPACES: Final = (ORDER_NAMESPACE, "PROJECT_CONFIG")
NAMESPACE_CHARS_MAX: Final = 255
KEY_CHARS_MAX: Final = 255
VALUE_CHARS_MAX: Final = 4_096


@dataclass(frozen=True, slots=True)
class KeyValue:
    """A key, and its value on each answering name server; None: the name server lacks the key."""

    key: str
    values: Mapping[str, str | None]

    @property
    def differs(self) -> bool:
        return len(set(self.values.values())) > 1

    @property
    def value(self) -> str | None:
        """The common value; None when the name servers differ."""
        return None if self.differs else next(iter(self.values.values()), None)


@dataclass(frozen=True, slots=True)
class NamespaceKeys:
    """The keys of a namespace; `servers` lists the answering name servers."""

    namespace: str
    servers: tuple[str, ...]
    rows: tuple[KeyValue, ...]
    etag: str

    def row(self, key: str) -> KeyValue:
        """Return the row of a key, also of a key that no name server has."""
        lacking = KeyValue(key, dict.fromkeys(self.servers))
        return next((each for each in self.rows if each.key == key), lacking)


@question(fresh_for_ms=1_000)
async def name_server_keys(session: ClusterSession, namespace: str) -> Partial[NamespaceKeys]:
    """The keys of a namespace on all name servers, by key; values of secrets are hidden."""
    tables, failures = await _tables(session, namespace)
    visible = {ref.addr: shown(table) for ref, table in tables.items()}
    keys = sorted({key for table in visible.values() for key in table})
    rows = tuple(
        KeyValue(key, {addr: table.get(key) for addr, table in visible.items()}) for key in keys
    )
    etag = etag_of(tables.items())
    return Partial(NamespaceKeys(namespace, tuple(visible), rows, etag), failures)


def differences(state: NamespaceKeys, key: str, value: str | None) -> tuple[FieldChange, ...]:
    """Return what a new value, or None for a deletion, changes on each name server."""
    return tuple(
        FieldChange(addr, key, before, value)
        for addr, before in state.row(key).values.items()
        if before != value
    )


@command()
async def change_name_server_key(
    session: ClusterSession,
    namespace: str,
    key: str,
    value: str | None,
    expected_etag: str | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Set a key on all name servers; None deletes the key."""
    if expected_etag is not None:
        tables, _failures = await _tables(session, namespace)
        check_unchanged(expected_etag, etag_of(tables.items()))

    async def change(ref: BrokerRef) -> None:
        if value is None:
            await session.admin.kv_delete(namespace, key, ref.addr)
        else:
            await session.admin.kv_put(namespace, key, value, ref.addr)

    return await apply_change(session, _refs(session), change)


async def _tables(
    session: ClusterSession, namespace: str
) -> tuple[dict[BrokerRef, dict[str, str]], tuple[BrokerFailure, ...]]:
    async def read(ref: BrokerRef) -> dict[str, str]:
        return await session.admin.kv_list(namespace, ref.addr)

    return await session.fan_out(_refs(session), read)


def _refs(session: ClusterSession) -> list[BrokerRef]:
    return [BrokerRef(NAME_SERVER, 0, addr) for addr in session.admin.namesrv_addrs]
