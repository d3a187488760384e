"""Random requests of a peer are answered or refused, and the tables stay consistent."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from core_broker.config import NamesrvConfig
from core_broker.errors import GantryError
from core_broker.remoting.bodies import MASTER_ID, DataVersion, TopicConfig
from core_broker.remoting.command import RemotingCommand
from namesrv.route_processor import RouteProcessor
from namesrv.routes import BROKER_EXPIRY_MS, BrokerIdentity, LiveBroker, RouteTable
from tests.unit.namesrv.key_values import key_values

FIELDS = (
    *("brokerName", "brokerAddr", "clusterName", "cluster", "brokerId", "haServerAddr", "topic"),
    *("compressed", "bodyCrc32", "acceptStandardJsonOnly"),
)


class Peer:
    """A connection without a socket."""

    peer = "192.0.2.1:1"

    def close(self, reason: str) -> None: ...


def json_like() -> st.SearchStrategy[bytes]:
    """Bodies with the members of registrations and random values."""
    anything = st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=5))
    member = st.sampled_from(
        ("topicConfigSerializeWrapper", "topicConfigTable", "dataVersion", "filterServerList", "T")
    )
    nested = st.recursive(
        anything,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(member, inner, max_size=3),
        max_leaves=8,
    )
    return nested.map(lambda value: str(value).encode("utf-8", "replace"))


@given(
    data=st.data(),
    fields=st.dictionaries(st.sampled_from(FIELDS), st.text(max_size=12) | st.just("true")),
    body=st.binary(max_size=64) | json_like(),
    version=st.sampled_from((0, 35, 36, 400, 401, 2**31 - 1)),
)
def test_any_request_is_answered_or_refused(
    data: st.DataObject, fields: dict[str, str], body: bytes, version: int
) -> None:
    table = RouteTable()
    processor = RouteProcessor(table, key_values(), NamesrvConfig, lambda: 0)
    handler: Any = processor.handlers[data.draw(st.sampled_from(sorted(processor.handlers)))]
    request = RemotingCommand.request(0, fields, body)
    request.version = version
    try:
        answer = handler(Peer(), request)
    except GantryError:
        pass  # the connection responds with the text of the error
    else:
        answer.encode()
    check_consistency(table)


NAMES = st.sampled_from(("a", "b"))
IDENTITIES = st.builds(
    BrokerIdentity,
    st.sampled_from(("c1", "c2")),
    NAMES,
    st.sampled_from((MASTER_ID, 1)),
    st.sampled_from(("1:1", "2:1", "3:1")),
)
STEPS = st.one_of(
    st.tuples(st.just("register"), IDENTITIES, st.integers(0, 2)),
    st.tuples(st.just("unregister"), IDENTITIES),
    st.tuples(st.just("lose"), st.integers(0, 2)),
    st.tuples(st.just("expire")),
    st.tuples(st.just("delete"), st.sampled_from((None, "c1", "c2"))),
)


@given(st.lists(STEPS, max_size=30))
def test_the_tables_agree_after_any_history(steps: list[tuple[Any, ...]]) -> None:
    table = RouteTable()
    peers = [Peer(), Peer(), Peer()]
    for now, step in enumerate(steps):
        match step:
            case ("register", who, number):
                live = LiveBroker(who.name, peers[number], now, DataVersion(now, number), "", [])
                topics = [TopicConfig(topic_name=topic) for topic in ("T", who.name)]
                table.register(who, live, topics)
            case ("unregister", who):
                table.unregister(who)
            case ("lose", number):
                table.connection_lost(peers[number])
            case ("expire",):
                table.expire(now + BROKER_EXPIRY_MS)
            case ("delete", cluster):
                table.delete_topic("T", cluster)
        check_consistency(table)
    for peer in peers:
        table.connection_lost(peer)
    assert (table.live, table.topics, table.brokers, table.clusters) == ({}, {}, {}, {})


def check_consistency(table: RouteTable) -> None:
    """Assert that the tables agree with each other and have no empty entries."""
    for name, broker in table.brokers.items():
        assert broker.broker_addrs
        assert all(table.live[addr].name == name for addr in broker.broker_addrs.values())
    members = [(name, cluster) for cluster, names in table.clusters.items() for name in names]
    assert sorted(members) == sorted((name, each.cluster) for name, each in table.brokers.items())
    for queues in table.topics.values():
        assert queues
        assert set(queues) <= set(table.brokers)
        assert all(queue.broker_name == name for name, queue in queues.items())
