"""Bodies of DLedger: the bytes that Java writes, and bytes that nobody should."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.dledger.codes import PushKind, VoteResult
from core_broker.dledger.messages import (
    REQUESTS,
    Entry,
    HeartbeatRequest,
    PushRequest,
    PushResponse,
    Response,
    VoteRequest,
    VoteResponse,
    decode,
    encode,
    push_request,
)
from core_broker.errors import ProtocolError

HEARTBEAT = b'{"code":200,"group":"g","leaderId":"n0","localId":"n0","remoteId":"n1","term":3}'
PUSH = (
    b'{"batch":false,"batchEntry":[],"code":200,"commitIndex":-1,"count":1,"entry":{"body":'
    b'"aGVsbG8=","bodyCrc":0,"chainCrc":0,"channel":0,"index":0,"magic":1,"pos":0,"size":53,'
    b'"term":0},"firstEntryIndex":0,"group":"g","lastEntryIndex":0,"leaderId":"n0","localId":'
    b'"n0","remoteId":"n1","term":0,"totalSize":0,"type":"APPEND"}'
)
ENTRY = Entry(body=b"hello", index=0, pos=0, size=53, term=0)


def test_a_heartbeat_has_the_bytes_of_java() -> None:
    beat = decode(HeartbeatRequest, HEARTBEAT)
    assert (beat.leader_id, beat.remote_id, beat.term) == ("n0", "n1", 3)
    assert encode(beat) == HEARTBEAT


def test_a_push_has_the_bytes_of_java() -> None:
    push = push_request(PushKind.APPEND, [ENTRY], -1)
    push.group, push.term = "g", 0
    push.leader_id = push.local_id = "n0"
    push.remote_id = "n1"
    assert encode(push) == PUSH
    assert decode(PushRequest, PUSH).entries == [ENTRY]


def test_a_push_of_several_entries_is_a_batch_without_a_single_entry() -> None:
    second = Entry(body=b"x", index=1, pos=53, size=49, term=0)
    body = encode(push_request(PushKind.APPEND, [ENTRY, second], 0))
    push = decode(PushRequest, body)
    assert push.entries == [ENTRY, second]
    assert push.batch is True
    assert b'"entry":' not in body


def test_members_without_a_value_are_absent() -> None:
    assert encode(Response(term=-1)) == b'{"code":200,"term":-1}'
    assert b"index" not in encode(PushResponse()).replace(b"Index", b"")
    assert decode(PushResponse, b'{"index":null,"code":200}').index is None


def test_votes_have_names() -> None:
    answer = VoteResponse(term=2, vote_result=VoteResult.REJECT_ALREADY_VOTED)
    assert encode(answer) == b'{"code":200,"term":2,"voteResult":"REJECT_ALREADY_VOTED"}'
    with pytest.raises(ProtocolError):
        decode(VoteResponse, b'{"voteResult":"MAYBE"}')


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"{",
        b"[" * 100_000,
        b'{"term":"3"}',
        b'{"term":9223372036854775808}',
        b'{"term":1.5}',
        b'{"leaderId":7}',
        b'{"leaderId":"' + b"n" * 300 + b'"}',
        b"\xff\xfe",
    ],
)
@pytest.mark.parametrize("kind", [HeartbeatRequest, VoteRequest, PushRequest])
def test_other_bodies_are_refused(kind: type, body: bytes) -> None:
    with pytest.raises(ProtocolError, match="of DLedger"):
        decode(kind, body)


def test_bytes_that_are_no_base64_are_refused() -> None:
    with pytest.raises(ProtocolError):
        decode(PushRequest, PUSH.replace(b"aGVsbG8=", b"aGVsbG8*"))


def test_too_many_entries_are_refused() -> None:
    entry = encode(push_request(PushKind.APPEND, [ENTRY, ENTRY], 0))
    one = entry[entry.index(b"[{") + 1 : entry.index(b"},{") + 1]
    body = b'{"batchEntry":[' + b",".join([one] * 5000) + b"]}"
    with pytest.raises(ProtocolError):
        decode(PushRequest, body)


@given(st.binary(max_size=200), st.sampled_from(sorted(REQUESTS)))
def test_any_bytes_are_a_body_or_refused(data: bytes, code: int) -> None:
    try:
        decode(REQUESTS[code], data)
    except ProtocolError:
        return


@pytest.mark.parametrize("name", ["index", "pos", "term"])
def test_numbers_at_the_end_of_their_range_are_refused(name: str) -> None:
    """A term behind which no other comes would stop the elections of a group for ever."""
    fields = {"body": b"x", "index": 0, "pos": 0, "size": 49, "term": 0} | {name: 2**62}
    push = push_request(PushKind.TRUNCATE, [Entry(**fields)], -1)
    with pytest.raises(ProtocolError, match=name):
        decode(PushRequest, encode(push))


def test_a_term_at_the_end_of_its_range_is_refused() -> None:
    for kind in (HeartbeatRequest, VoteRequest, PushRequest, VoteResponse, Response):
        with pytest.raises(ProtocolError, match="term"):
            decode(kind, b'{"term":9223372036854775807}')
