"""Producers under full load, and a reader of a whole topic, for tests with faults during a load.

The message body contains the message number, and a `History` records all messages.
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from contextlib import suppress

from core_broker.errors import TransportError
from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.message.record import decode_records
from core_broker.remoting.client import RemotingClient
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_requests import pull_header, send_header
from tests.support.eventually import eventually
from tests.support.history import Found, History, Queue

Queues = dict[Queue, list[Found]]

PRODUCERS = 4
IN_FLIGHT = 8
QUEUES = 4
ANSWER_TIMEOUT_MS = 30_000
BODY_BYTES = (0, 30, 300, 3000)
#: Response codes with an unknown outcome: flush or copy timed out, or the broker refused the
#: message for a reason possible after the write.
MAY_BE_STORED = frozenset(
    {
        ResponseCode.FLUSH_DISK_TIMEOUT,
        ResponseCode.FLUSH_SLAVE_TIMEOUT,
        ResponseCode.SYSTEM_ERROR,
        ResponseCode.SYSTEM_BUSY,
        ResponseCode.SERVICE_NOT_AVAILABLE,
    }
)


class Load:
    """Sends to one topic until `stop`, or until the broker is unreachable."""

    def __init__(
        self,
        addr: str,
        history: History,
        generator: random.Random,
        topic: str = "T",
        body_bytes: Sequence[int] = BODY_BYTES,
    ) -> None:
        self.history = history
        self.count = 0
        #: The last remark by response code, for answers other than success.
        self.refusals: dict[int, str] = {}
        self._addr = addr
        self._random = generator
        self._topic = topic
        self._body_bytes = body_bytes
        self._is_stopping = False
        self._target = 0
        self._reached = asyncio.Event()

    async def run(self) -> None:
        """Send messages; returns after `stop`, or when the broker is unreachable."""
        clients = [RemotingClient(name=f"load-{number}") for number in range(PRODUCERS)]
        await asyncio.gather(
            *(self._send_loop(client) for client in clients for _ in range(IN_FLIGHT))
        )
        for client in clients:
            await client.close()

    def stop(self) -> None:
        """Stop sending; `run` returns after the last answer."""
        self._is_stopping = True

    async def acknowledged(self, count: int, timeout_s: float = 60.0) -> None:
        """Wait for `count` acknowledged messages."""
        self._target = count
        if self.count < count:
            self._reached.clear()
            await asyncio.wait_for(self._reached.wait(), timeout_s)

    async def _send_loop(self, client: RemotingClient) -> None:
        with suppress(TransportError):
            while not self._is_stopping:
                batch = self._random.choice((1, 1, 1, 4))
                queue_id = self._random.randrange(QUEUES)
                numbers, command = self._request(queue_id, batch)
                answer = await client.invoke(self._addr, command, ANSWER_TIMEOUT_MS)
                self._note(answer, numbers)

    def _request(self, queue_id: int, count: int) -> tuple[list[int], RemotingCommand]:
        queue = (self._topic, queue_id)
        numbers, messages = [], []
        for _ in range(count):
            number = self.history.next_number()
            body = b"%d " % number + self._random.randbytes(self._random.choice(self._body_bytes))
            self.history.begin(number, queue, body)
            numbers.append(number)
            messages.append(Message(self._topic, body, keys=f"k{number}"))
        if count == 1:
            header = send_header(self._topic, f"KEYS\x01k{numbers[0]}", queue_id=queue_id)
            body = messages[0].body
        else:
            header = send_header(self._topic, queue_id=queue_id, batch=True)
            body = encode_batch(messages)
        return numbers, RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, header, body)

    def _note(self, answer: RemotingCommand, numbers: Iterable[int]) -> None:
        if answer.code != ResponseCode.SUCCESS:
            assert answer.code in MAY_BE_STORED, answer.remark
            self.refusals[answer.code] = answer.remark or ""
            return
        first = int(answer.ext_fields["queueOffset"])
        for offset, number in enumerate(numbers, first):
            self.history.stored(number, offset)
            self.count += 1
        if self.count >= self._target:
            self._reached.set()


async def read_topic(addr: str, topic: str = "T") -> Queues:
    """All messages in the queues of a topic."""
    client = RemotingClient(name="reader")
    try:
        queues = range(QUEUES)
        read = await asyncio.gather(*(_read_queue(client, addr, topic, each) for each in queues))
    finally:
        await client.close()
    return {(topic, queue_id): found for queue_id, found in zip(queues, read, strict=True)}


async def read_replica(addr: str, topic: str = "T", timeout_s: float = 120.0) -> Queues:
    """All messages of a topic in a replica, once the replica knows the topic.

    A slave refuses pulls of a topic until it has asked its master for topics.
    """
    client = RemotingClient(name="reader")

    async def is_known() -> bool:
        request = RemotingCommand.request(RequestCode.PULL_MESSAGE, pull_header(topic))
        answer = await client.invoke(addr, request, ANSWER_TIMEOUT_MS)
        return answer.code != ResponseCode.TOPIC_NOT_EXIST

    try:
        await eventually(is_known, timeout_s)
    finally:
        await client.close()
    return await read_topic(addr, topic)


async def _read_queue(client: RemotingClient, addr: str, topic: str, queue_id: int) -> list[Found]:
    found: list[Found] = []
    offset = 0
    while True:
        header = pull_header(topic, offset, queue_id=queue_id)
        request = RemotingCommand.request(RequestCode.PULL_MESSAGE, header)
        answer = await client.invoke(addr, request, ANSWER_TIMEOUT_MS)
        if answer.code in {ResponseCode.TOPIC_NOT_EXIST, ResponseCode.PULL_NOT_FOUND}:
            return found
        offset = int(answer.ext_fields["nextBeginOffset"])
        if answer.code == ResponseCode.SUCCESS:
            found += [
                Found(each.queue_offset, int(each.body.split()[0]), each.body)
                for each in decode_records(answer.body)
            ]
        else:
            # The queue starts at a higher offset, or messages in the queue are lost.
            assert answer.code in {
                ResponseCode.PULL_OFFSET_MOVED,
                ResponseCode.PULL_RETRY_IMMEDIATELY,
            }, answer.remark
