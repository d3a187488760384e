"""Topics, queues and held answers of the fast path in Python. Compiled: kernel/queues.py."""

from typing import NamedTuple

from core_broker.message.record_layout import RECORD_BYTES_MIN
from core_broker.remoting.connection import Connection
from core_broker.store.consume_queue import ConsumeQueue


class PythonQueue:
    """A queue of a topic, with the units of the iteration."""

    __slots__ = ("end", "messages", "next_offset", "queue", "queue_id", "stored_bytes", "units")

    def __init__(self, queue: ConsumeQueue, queue_id: int) -> None:
        self.queue = queue
        self.queue_id = queue_id
        self.units = bytearray()
        self.next_offset = 0
        self.end = 0
        self.messages = 0
        self.stored_bytes = 0

    def enter_units(self) -> None:
        """Append the units of the iteration to the store's queue."""
        self.queue.append_units(self.units, self.end)
        self.units = bytearray()

    def forget_counts(self) -> None:
        """Count messages and bytes from 0 again."""
        self.messages = self.stored_bytes = 0


class PythonTopic:
    """A topic with sends for the fast path, and the queues of the topic."""

    __slots__ = ("name", "queues", "record_bytes_min", "text", "text_with_length")

    def __init__(self, name: bytes, queue_count: int) -> None:
        self.name = name
        self.text = name.decode()
        self.text_with_length = bytes((len(name),)) + name
        self.record_bytes_min = RECORD_BYTES_MIN + len(name)
        self.queues: list[PythonQueue | None] = [None] * queue_count


class PythonHeldAnswers(NamedTuple):
    """Answers to a connection, held until the disk has the messages: frames, and their number."""

    connection: Connection
    answers: bytes
    answer_count: int
