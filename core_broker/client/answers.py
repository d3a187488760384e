"""Refusals in the answers of servers. Pure."""

from core_broker.errors import RequestRefused
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand


def checked(answer: RemotingCommand, addr: str) -> RemotingCommand:
    """Return a successful answer; raise RequestRefused for any other response code."""
    if answer.code != ResponseCode.SUCCESS:
        raise refusal(answer, addr)
    return answer


def refusal(answer: RemotingCommand, addr: str) -> RequestRefused:
    """The error for an answer refusing a request; ``addr`` is the address of the server."""
    return RequestRefused(answer.code, answer.remark or "", addr)
