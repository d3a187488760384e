"""Sends that access control refuses: forged, damaged, replayed, of unknown and disabled users.

Each kind makes the frames of one connection, all of them to queue 0 of TOPIC.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from core_broker.client import Credentials
from core_broker.client.acl import AclRpcHook
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_requests import send_header

TOPIC: Final = "Flooded"
CANARY: Final = Credentials("canary", "secret-of-canary")
#: A user whose sends are captured and repeated.
CAPTURED: Final = Credentials("captured", "secret-of-captured")
#: A user without permissions, and a disabled user with all of them.
POWERLESS: Final = Credentials("powerless", "secret-of-powerless")
DISABLED: Final = Credentials("disabled", "secret-of-disabled")
SIGNATURE = "Signature"

Damage = Callable[[RemotingCommand], None]


def _command(connection: int, number: int, sender: Credentials | None) -> RemotingCommand:
    body = b"hostile %d %d" % (connection, number)
    command = RemotingCommand.request(RequestCode.SEND_MESSAGE_V2, send_header(TOPIC), body)
    if sender is not None:
        AclRpcHook(sender.access_key, sender.secret_key).before_request("", command)
    return command


class HostileSender(NamedTuple):
    """A kind of hostile sender, and the broker's reason in logs and counters."""

    sender: Credentials | None
    reason: str
    damage: Damage = lambda command: None
    is_replay: bool = False

    def frames(self, connection: int, count: int) -> list[bytes]:
        """The frames of a connection. The first one of a replay is accepted."""
        commands = [_command(connection, number, self.sender) for number in range(count)]
        if self.is_replay:
            commands = commands[:1] * count
        for command in commands:
            self.damage(command)
        return [command.encode() for command in commands]


def _change_body(command: RemotingCommand) -> None:
    command.body = bytes(command.body) + b"!"


def _change_topic(command: RemotingCommand) -> None:
    command.ext_fields["b"] += "X"


def _cut(command: RemotingCommand) -> None:
    command.ext_fields[SIGNATURE] = command.ext_fields[SIGNATURE][:-4]


def _empty(command: RemotingCommand) -> None:
    command.ext_fields[SIGNATURE] = ""


def _garble(command: RemotingCommand) -> None:
    command.ext_fields[SIGNATURE] = "\u5bc6\U0001f600=" * 20


HOSTILE: Final = {
    "another body": HostileSender(CANARY, "bad-signature", _change_body),
    "another topic": HostileSender(CANARY, "bad-signature", _change_topic),
    "a cut signature": HostileSender(CANARY, "bad-signature", _cut),
    "an empty signature": HostileSender(CANARY, "bad-signature", _empty),
    "no Base64": HostileSender(CANARY, "bad-signature", _garble),
    "a wrong key": HostileSender(Credentials("canary", "another-secret"), "bad-signature"),
    "an unknown user": HostileSender(Credentials("nobody", "secret-of-nobody"), "unknown-account"),
    "a disabled user": HostileSender(DISABLED, "disabled-account"),
    "no signature": HostileSender(None, "no-account"),
    "no permission": HostileSender(POWERLESS, "no-permission"),
    "a replay": HostileSender(CAPTURED, "replayed", is_replay=True),
}
