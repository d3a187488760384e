"""The null server of the bounds (`null_loop.c`): TCP, and nothing of a broker.

The server sends the answers of a broker, byte for byte as long, and reads nothing of a request but
its length. With a log, each byte of a message is copied once through a mapped file.
"""

import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from benchmarks.bare import BORN_MS, LOG_BYTES, write_zeros
from benchmarks.c_programs import compiled
from benchmarks.processes import Measured
from benchmarks.requests import BODY_BYTES, KEY, OFFSET, PULL_COUNT, TOPIC
from core_broker.config import BrokerConfig
from core_broker.message.model import Host, MessageInner
from core_broker.message.record import encode_record
from core_broker.processors.added_properties import added_properties
from core_broker.processors.pull import answer_of
from core_broker.processors.put_answers import message_id, stored_answer
from core_broker.remoting.codes import ResponseCode
from core_broker.store import GetResult, GetStatus

#: When the disk has a send: some time, before its answer, before its answer by a thread's flush.
Flushing = Literal["later", "loop", "thread"]

SOURCE: Final = Path(__file__).with_name("null_loop.c")
HOST: Final[Host] = ("127.0.0.1", 10911)
#: Offsets of the answers, with as many digits as those of a broker under load.
QUEUE_OFFSET: Final = 123_456


class Answer(NamedTuple):
    """An answer: the lengths of the frame with the header, the body, and the messages of a pull."""

    head: bytes
    body: bytes = b""
    messages: int = 0


def send_answer(messages: int) -> Answer:
    """The answer to a send of some messages."""
    ids = ",".join(message_id(HOST, number) for number in range(messages))
    return Answer(stored_answer(BrokerConfig(), ids, 0, QUEUE_OFFSET).encode())


def pull_answer() -> Answer:
    """The answer to a pull, with records of the benchmark's messages."""
    properties = {"KEYS": KEY, "UNIQ_KEY": KEY, **added_properties(BrokerConfig())}
    message = MessageInner(
        *(TOPIC, 0, b"x" * BODY_BYTES, properties),
        born_timestamp=BORN_MS,
        born_host=HOST,
        store_host=HOST,
    )
    record = encode_record(message, queue_offset=0, physical_offset=0, store_timestamp=BORN_MS)
    found = GetResult(GetStatus.FOUND, (), OFFSET, 0, QUEUE_OFFSET)
    answer = answer_of(ResponseCode.SUCCESS, found, 0)
    answer.body = record * PULL_COUNT
    frame = answer.encode()
    return Answer(frame[: -len(answer.body)], answer.body, PULL_COUNT)


@contextmanager
def running_null(
    answer: Answer, folder: Path | None = None, *, flushing: Flushing = "later"
) -> Iterator[tuple[Measured, str]]:
    """Start the server; yields the process and its address, and kills the process at the end.

    With a folder, messages are copied through a log there.
    """
    log = "-" if folder is None else str(_log(folder, answer.body))
    program = compiled(SOURCE, "null_loop", ["-pthread"])
    sync = get_args(Flushing).index(flushing)
    command = [str(program), str(answer.messages), log, str(sync)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as server:
        assert server.stdin is not None
        assert server.stdout is not None
        try:
            head = struct.pack(">I", len(answer.head)) + answer.head
            server.stdin.write(head + answer.body)
            server.stdin.close()
            yield Measured(server, 0.0), f"127.0.0.1:{int(server.stdout.readline())}"
        finally:
            server.kill()


def _log(folder: Path, body: bytes) -> Path:
    """A file of zeros, or of copies of a body."""
    path = folder / "null-log"
    with path.open("wb") as file:
        if body:
            for _ in range(LOG_BYTES // len(body)):
                file.write(body)
        else:
            write_zeros(file.fileno(), LOG_BYTES)
    return path
