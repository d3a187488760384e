"""Administration of access control lists: codes 50 to 54, refused with aclEnable=false.

aclEnable=true is refused at start-up, so every answer is the answer of a broker without access
control. A Java broker throws a NullPointerException in that case: the answers to 50, 51 and 53 have
codes 209, 210 and 211 and no remark, and 52 and 54 stay unanswered until the tool's timeout. The
response codes are compatible with RocketMQ's AdminBrokerProcessor. Gantry adds a remark with the
reason, and also answers 52 and 54.
"""

from core_broker.processors.context import Handler
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection

SWITCHED_OFF = "access control is switched off on this broker (aclEnable=false)"


def access_handlers() -> dict[int, Handler]:
    """The handlers by request code."""
    return {
        RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: _refuse_update,
        RequestCode.DELETE_ACL_CONFIG: _refuse_deletion,
        RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: _refuse_addresses,
        RequestCode.GET_BROKER_CLUSTER_ACL_INFO: _refuse_query,
        RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: _refuse_query,
    }


def _refuse_update(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    """UPDATE_AND_CREATE_ACL_CONFIG (50)."""
    return _refusal(ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED)


def _refuse_deletion(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    """DELETE_ACL_CONFIG (51)."""
    return _refusal(ResponseCode.DELETE_ACL_CONFIG_FAILED)


def _refuse_addresses(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    """UPDATE_GLOBAL_WHITE_ADDRS_CONFIG (53)."""
    return _refusal(ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED)


def _refuse_query(connection: Connection, request: RemotingCommand) -> RemotingCommand:
    """GET_BROKER_CLUSTER_ACL_INFO (52) and GET_BROKER_CLUSTER_ACL_CONFIG (54)."""
    return _refusal(ResponseCode.SYSTEM_ERROR)


def _refusal(code: ResponseCode) -> RemotingCommand:
    return RemotingCommand.response(code, SWITCHED_OFF)
