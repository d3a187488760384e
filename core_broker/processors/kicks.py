"""Disconnection of one client by an administrator: Gantry's private code 60006.

    clientId · group (optional) · reason      →      the addresses of the closed connections

With a group, the broker closes the client's connections that consume in the group, otherwise every
connection of the client. A closed connection leaves all of its groups, and the remaining members
divide the queues anew. The client may reconnect at once: nobody is banned.
"""

import logging
from typing import cast

from core_broker.auth.contracts import Request
from core_broker.auth.refusals import shown_name
from core_broker.errors import RequestRefused
from core_broker.processors.admission import NAME_CHARS_MAX
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import encode_body
from core_broker.remoting.bodies.inventory import KickedClientBody
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import KickClientRequestHeader

log = logging.getLogger(__name__)

#: Maximum length of a reason, characters.
REASON_CHARS_MAX = 200
#: Maximum connections closed by one request; the answer says whether more are left.
CONNECTIONS_PER_KICK_MAX = 256


class KickProcessor:
    """Closes the connections of a client."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def kick(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """KICK_CLIENT (60006): close the connections of a client id, with a logged reason.

        The connection of the request itself stays open: its answer must reach the administrator.
        """
        header = request.header(KickClientRequestHeader)
        reason = _checked_reason(header.reason)
        if not header.client_id or len(header.client_id) > NAME_CHARS_MAX:
            raise _refused(f"clientId must have 1 to {NAME_CHARS_MAX} characters")
        found = self._connections(header.client_id, header.group or "")
        if not found:
            where = f" in group {shown_name(header.group)}" if header.group else ""
            raise _refused(f"no client {shown_name(header.client_id)} is connected{where}")
        others = [each for each in found if each is not connection]
        if not others:
            raise _refused("the request came by the only connection of the client")
        closed, left = others[:CONNECTIONS_PER_KICK_MAX], others[CONNECTIONS_PER_KICK_MAX:]
        log.warning(
            "client %s is kicked%s: %d connections, by %s at %s, reason: %s",
            shown_name(header.client_id),
            f" from group {shown_name(header.group)}" if header.group else "",
            len(closed),
            self._account(connection, request),
            connection.peer,
            reason,
        )
        for each in closed:
            each.close(f"kicked: {reason}")
        body = KickedClientBody(addrs=[each.peer for each in closed], left=len(left))
        return RemotingCommand.response(body=encode_body(body))

    def _connections(self, client_id: str, group: str) -> list[Connection]:
        """Return the open connections of the client, each once; of a group's members if named."""
        consumers, producers = self._ctx.consumers, self._ctx.producers
        channels = dict.fromkeys(consumers.channels_of(client_id, group))
        if not group:
            channels |= dict.fromkeys(producers.channels_of(client_id))
        return [cast("Connection", channel) for channel in channels]

    def _account(self, connection: Connection, request: RemotingCommand) -> str:
        """Return the account that signed the request, for the log."""
        gate = self._ctx.gate
        if gate is None:
            return "(no access control)"
        account = gate.identify(connection.peer_host, Request.of(request)).account
        return shown_name(account) if account else "(white list)"


def _checked_reason(reason: str) -> str:
    """Return the reason without outer spaces; raises RequestRefused for an unfit one."""
    text = reason.strip(" ")
    if not text or len(text) > REASON_CHARS_MAX:
        raise _refused(f"reason must have 1 to {REASON_CHARS_MAX} characters")
    if not text.isprintable():
        raise _refused("reason must be one line without control characters")
    return text


def _refused(text: str) -> RequestRefused:
    return RequestRefused(ResponseCode.SYSTEM_ERROR, text)
