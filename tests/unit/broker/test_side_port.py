"""broker/exposure.py: readiness, metrics and internal tables of a running broker."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from core_broker.broker import Broker
from core_broker.remoting.headers import UpdateConsumerOffsetRequestHeader
from core_broker.store.put_times import WINDOW_MS
from tests.unit.broker.conftest import MakeBroker, WireClient

Connect = Callable[[str], WireClient]


async def get(broker: Broker, path: str) -> tuple[int, str]:
    assert broker.side_port is not None
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.side_port.port)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    answer = (await reader.read()).decode()
    writer.close()
    head, _, body = answer.partition("\r\n\r\n")
    return int(head.split()[1]), body


async def test_readiness_and_its_reasons(start_broker: MakeBroker) -> None:
    broker = await start_broker(http_port=0)
    assert await get(broker, "/livez") == (200, "ok\n")
    status, body = await get(broker, "/readyz?verbose")
    assert status == 200
    assert {"[+] started", "[+] store", "[+] registered"} <= set(body.splitlines())
    await broker.stop()
    assert "stopping" in broker.readiness.report()["started"]


async def test_metrics_count_messages(start_broker: MakeBroker, connect: Connect) -> None:
    broker = await start_broker(http_port=0)
    client = connect(broker.addr)
    for _ in range(3):
        await client.send("T")
    await client.pull("T")
    header = UpdateConsumerOffsetRequestHeader(
        consumer_group="CG", topic="T", queue_id=0, commit_offset=1
    )
    await client.request(15, header)
    status, body = await get(broker, "/metrics")
    assert status == 200
    samples = {
        sample.name: (sample.labels, sample.value)
        for family in text_string_to_metric_families(body)
        for sample in family.samples
        if sample.labels.get("topic") == "T"
    }
    own = {"cluster": "DefaultCluster", "node_type": "broker", "node_id": "broker-a", "topic": "T"}
    assert samples["rocketmq_messages_in_total"] == (own, 3.0)
    assert samples["rocketmq_messages_out_total"] == ({**own, "consumer_group": "CG"}, 3.0)
    assert samples["rocketmq_consumer_lag_messages"] == ({**own, "consumer_group": "CG"}, 2.0)


async def test_errors_of_peers_are_counted(start_broker: MakeBroker, connect: Connect) -> None:
    broker = await start_broker(http_port=0, wait_time_mills_in_send_queue=0)
    await connect(broker.addr).send("T")  # every wait exceeds the limit of 0 ms
    reader, writer = await asyncio.open_connection("127.0.0.1", broker.port)
    writer.write(b"GET / HTTP/1.1\r\n\r\n")
    assert await reader.read() == b""
    writer.close()
    status, body = await get(broker, "/metrics")
    assert status == 200
    counted = {
        (sample.name, sample.labels.get("reason", "")): sample.value
        for family in text_string_to_metric_families(body)
        for sample in family.samples
    }
    assert counted["rocketmq_remoting_closed_total", "oversize"] == 1
    assert counted["rocketmq_remoting_closed_total", "malformed"] == 0
    assert counted["rocketmq_flow_control_total", "TIMEOUT_CLEAN_QUEUE"] == 1
    assert counted["rocketmq_remoting_opened_total", ""] == 2


async def test_metrics_need_the_token_of_the_settings(
    start_broker: MakeBroker, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("0123456789abcdef")
    broker = await start_broker(http_port=0, metrics_token_file=str(token))
    assert (await get(broker, "/metrics"))[0] == 401
    assert (await get(broker, "/readyz"))[0] == 200


async def test_internal_tables_are_json(start_broker: MakeBroker, connect: Connect) -> None:
    broker = await start_broker(http_port=0)
    await connect(broker.addr).send("T")
    status, body = await get(broker, "/varz")
    varz = json.loads(body)
    assert status == 200
    assert varz["store"]["put_times_total"] == 1
    assert varz["broker"]["addr"] == broker.addr
    assert varz["remoting"]["connections"] >= 1


async def test_put_latencies_are_of_the_last_finished_minute(
    start_broker: MakeBroker, connect: Connect
) -> None:
    """The second message takes the fast path where a kernel is compiled."""
    broker = await start_broker(http_port=0)
    client = connect(broker.addr)
    for _ in range(2):
        assert (await client.send("T")).code == 0
    now_ms = int(asyncio.get_running_loop().time() * 1000)
    for passed_ms in (0, WINDOW_MS):
        broker._ctx.store.tick(now_ms + passed_ms)
    latencies = {
        sample.labels["quantile"]: sample.value
        for family in text_string_to_metric_families((await get(broker, "/metrics"))[1])
        for sample in family.samples
        if sample.name == "rocketmq_storage_put_latency"
    }
    assert 0 < latencies["0.99"] <= latencies["0.999"]
    varz = json.loads((await get(broker, "/varz"))[1])
    assert sum(varz["store"]["put_distribution"].values()) == 2
