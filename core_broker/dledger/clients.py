"""Answers to DLedger's own clients, such as the command tool."""

from core_broker.dledger.codes import DLedgerCode
from core_broker.dledger.messages import (
    AnyResponse,
    AppendRequest,
    GetRequest,
    MetadataRequest,
    MetadataResponse,
    Response,
)
from core_broker.dledger.owner import Standing
from core_broker.dledger.peers import Group


def answer_to_client(
    group: Group,
    standing: Standing,
    request: MetadataRequest | AppendRequest | GetRequest,
) -> AnyResponse:
    """Answer a request for metadata; refuse others, since only the broker appends."""
    code = DLedgerCode.UNSUPPORTED
    if request.group != group.name:
        code = DLedgerCode.UNKNOWN_GROUP
    elif request.remote_id != group.self_id:
        code = DLedgerCode.UNKNOWN_MEMBER
    elif isinstance(request, MetadataRequest):
        return MetadataResponse(
            group=group.name,
            leader_id=standing.leader_id,
            term=standing.term,
            peers={member: group.address(member) for member in group.members},
        )
    return Response(code=code, group=group.name, leader_id=standing.leader_id, term=standing.term)
