"""Record the decisions of a Java broker with ACL 1.0 about the matrix of tests/support.

python -m tests.compat.record_acl1 [FILE]
"""

import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from core_broker.remoting.command import RemotingCommand
from tests.compat import installing
from tests.compat.java_broker import JavaBroker
from tests.support.acl1_matrix import FILE, RECORDED, SENDERS, requests

VERSION = installing.JAVA_BROKER_VERSIONS[0]
ANSWER_SECONDS_MAX = 60.0


def main() -> None:
    """Write the decisions to a file."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED
    with tempfile.TemporaryDirectory() as folder:
        decisions = ["\t".join(decision) + "\n" for decision in decisions_of_java(Path(folder))]
    file.write_text("".join(decisions))
    print(f"{file}: {len(decisions)} decisions of {VERSION}")


def decisions_of_java(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield request, sender and decision of a new Java broker."""
    broker = JavaBroker(VERSION, folder, folder / "store", "127.0.0.1:1", acl_enable=True)
    (broker.home / "conf" / "plain_acl.yml").write_text(FILE)
    broker.start()
    try:
        yield from decisions(broker.port)
    finally:
        broker.kill()


def decisions(port: int) -> Iterator[tuple[str, str, str]]:
    """Yield request, sender and decision of the broker on a port."""
    for name, sender in SENDERS.items():
        with socket.create_connection(
            ("127.0.0.1", port), ANSWER_SECONDS_MAX, source_address=(sender.address, 0)
        ) as connection:
            for number, asked in enumerate(requests()):
                fields = asked.signed_by(sender)
                command = RemotingCommand.request(asked.code, fields, asked.body)
                command.opaque = number
                connection.sendall(command.encode())
                yield asked.title, name, asked.outcome(answer_to(connection, command).remark)


def answer_to(connection: socket.socket, command: RemotingCommand) -> RemotingCommand:
    """The answer to a command; a Java broker may answer one request twice."""
    while True:
        length = _received(connection, 4)
        answer = RemotingCommand.decode(length + _received(connection, int.from_bytes(length)))
        if answer.is_response and answer.opaque == command.opaque:
            return answer


def _received(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(size - len(data))
        assert part, "the broker closed the connection"
        data += part
    return bytes(data)


if __name__ == "__main__":
    main()
