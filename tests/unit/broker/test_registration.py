"""broker/registration.py and namesrv_link.py: registration at start, change, restart and stop."""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from core_broker.auth.signature import SigningKey
from core_broker.broker import registration
from core_broker.remoting.bodies import (
    QueryAssignmentResponseBody,
    TopicRouteData,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import CreateTopicRequestHeader, PutKVConfigRequestHeader
from namesrv.server import NameServer
from tests.support.eventually import eventually
from tests.support.scripted_peer import ScriptedPeer
from tests.unit.broker.conftest import MakeBroker, WireClient, namesrv_config

Connect = Callable[[str], WireClient]


async def route(client: WireClient, topic: str) -> TopicRouteData | None:
    answer = await client.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": topic})
    return decode_body(TopicRouteData, answer.body) if answer.code == 0 else None


def creating(topic: str, queues: int = 2) -> CreateTopicRequestHeader:
    return CreateTopicRequestHeader(
        topic=topic,
        default_topic="TBW102",
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=6,
        topic_filter_type="SINGLE_TAG",
    )


async def test_a_broker_registers_at_start_and_unregisters_at_stop(
    start_broker: MakeBroker, connect: Connect, namesrv: NameServer, namesrv_addr: str
) -> None:
    broker = await start_broker(namesrv_addr=namesrv_addr)
    client = connect(namesrv_addr)
    known = await route(client, "TBW102")
    assert known is not None
    assert known.broker_datas[0].broker_addrs == {0: broker.addr}
    assert (known.queue_datas[0].perm, known.queue_datas[0].write_queue_nums) == (7, 8)
    assert broker.readiness.ready
    await broker.stop()
    assert namesrv.routes.live == {}


@pytest.mark.parametrize("compressed", [False, True])
async def test_new_topics_are_registered_at_once(
    start_broker: MakeBroker, connect: Connect, namesrv_addr: str, compressed: bool
) -> None:
    broker = await start_broker(namesrv_addr=namesrv_addr, compressed_register=compressed)
    client, names = connect(broker.addr), connect(namesrv_addr)
    assert (await client.request(17, creating("Made"))).code == 0
    made = await route(names, "Made")
    assert made is not None
    assert made.queue_datas[0].read_queue_nums == 2
    await client.send("Auto")
    await eventually(lambda: route(names, "Auto"))


async def test_a_created_topic_is_answered_after_a_slow_name_server_knows_it(
    start_broker: MakeBroker, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    waiting: list[int] = []
    async with ScriptedPeer() as names:
        broker = await start_broker(namesrv_addr=names.addr)
        monkeypatch.setattr(registration, "CHANGE_WAIT_S", 0)
        monkeypatch.setattr(registration, "FIRST_WAIT_S", 60)
        names.script(RequestCode.REGISTER_BROKER, [lambda it: waiting.append(it.opaque)])
        creation = asyncio.create_task(connect(broker.addr).request(17, creating("Made")))
        await eventually(lambda: waiting)
        await asyncio.wait([creation], timeout=0.05)
        assert not creation.done()
        answer = RemotingCommand.response()
        answer.opaque = waiting[0]
        names.connections[-1].send(answer)
        assert (await creation).code == 0
        await broker.stop()


async def test_a_broker_registers_again_after_a_restart_of_the_name_server(
    start_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    first = NameServer(namesrv_config(tmp_path))
    await first.start()
    addr = f"127.0.0.1:{first.port}"
    broker = await start_broker(namesrv_addr=addr)
    await first.stop()
    await eventually(lambda: not broker.readiness.ready)
    assert "registered" in {name for name, why in broker.readiness.report().items() if why}

    second = NameServer(namesrv_config(tmp_path, first.port))
    await second.start()
    await eventually(lambda: broker.readiness.ready)
    assert await route(connect(addr), "TBW102") is not None
    await broker.stop()
    await second.stop()


async def test_an_unreachable_name_server_does_not_delay_the_other(
    start_broker: MakeBroker,
    connect: Connect,
    namesrv_addr: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    nobody = "127.0.0.1:1"
    with caplog.at_level(logging.WARNING):
        broker = await start_broker(namesrv_addr=f"{nobody};{namesrv_addr}")
    assert await route(connect(namesrv_addr), "TBW102") is not None
    assert broker.readiness.ready
    warnings = [record.getMessage() for record in caplog.records]
    assert any(nobody in line and "namesrvAddr" in line for line in warnings)


async def test_without_any_name_server_the_broker_serves_but_is_not_ready(
    start_broker: MakeBroker, connect: Connect
) -> None:
    broker = await start_broker(namesrv_addr="127.0.0.1:1")
    assert (await connect(broker.addr).send("T")).code == 0
    assert "127.0.0.1:1" in broker.readiness.report()["registered"]


async def test_a_broker_without_configured_name_server_is_ready(start_broker: MakeBroker) -> None:
    broker = await start_broker()
    assert broker.readiness.ready


async def test_namesrv_addr_may_be_updated_while_the_broker_runs(
    start_broker: MakeBroker, connect: Connect, namesrv_addr: str
) -> None:
    broker = await start_broker(namesrv_addr="127.0.0.1:1")
    answer = await connect(broker.addr).request(25, body=f"namesrvAddr={namesrv_addr}".encode())
    assert answer.code == 0
    await eventually(lambda: broker.readiness.ready)
    assert await route(connect(namesrv_addr), "TBW102") is not None


async def test_a_read_only_broker_registers_read_only_topics(
    start_broker: MakeBroker, connect: Connect, namesrv_addr: str
) -> None:
    await start_broker(namesrv_addr=namesrv_addr, broker_permission=4)
    known = await route(connect(namesrv_addr), "BenchmarkTest")
    assert known is not None
    assert known.queue_datas[0].perm == 4


async def test_the_order_table_of_the_name_server_is_applied(
    start_broker: MakeBroker, connect: Connect, namesrv_addr: str
) -> None:
    names = connect(namesrv_addr)
    order = PutKVConfigRequestHeader(namespace="ORDER_TOPIC_CONFIG", key="Made", value="broker-a:2")
    assert (await names.request(100, order)).code == 0
    broker = await start_broker(namesrv_addr=namesrv_addr)
    client = connect(broker.addr)
    await client.request(17, creating("Made"))
    answer = await client.request(21)
    assert b'"Made":{"order":true' in answer.body


async def test_without_force_register_only_changes_are_registered(
    start_broker: MakeBroker, connect: Connect, namesrv: NameServer, namesrv_addr: str
) -> None:
    broker = await start_broker(namesrv_addr=namesrv_addr, force_register=False)
    asked = namesrv._service.answered
    before = asked[RequestCode.REGISTER_BROKER]
    assert (before, asked[RequestCode.QUERY_DATA_VERSION]) == (1, 1), "the first registration"

    broker._parts.registration.all_changed()
    await eventually(lambda: asked[RequestCode.QUERY_DATA_VERSION] == 2)
    assert (await connect(broker.addr).request(17, creating("Made"))).code == 0
    assert await route(connect(namesrv_addr), "Made") is not None
    assert asked[RequestCode.REGISTER_BROKER] == before + 1, "only for the new topic"
    assert broker.readiness.ready


async def test_an_assignment_has_the_queues_of_all_brokers(
    start_broker: MakeBroker, connect: Connect, namesrv_addr: str, tmp_path: Path
) -> None:
    brokers = [
        await start_broker(
            namesrv_addr=namesrv_addr,
            broker_name=name,
            store_path_root_dir=str(tmp_path / name),
        )
        for name in ("b1", "b2")
    ]
    for broker in brokers:
        assert (await connect(broker.addr).request(17, creating("Both"))).code == 0
    client = connect(brokers[0].addr)
    body = {"topic": "Both", "consumerGroup": "CG", "clientId": "c", "strategyName": "AVG"}
    body["messageModel"] = "BROADCASTING"
    answer = await client.request(RequestCode.QUERY_ASSIGNMENT, body=encode_body(body))
    assert (answer.code, answer.remark) == (0, None)
    given = decode_body(QueryAssignmentResponseBody, answer.body).message_queue_assignments
    queues = [each.message_queue for each in given or ()]
    assert [(queue.broker_name, queue.queue_id) for queue in queues] == [
        *(("b1", 0), ("b1", 1)),
        *(("b2", 0), ("b2", 1)),
    ]


async def test_no_assignment_while_no_name_server_answers(
    start_broker: MakeBroker, connect: Connect, tmp_path: Path
) -> None:
    namesrv = NameServer(namesrv_config(tmp_path))
    await namesrv.start()
    broker = await start_broker(namesrv_addr=f"127.0.0.1:{namesrv.port}")
    await namesrv.stop()
    body = {"topic": "TBW102", "consumerGroup": "CG", "clientId": "c", "strategyName": "AVG"}
    client = connect(broker.addr)
    answer = await client.request(RequestCode.QUERY_ASSIGNMENT, body=encode_body(body))
    assert answer.code == 1
    assert (answer.remark or "").startswith("no name server answers for the route of TBW102: ")


async def test_registrations_have_the_signature_of_the_server(start_broker: MakeBroker) -> None:
    inner = '{"accessKey":"inner","secretKey":"secret-of-inner"}'
    async with ScriptedPeer() as names:
        names.on(RequestCode.REGISTER_BROKER, lambda request: RemotingCommand.response())
        names.on(RequestCode.UNREGISTER_BROKER, lambda request: RemotingCommand.response())
        broker = await start_broker(
            namesrv_addr=names.addr, inner_client_authentication_credentials=inner
        )
        await broker.stop()
    for code in (RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER):
        first, *_ = names.received(code)
        assert first.ext_fields["AccessKey"] == "inner"
        assert SigningKey("secret-of-inner").accepts(first.ext_fields, first.body)
