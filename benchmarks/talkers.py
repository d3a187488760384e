"""What the load generator says: requests made ready beforehand, answers only skimmed.

A talker owns one connection's conversation. `ask` returns the next request, `hear` takes the header
of an answer and returns how many messages it confirms. Only what differs from one request to the
next is put together at the time of sending.
"""

import struct
from typing import Protocol

from core_broker.message.batch import encode_batch
from core_broker.message.model import Message
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers.consume import PullMessageRequestHeader
from core_broker.remoting.headers.produce import SendMessageRequestHeaderV2

TOPIC = "Bench"
GROUP = "bench"
QUEUES = 8
BODY_BYTES = 1024
PULL_COUNT = 32

# A key of fixed width that is unlike any other text in the frame.
_KEY = b"KEYKEYKEYKEYKEYK"
_OFFSET = 987_654_321_987_654_321
_SUBSCRIPTION_IN_REQUEST = 4
_SUCCESS = b'"code":0,'


class Talker(Protocol):
    """One side of a conversation."""

    def ask(self) -> bytes:
        """Return the next request, or b"" when there is nothing more to ask."""

    def hear(self, header: bytes) -> int:
        """Take the header of an answer; return how many messages it confirms."""


class Refused(Exception):
    """The broker answered with an error; the figures would be worth nothing."""


class SendTalker:
    """Sends messages of 1 KiB with a unique key each, one or several in a request."""

    def __init__(self, number: int, batch: int = 1) -> None:
        self._batch = batch
        self._next = number << 40
        frame = _batch_frame(number, batch) if batch > 1 else _send_frame(number)
        self._pieces = frame.split(_KEY)

    def ask(self) -> bytes:
        """Return a request; there is always one more."""
        parts = [self._pieces[0]]
        for piece in self._pieces[1:]:
            self._next += 1
            parts += (b"%016X" % self._next, piece)
        return b"".join(parts)

    def hear(self, header: bytes) -> int:
        """Count the messages of the request that is answered."""
        if _SUCCESS not in header:
            raise Refused(header.decode("utf-8", "replace"))
        return self._batch


class PullTalker:
    """Reads one queue from its begin to its end, 32 messages a request."""

    def __init__(self, number: int) -> None:
        frame = _pull_frame(number % QUEUES)
        self._head, self._tail = frame[8:].split(str(_OFFSET).encode())
        self._offset = 0
        self._done = False

    def ask(self) -> bytes:
        """Return the request for the next messages, b"" after the last ones."""
        if self._done:
            return b""
        header = self._head + str(self._offset).encode() + self._tail
        return struct.pack(">ii", 4 + len(header), len(header)) + header

    def hear(self, header: bytes) -> int:
        """Move to the next offset."""
        before = self._offset
        if _SUCCESS in header:
            self._offset = _number_after(header, b'"nextBeginOffset":"')
        else:
            self._done = True
        return self._offset - before


def _send_frame(number: int) -> bytes:
    properties = f"KEYS\x01{_KEY.decode()}\x02UNIQ_KEY\x01{_KEY.decode()}"
    header = _send_header(number, properties, is_batch=False)
    return RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, header, b"x" * BODY_BYTES).encode()


def _batch_frame(number: int, batch: int) -> bytes:
    key = _KEY.decode()
    body = encode_batch(
        Message(TOPIC, b"x" * BODY_BYTES, properties={"KEYS": key, "UNIQ_KEY": key})
        for _ in range(batch)
    )
    header = _send_header(number, "", is_batch=True)
    return RemotingCommand.request(RequestCode.SEND_BATCH_MESSAGE, header, body).encode()


def _send_header(number: int, properties: str, *, is_batch: bool) -> SendMessageRequestHeaderV2:
    return SendMessageRequestHeaderV2(
        producer_group=GROUP,
        topic=TOPIC,
        default_topic="TBW102",
        default_topic_queue_nums=QUEUES,
        queue_id=number % QUEUES,
        sys_flag=0,
        born_timestamp=1_700_000_000_000,
        flag=0,
        properties=properties,
        batch=is_batch,
    )


def _pull_frame(queue: int) -> bytes:
    header = PullMessageRequestHeader(
        consumer_group=GROUP,
        topic=TOPIC,
        queue_id=queue,
        queue_offset=_OFFSET,
        max_msg_nums=PULL_COUNT,
        sys_flag=_SUBSCRIPTION_IN_REQUEST,
        commit_offset=0,
        suspend_timeout_millis=1000,
        sub_version=0,
        subscription="*",
        expression_type="TAG",
    )
    return RemotingCommand.request(RequestCode.PULL_MESSAGE, header).encode()


def _number_after(header: bytes, name: bytes) -> int:
    start = header.index(name) + len(name)
    return int(header[start : header.index(b'"', start)])
