"""The clients without ``await``: from threads, at the end of a program, after a fork."""

import subprocess
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from core_broker.client import (
    ConsumeFromWhere,
    ConsumeOrderlyStatus,
    ConsumerSettings,
    ConsumeStatus,
    LitePullSettings,
    LocalTransactionState,
    Message,
    MessageExt,
    MessageQueue,
    ProducerSettings,
    TopicConfig,
)
from core_broker.client.sync import (
    AdminClient,
    LitePullConsumer,
    Producer,
    PushConsumer,
    TransactionProducer,
)
from core_broker.errors import ClientError, ConnectFailed, RequestRefused
from tests.client.receiving import ClusterAddrs
from tests.support.cluster import ROOT

FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
WAIT_S = 60


@pytest.fixture
def topic(quick_cluster: ClusterAddrs, group: str) -> str:
    """A topic with two queues and a name unique to the test."""
    name = f"sync-{group}"
    config = TopicConfig(topic_name=name, read_queue_nums=2, write_queue_nums=2)
    with AdminClient(quick_cluster.namesrv_addr) as admin:
        admin.create_topic(quick_cluster.broker_addr, config)
    return name


@pytest.mark.on_java
def test_many_threads_send_and_listeners_receive(
    quick_cluster: ClusterAddrs, topic: str, group: str
) -> None:
    received: Counter[bytes] = Counter()
    threads: set[str] = set()
    lock, all_here = threading.Lock(), threading.Event()
    settings = ConsumerSettings(consume_from=FIRST, concurrency=4)
    consumer = PushConsumer(group, quick_cluster.namesrv_addr, settings=settings)
    consumer.subscribe(topic)

    @consumer.listener
    def listen(messages: list[MessageExt]) -> ConsumeStatus:
        for message in messages:
            if not message.body.startswith(b"echo"):
                # A listener may use sync clients, because listeners run on separate threads.
                producer.send(Message(topic, b"echo of " + message.body))
            with lock:
                received[message.body] += 1
                threads.add(threading.current_thread().name)
                if len(received) == 60:
                    all_here.set()
        return ConsumeStatus.CONSUME_SUCCESS

    with Producer("sender", quick_cluster.namesrv_addr) as producer, consumer:
        with ThreadPoolExecutor(4) as pool:
            for number in range(30):
                pool.submit(producer.send, Message(topic, b"%d" % number))
        assert all_here.wait(WAIT_S)
    expected = {b"%d" % number for number in range(30)}
    assert set(received) == expected | {b"echo of " + body for body in expected}
    assert threading.current_thread().name not in threads
    assert len(threads) <= 4


def test_orderly_listeners_and_what_they_raise(
    quick_cluster: ClusterAddrs, topic: str, group: str
) -> None:
    received_bodies: list[bytes] = []
    done = threading.Event()
    settings = ConsumerSettings(consume_from=FIRST, suspend_current_queue_ms=10)
    consumer = PushConsumer(group, quick_cluster.namesrv_addr, settings=settings)
    consumer.subscribe(topic)

    @consumer.orderly_listener
    def listen(messages: list[MessageExt]) -> ConsumeOrderlyStatus:
        received_bodies.append(messages[0].body)
        if len(received_bodies) == 1:
            raise StopIteration
        if len(received_bodies) == 2:
            sys.exit("not from here")
        if len(received_bodies) == 5:
            done.set()
        return ConsumeOrderlyStatus.SUCCESS

    with Producer("sender", quick_cluster.namesrv_addr) as producer:
        for number in range(3):
            producer.send_ordered(Message(topic, b"%d" % number), "one key")
    with consumer:
        assert done.wait(WAIT_S)
    assert received_bodies == [b"0", b"0", b"0", b"1", b"2"]


def test_polling(quick_cluster: ClusterAddrs, topic: str, group: str) -> None:
    with Producer("sender", quick_cluster.namesrv_addr) as producer:
        queue = producer.queues(topic)[0]
        futures = [producer.submit(Message(topic, b"%d" % number)) for number in range(5)]
        assert len({future.result().msg_id for future in futures}) == 5
        producer.send_batches([Message(topic, b"batch")] * 3)
    settings = LitePullSettings(consume_from=FIRST)
    with LitePullConsumer(group, quick_cluster.namesrv_addr, settings=settings) as consumer:
        consumer.subscribe(topic)
        received_bodies = []
        for message in consumer:
            received_bodies.append(message.body)
            if len(received_bodies) == 8:
                break
        consumer.commit()
        assert consumer.offset_for_timestamp(queue, 0) == 0
        assert sum(consumer.committed(it) or 0 for it in consumer.queues) == 8
        consumer.seek_to_begin(queue)
        assert consumer.poll()
        consumer.pause(consumer.queues)
        consumer.resume(consumer.fetch_queues(topic))
    assert Counter(received_bodies) == {b"batch": 3} | {b"%d" % number: 1 for number in range(5)}


