"""The handlers of the codes 3001 to 3010, which administer the users of ACL 2.0.

A server without users imports neither users nor rules; each code has a refusal as its answer.
"""

from typing import TYPE_CHECKING

from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch
from core_broker.remoting.saved_file import SavedFile

if TYPE_CHECKING:
    from core_broker.auth.acl2.owner import AccessOwner
    from core_broker.auth.gate import Gate

SWITCHED_OFF = "access control is switched off on this server (authenticationEnabled=false)"


def user_handlers(
    owner: "AccessOwner | None",
    file: SavedFile | None,
    gate: "Gate | None",
    *,
    passwords_readable: bool,
) -> dict[int, Dispatch]:
    """Return the handlers by request code; without users each refuses."""
    codes = range(RequestCode.AUTH_CREATE_USER, RequestCode.AUTH_LIST_ACL + 1)
    if owner is None or file is None or gate is None:
        return dict.fromkeys(codes, _switched_off)
    from core_broker.auth.users_processor import UserProcessor

    users = UserProcessor(owner, file, gate, passwords_readable=passwords_readable)
    return {
        RequestCode.AUTH_CREATE_USER: users.create_user,
        RequestCode.AUTH_UPDATE_USER: users.update_user,
        RequestCode.AUTH_DELETE_USER: users.delete_user,
        RequestCode.AUTH_GET_USER: users.get_user,
        RequestCode.AUTH_LIST_USER: users.list_users,
        RequestCode.AUTH_CREATE_ACL: users.create_acl,
        RequestCode.AUTH_UPDATE_ACL: users.update_acl,
        RequestCode.AUTH_DELETE_ACL: users.delete_acl,
        RequestCode.AUTH_GET_ACL: users.get_acl,
        RequestCode.AUTH_LIST_ACL: users.list_acls,
    }


def _switched_off(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SYSTEM_ERROR, SWITCHED_OFF)
