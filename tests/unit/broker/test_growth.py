"""A broker with many topics and groups: the work of a creation does not grow with the tables."""

from collections.abc import Callable
from pathlib import Path

from core_broker.broker import Broker
from core_broker.remoting.bodies import (
    ConsumerData,
    HeartbeatData,
    SubscriptionGroupConfig,
    TopicConfig,
    TopicConfigSerializeWrapper,
    TopicRouteData,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import PutKVConfigRequestHeader
from core_broker.state.encoded_members import CHUNK_ENTRIES
from core_broker.state.groups import GroupTable
from core_broker.state.topics import TopicTable
from tests.support.eventually import eventually
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]

TOPICS, GROUPS = 3_000, 2_000
#: Chunks that one creation encodes: at its save, and again when the next creation shares the chunk.
CHUNKS_MAX = 2


def fill(store: Path) -> None:
    """Write the tables of an earlier run."""
    folder = store / "config"
    folder.mkdir(parents=True)
    topics, groups = TopicTable(), GroupTable()
    for number in range(TOPICS):
        topics.put(TopicConfig(topic_name=f"t{number}"), 1)
    for number in range(GROUPS):
        groups.put(SubscriptionGroupConfig(group_name=f"g{number}"), 1)
    (folder / "topics.json").write_bytes(topics.encode())
    (folder / "subscriptionGroup.json").write_bytes(groups.encode())


async def route(client: WireClient, topic: str) -> TopicRouteData | None:
    answer = await client.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    return decode_body(TopicRouteData, answer.body) if answer.code == 0 else None


def encoded(broker: Broker) -> tuple[int, int]:
    ctx = broker._ctx
    return ctx.topics.encoded_count, ctx.groups.encoded_count


def ordered(broker: Broker, name: str) -> bool:
    topic = broker._ctx.topics.get(name)
    return topic is not None and topic.order


async def test_a_creation_encodes_a_constant_number_of_entries(
    start_broker: MakeBroker, connect: Connect, namesrv_addr: str, tmp_path: Path
) -> None:
    fill(tmp_path / "store")
    broker = await start_broker(namesrv_addr=namesrv_addr)
    client, names = connect(broker.addr), connect(namesrv_addr)
    await eventually(lambda: route(names, f"t{TOPICS - 1}"))
    assert encoded(broker)[0] >= TOPICS, "the start encodes the tables once"
    for number in range(5):
        topics, groups = encoded(broker)
        assert (await client.send(f"New{number}")).code == 0
        beat = HeartbeatData(
            client_id="c",
            consumer_data_set=[
                ConsumerData(
                    group_name=f"CG{number}",
                    consume_type="CONSUME_PASSIVELY",
                    message_model="CLUSTERING",
                    consume_from_where="CONSUME_FROM_LAST_OFFSET",
                )
            ],
        )
        assert (await client.request(RequestCode.HEART_BEAT, body=encode_body(beat))).code == 0
        await eventually(lambda: route(names, f"%RETRY%CG{number}"))  # noqa: B023 - awaited here
        topics_now, groups_now = encoded(broker)
        assert topics_now - topics <= 2 * CHUNKS_MAX * CHUNK_ENTRIES
        assert groups_now - groups <= CHUNKS_MAX * CHUNK_ENTRIES


async def test_a_full_registration_and_the_list_of_topics_encode_nothing_again(
    start_broker: MakeBroker, connect: Connect, namesrv_addr: str, tmp_path: Path
) -> None:
    fill(tmp_path / "store")
    broker = await start_broker(namesrv_addr=namesrv_addr)
    client, names = connect(broker.addr), connect(namesrv_addr)
    await eventually(lambda: route(names, f"t{TOPICS - 1}"))
    before = encoded(broker)
    answer = await client.request(RequestCode.GET_ALL_TOPIC_CONFIG)
    listed = decode_body(TopicConfigSerializeWrapper, answer.body).topic_config_table
    assert {f"t{number}" for number in range(TOPICS)} <= listed.keys()
    order = PutKVConfigRequestHeader(namespace="ORDER_TOPIC_CONFIG", key="t7", value="broker-a:4")
    assert (await names.request(RequestCode.PUT_KV_CONFIG, order)).code == 0
    broker._parts.registration.all_changed()
    await eventually(lambda: ordered(broker, "t7"))
    assert encoded(broker)[0] - before[0] <= CHUNKS_MAX * CHUNK_ENTRIES
