"""Record the decisions of a broker of RocketMQ 5.3.3 about the matrix of ACL 2.0.

python -m tests.compat.record_acl2 [FILE]
"""

import json
import socket
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from core_broker.remoting.bodies import AclInfo, UserInfo, encode_body
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.compat import installing
from tests.compat.java_broker import JavaBroker
from tests.compat.record_acl1 import ANSWER_SECONDS_MAX, answer_to
from tests.support.acl2_matrix import (
    ALLOWED,
    NO_HANDLER,
    RECORDED,
    ROOT,
    SENDERS,
    Sender,
    acls,
    as_text,
    outcome,
    signed_by,
    users,
)
from tests.support.acl2_requests import Asked, requests

_AUTH = "org.apache.rocketmq.auth"
#: Settings of both brokers; RocketMQ needs the class names, Gantry accepts them.
SETTINGS: dict[str, Any] = {
    "authentication_enabled": True,
    "authentication_metadata_provider": (
        f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorization_enabled": True,
    "authorization_metadata_provider": (
        f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
    "init_authentication_user": json.dumps({"username": ROOT[0], "password": ROOT[1]}),
}


def main() -> None:
    """Write the decisions to a file."""
    file = Path(sys.argv[1]) if len(sys.argv) > 1 else RECORDED
    with tempfile.TemporaryDirectory() as folder:
        text = as_text(decisions_of_java(Path(folder)))
    file.write_text(text)
    print(f"{file}: {len(text.splitlines())} lines of {installing.JAVA5_VERSION}")


def decisions_of_java(folder: Path) -> Iterator[tuple[str, str, str]]:
    """Yield request, sender and decision of a new Java broker."""
    broker = JavaBroker(
        installing.JAVA5_VERSION, folder, folder / "store", "127.0.0.1:1", **SETTINGS
    )
    broker.start()
    try:
        create_users(broker.port)
        for title, name, letter in decisions(broker.port):
            # RocketMQ decides before it looks for a handler.
            yield title, name, ALLOWED if letter == NO_HANDLER else letter
    finally:
        broker.kill()


def create_users(port: int) -> None:
    """Create the users and lists of the matrix at the broker on a port."""
    disabled = [user for user in users() if user.user_status == "disable"]
    made = [
        *(_change(Code.AUTH_CREATE_USER, {"username": u.username or ""}, u) for u in users()),
        # RocketMQ creates every user enabled.
        *(_change(Code.AUTH_UPDATE_USER, {"username": u.username or ""}, u) for u in disabled),
        *(_change(Code.AUTH_CREATE_ACL, {"subject": a.subject or ""}, a) for a in acls()),
    ]
    with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS_MAX) as connection:
        for number, asked in enumerate(made):
            answer = _ask(connection, asked, Sender(*ROOT), number)
            assert answer.code == ResponseCode.SUCCESS, f"{asked.body!r}: {answer.remark}"


def _change(code: Code, fields: dict[str, str], body: UserInfo | AclInfo) -> Asked:
    return Asked(code.name, code, (), fields, encode_body(body))


def decisions(port: int) -> Iterator[tuple[str, str, str]]:
    """Yield request, sender and decision of the broker on a port."""
    for name, sender in SENDERS.items():
        with socket.create_connection(
            ("127.0.0.1", port), ANSWER_SECONDS_MAX, source_address=(sender.address, 0)
        ) as connection:
            for number, asked in enumerate(requests()):
                answer = _ask(connection, asked, sender, number)
                yield asked.title, name, outcome(sender, asked, answer.code, answer.remark)


def _ask(connection: socket.socket, asked: Asked, sender: Sender, number: int) -> RemotingCommand:
    command = RemotingCommand.request(asked.code, signed_by(sender, asked), asked.body)
    command.opaque = number
    connection.sendall(command.encode())
    return answer_to(connection, command)


if __name__ == "__main__":
    main()
