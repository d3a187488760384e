"""Record the trace messages of the Java clients, for tests/unit/trace/recorded.

    python -m tests.compat.record_traces [FOLDER]

writes a file per major version of RocketMQ, `java-4.9.8.jsonl` and `java-5.3.3.jsonl`: each line is
the body of one trace message, as a JSON text. The recorded traffic is fixed: single sends with and
without tag and keys, a batch, a delayed and an ordered message, transactions that are committed,
rolled back and checked, a consumer that succeeds, and a failing consumer with a retried message.
"""

import json
import sys
import tempfile
from functools import partial
from pathlib import Path

from core_broker.message.topics import TRACE_TOPIC
from tests.compat import installing
from tests.compat.broker_state import create_topic, eventually
from tests.compat.conftest import SETTINGS, Maker, Pool
from tests.compat.test_traces import messages_of, traces_of
from tests.support.cluster import Cluster
from trace.codec import EndTransaction, SubAfter, SubBefore

KINDS = {"java": installing.JAVA_VERSION, "java5": installing.JAVA5_VERSION}
FOLDER = Path(__file__).parents[1] / "unit" / "trace" / "recorded"
SECONDS_MAX = 90.0
PLAIN = [
    {"body": "first", "tag": "T", "keys": "k1 k2"},
    {"body": "without tag and keys"},
    {"body": "later", "keys": "k3", "delay": 1},
    {"body": "ordered", "tag": "T", "keys": "k4", "shard": 0},
]
BATCH = [{"body": f"batch {number}", "keys": f"b{number}"} for number in range(3)]
OUTCOMES = ("commit-commit", "rollback-rollback", "unknown-commit")


def main() -> None:
    """Record the traces of both major versions."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    for kind, version in KINDS.items():
        bodies = record(kind)
        text = "".join(json.dumps(body.decode()) + "\n" for body in bodies)
        (folder / f"java-{version}.jsonl").write_text(text)
        print(f"{version}: {len(bodies)} messages")


def record(kind: str) -> list[bytes]:
    """Return the bodies of all trace messages of one client on a new broker."""
    with tempfile.TemporaryDirectory() as home:
        pool = Pool(Path(home))
        with Cluster(Path(home), **SETTINGS) as cluster:
            clients = Maker(kind, pool, cluster.namesrv_addr)
            try:
                generate_traffic(clients, cluster)
            finally:
                clients.kill_all()
                pool.stop_all()
            return [message.decompressed_body() for message in messages_of(cluster, TRACE_TOPIC)]


def generate_traffic(clients: Maker, cluster: Cluster) -> None:
    """Send and consume until the trace topic has every kind of record."""
    topic = create_topic(cluster, "Orders", queues=1)
    failing = create_topic(cluster, "Failing", queues=1)
    clients.consumer("CG-orders", topic, trace=True)
    clients.consumer("CG-failing", failing, trace=True, fails=True)
    producer = clients.producer("PG-orders", trace=True)
    producer.send(topic, PLAIN)
    producer.command("send_batch", topic=topic, messages=BATCH)
    producer.send(failing, [{"body": "fail", "keys": "f1"}])
    deciding = clients.producer("PG-deciding", trace=True, transactions=True)
    deciding.send(
        topic, [{"body": outcome, "keys": outcome, "transactional": True} for outcome in OUTCOMES]
    )
    eventually(partial(is_recorded, cluster), "every kind of trace record", SECONDS_MAX)


def is_recorded(cluster: Cluster) -> bool:
    """Return whether the last records exist: a check, a retry, and the end of all consumptions."""
    records = [record for trace in traces_of(cluster) for record in trace.records]
    retried = {r.request_id for r in records if isinstance(r, SubBefore) and r.retry_times}
    ended = {r.request_id for r in records if isinstance(r, SubAfter)}
    checked = [r for r in records if isinstance(r, EndTransaction) and r.from_transaction_check]
    begun = {r.request_id for r in records if isinstance(r, SubBefore)}
    return bool(retried & ended) and bool(checked) and begun == ended


if __name__ == "__main__":
    main()
