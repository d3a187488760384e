"""Administration of users and access control lists (ACL 2.0): codes 3001 to 3010.

Answers have the codes and remarks of RocketMQ 5.3.3's AdminBrokerProcessor; a resource or user that
does not exist is an empty answer. Passwords are returned only with userPasswordReadable, and only
to super users.
"""

from collections.abc import Callable, Mapping
from typing import Any

from core_broker.auth.acl2.bodies import acl_info, acl_infos, user_info, user_infos
from core_broker.auth.acl2.model import Acl
from core_broker.auth.acl2.owner import AccessOwner
from core_broker.auth.acl2.tables import (
    AccessTables,
    create_user,
    delete_acl,
    delete_user,
    known_subject,
    put_acl,
    update_user,
)
from core_broker.auth.contracts import Request
from core_broker.auth.gate import Gate
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import AclInfo, UserInfo, decode_request, encode_body
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    CreateAclRequestHeader,
    CreateUserRequestHeader,
    DeleteAclRequestHeader,
    DeleteUserRequestHeader,
    GetAclRequestHeader,
    GetUserRequestHeader,
    ListAclsRequestHeader,
    ListUsersRequestHeader,
    UpdateAclRequestHeader,
    UpdateUserRequestHeader,
)
from core_broker.remoting.saved_file import SavedFile

#: Maximum size of a body with a user or a list, bytes.
BODY_BYTES_MAX = 256 * 1024
#: Maximum size of a kept body with all lists, bytes. Those of 5,000 users have 3 MB.
KEPT_BYTES_MAX = 16 * 1024 * 1024


class UserProcessor:
    """Changes are in force at once, and answered when they are on disk."""

    def __init__(
        self, owner: AccessOwner, file: SavedFile, gate: Gate, *, passwords_readable: bool
    ) -> None:
        self._owner = owner
        self._file = file
        self._gate = gate
        self._passwords_readable = passwords_readable
        #: The lists of the last answer with all lists, and its body.
        self._listed: tuple[Mapping[str, Acl], bytes] | None = None

    def create_user(self, connection: Connection, request: RemotingCommand) -> None:
        """AUTH_CREATE_USER (3001)."""
        username = _username(request.header(CreateUserRequestHeader).username)
        info = decode_request(UserInfo, request.body, BODY_BYTES_MAX)
        by_super = self._by_super(connection, request)
        self._change(
            connection,
            request,
            lambda tables: create_user(tables, username, info, by_super=by_super),
        )

    def update_user(self, connection: Connection, request: RemotingCommand) -> None:
        """AUTH_UPDATE_USER (3002)."""
        username = _username(request.header(UpdateUserRequestHeader).username)
        info = decode_request(UserInfo, request.body, BODY_BYTES_MAX)
        by_super = self._by_super(connection, request)
        self._change(
            connection,
            request,
            lambda tables: update_user(tables, username, info, by_super=by_super),
        )

    def delete_user(self, connection: Connection, request: RemotingCommand) -> None:
        """AUTH_DELETE_USER (3003)."""
        username = request.header(DeleteUserRequestHeader).username
        by_super = self._by_super(connection, request)
        self._change(
            connection, request, lambda tables: delete_user(tables, username, by_super=by_super)
        )

    def get_user(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """AUTH_GET_USER (3004)."""
        username = _username(request.header(GetUserRequestHeader).username)
        user = self._owner.tables.users.get(username)
        if user is None:
            return RemotingCommand.response()
        return _answer(user_info(user, with_password=self._shows_passwords(connection, request)))

    def list_users(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """AUTH_LIST_USER (3005)."""
        part = request.header(ListUsersRequestHeader).filter
        shows = self._shows_passwords(connection, request)
        return _answer(user_infos(self._owner.tables, part, with_password=shows))

    def create_acl(self, connection: Connection, request: RemotingCommand) -> None:
        """AUTH_CREATE_ACL (3006)."""
        self._put_acl(connection, request, request.header(CreateAclRequestHeader).subject)

    def update_acl(self, connection: Connection, request: RemotingCommand) -> None:
        """AUTH_UPDATE_ACL (3007)."""
        self._put_acl(connection, request, request.header(UpdateAclRequestHeader).subject)

    def _put_acl(self, connection: Connection, request: RemotingCommand, subject: str) -> None:
        if not request.body:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, "The body of acl is null")
        info = decode_request(AclInfo, request.body, BODY_BYTES_MAX)
        self._change(connection, request, lambda tables: put_acl(tables, subject, info))

    def delete_acl(self, connection: Connection, request: RemotingCommand) -> None:
        """AUTH_DELETE_ACL (3008)."""
        header = request.header(DeleteAclRequestHeader)
        self._change(
            connection,
            request,
            lambda tables: delete_acl(tables, header.subject, header.policy_type, header.resource),
        )

    def get_acl(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """AUTH_GET_ACL (3009)."""
        tables = self._owner.tables
        subject = known_subject(tables, request.header(GetAclRequestHeader).subject)
        acl = tables.acls.get(subject)
        return RemotingCommand.response() if acl is None else _answer(acl_info(subject, acl))

    def list_acls(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """AUTH_LIST_ACL (3010)."""
        header = request.header(ListAclsRequestHeader)
        if header.subject_filter or header.resource_filter:
            tables = self._owner.tables
            return _answer(acl_infos(tables, header.subject_filter, header.resource_filter))
        return RemotingCommand.response(body=self._all_lists())

    def _all_lists(self) -> bytes:
        """The body with all lists, kept until a list changes: changed lists are another map.

        Encoding 5,000 lists holds the event loop for some 200 ms.
        """
        tables = self._owner.tables
        if self._listed is not None and self._listed[0] is tables.acls:
            return self._listed[1]
        body = _body(acl_infos(tables, "", ""))
        self._listed = (tables.acls, body) if len(body) <= KEPT_BYTES_MAX else None
        return body

    def _change(
        self,
        connection: Connection,
        request: RemotingCommand,
        change: Callable[[AccessTables], AccessTables],
    ) -> None:
        self._file.check_capacity()
        self._owner.change(change(self._owner.tables))
        self._file.answer_when_saved(connection, request)

    def _by_super(self, connection: Connection, request: RemotingCommand) -> bool:
        """Whether a super user sent the request."""
        return self._gate.identify(connection.peer_host, Request.of(request)).is_admin

    def _shows_passwords(self, connection: Connection, request: RemotingCommand) -> bool:
        return self._passwords_readable and self._by_super(connection, request)


def _username(text: str) -> str:
    if not text:
        raise RequestRefused(ResponseCode.INVALID_PARAMETER, "The username is blank")
    return text


def _answer(body: Any) -> RemotingCommand:
    return RemotingCommand.response(body=_body(body))


def _body(body: Any) -> bytes:
    return encode_body(body) if body else b""