def test_transactions_and_requests(quick_cluster: ClusterAddrs, topic: str, group: str) -> None:
    threads = set()

    def execute(message: Message, arg: object) -> LocalTransactionState:
        threads.add(threading.current_thread())
        assert arg == 7
        return LocalTransactionState.COMMIT_MESSAGE

    settings = ConsumerSettings(consume_from=FIRST)
    answering = PushConsumer(group, quick_cluster.namesrv_addr, settings=settings)
    answering.subscribe(topic)

    @answering.listener
    def answer(messages: list[MessageExt]) -> ConsumeStatus:
        if messages[0].body == b"question":
            producer.reply(messages[0], b"answer")
        return ConsumeStatus.CONSUME_SUCCESS

    with (
        TransactionProducer(
            group, quick_cluster.namesrv_addr, execute=execute, check=lambda _: None
        ) as producer,
        answering,
    ):
        result = producer.send_in_transaction(Message(topic, b"half"), 7)
        assert result.local_state is LocalTransactionState.COMMIT_MESSAGE
        assert producer.request(Message(topic, b"question"), timeout_ms=60_000).body == b"answer"
    assert threading.current_thread() not in threads


def test_errors_are_those_of_the_other_clients(quick_cluster: ClusterAddrs) -> None:
    with Producer("sender", quick_cluster.namesrv_addr) as producer:
        with pytest.raises(ClientError, match="illegal"):
            producer.send(Message("no blanks", b"hi"))
        assert producer.group == "sender"
        with pytest.raises(ClientError):
            producer.send_to(Message("T", b"hi"), MessageQueue("U", "broker-a", 0))
    with pytest.raises(ClientError, match="not running"):
        producer.send(Message("T", b"hi"))
    producer.stop()
    with AdminClient(quick_cluster.namesrv_addr) as admin:
        with pytest.raises(RequestRefused):
            admin.topic_route("no-such-topic")
        assert "topic_route" in dir(admin)
        with pytest.raises(AttributeError):
            admin.no_such_method()
    with AdminClient("127.0.0.1:1") as admin, pytest.raises(ConnectFailed):
        admin.cluster_info()


def test_what_is_on_its_way_is_bounded(quick_cluster: ClusterAddrs, topic: str) -> None:
    settings = ProducerSettings(in_flight_max=1)
    with Producer("sender", quick_cluster.namesrv_addr, settings=settings) as producer:
        producer.submit(Message(topic, b"first")).result()
        producer._slots.acquire()
        with pytest.raises(ClientError, match="in_flight_max"):
            producer.submit(Message(topic, b"second"))
        producer._slots.release()
        assert producer.submit(Message(topic, b"third")).result().msg_id


async def test_where_a_loop_runs_the_others_are_to_be_used(quick_cluster: ClusterAddrs) -> None:
    with pytest.raises(ClientError, match=r"core_broker\.client and await"):
        Producer("sender", quick_cluster.namesrv_addr)


HEAD = """
import os, sys, threading
from core_broker.client import ConsumerSettings, ConsumeFromWhere, ConsumeStatus, Message
from core_broker.client import LitePullSettings, MessageModel
from core_broker.client.sync import AdminClient, LitePullConsumer, Producer, PushConsumer
addr, topic, group = sys.argv[1:]
FIRST = ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET
"""

UNSTOPPED = (
    HEAD
    + """
producer = Producer("sender", addr)
producer.start()
future = producer.submit(Message(topic, b"last words"))
settings = ConsumerSettings(consume_from=FIRST, model=MessageModel.BROADCASTING)
consumer = PushConsumer(group, addr, settings=settings)
consumer.subscribe(topic)
received = threading.Event()

@consumer.listener
def listen(messages):
    received.set()
    return ConsumeStatus.CONSUME_SUCCESS

consumer.start()
admin = AdminClient(addr)
admin.cluster_info()
received.wait(30)
print("received", received.is_set())
"""
)

FORKED = (
    HEAD
    + """
producer = Producer("sender", addr)
producer.start()
producer.send(Message(topic, b"parent"))
pid = os.fork()
if pid == 0:
    try:
        producer.send(Message(topic, b"never"))
    except Exception as error:
        print("child:", type(error).__name__, "fork" in str(error), flush=True)
    with Producer("sender", addr) as own:
        own.send(Message(topic, b"child"))
    print("child sent", flush=True)
    os._exit(0)
os.waitpid(pid, 0)
producer.send(Message(topic, b"parent again"))
producer.stop()
print("parent sent")
"""
)


def run(program: str, cluster: ClusterAddrs, topic: str, group: str, home: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program, cluster.namesrv_addr, topic, group],
        check=False,
        cwd=ROOT,
        env={"HOME": str(home), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=180,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def test_a_program_that_just_ends_ends_cleanly(
    quick_cluster: ClusterAddrs, topic: str, group: str, tmp_path: Path
) -> None:
    assert run(UNSTOPPED, quick_cluster, topic, group, tmp_path) == "received True\n"
    (offsets_file,) = tmp_path.rglob("offsets.json")
    assert f'"topic":"{topic}"' in offsets_file.read_text()


def test_a_child_makes_clients_of_its_own(
    quick_cluster: ClusterAddrs, topic: str, group: str, tmp_path: Path
) -> None:
    printed = run(FORKED, quick_cluster, topic, group, tmp_path)
    assert printed == "child: ClientError True\nchild sent\nparent sent\n"
    settings = LitePullSettings(consume_from=FIRST)
    bodies: set[bytes] = set()
    with LitePullConsumer(group, quick_cluster.namesrv_addr, settings=settings) as consumer:
        consumer.subscribe(topic)
        while len(bodies) < 3:
            bodies |= {message.body for message in consumer.poll()}
    assert bodies == {b"parent", b"child", b"parent again"}
