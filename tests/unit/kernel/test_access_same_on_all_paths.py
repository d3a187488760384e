"""Access control on all paths: equal decisions, and a refused request never reaches the store."""

from pathlib import Path

import pytest

from core_broker.auth.signature import SIGNATURE
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from tests.support.access_rules import gate_with, signed
from tests.support.send_frames import common_case_fields, frame
from tests.support.two_paths import FAST_PATHS, OnePath

TOPICS = (("T", 4), ("Other-Topic", 4))
BODY = b"body"
SEND = RequestCode.SEND_MESSAGE_V2


def send(number: int, fields: dict[str, str], body: bytes = BODY, flag: int = 0) -> bytes:
    return frame(fields, body, code=SEND, flag=flag, opaque=number)


def tampered(fields: dict[str, str], **changes: str) -> dict[str, str]:
    return {**fields, **changes}


def answers(told: bytes) -> list[RemotingCommand]:
    return FrameSplitter(1 << 24).feed(told)


FIELDS = common_case_fields(1)
SIGNED = signed(FIELDS, BODY)
REFUSED = {
    "unsigned": (FIELDS, BODY),
    "without a signature": ({**FIELDS, "AccessKey": "alice"}, BODY),
    "of an unknown account": (signed(FIELDS, BODY, "mallory"), BODY),
    "of an account without permission": (signed(FIELDS, BODY, "bob"), BODY),
    "under another name": (tampered(SIGNED, AccessKey="bob"), BODY),
    "with another body": (SIGNED, b"Body"),
    "with an empty body": (SIGNED, b""),
    "to another queue": (tampered(SIGNED, e="2"), BODY),
    "with another property": (tampered(SIGNED, i="KEYS\x01other"), BODY),
    "with an added field": (tampered(SIGNED, zz="1"), BODY),
    "with a wrong signature": (tampered(SIGNED, Signature=SIGNED[SIGNATURE][::-1]), BODY),
    "with a cut signature": (tampered(SIGNED, Signature=SIGNED[SIGNATURE][:-2]), BODY),
    "with a long signature": (tampered(SIGNED, Signature=SIGNED[SIGNATURE] + "A"), BODY),
}


@pytest.mark.parametrize("fast_path", [*FAST_PATHS, "slow"])
@pytest.mark.parametrize("flag", [0, 2])
@pytest.mark.parametrize("case", REFUSED)
async def test_a_refused_send_reaches_the_store_on_no_path(
    tmp_path: Path, fast_path: str, flag: int, case: str
) -> None:
    path = OnePath(tmp_path, TOPICS, fast_path=fast_path, gate=gate_with())
    peer = path.peer()
    fields, body = REFUSED[case]
    # An admitted send comes first, so that every cache knows account and topic.
    path.hear(peer, send(1, SIGNED) + send(2, fields, body, flag) + send(3, SIGNED))
    (told,) = await path.settle()
    expected = {1: ResponseCode.SUCCESS, 2: ResponseCode.SYSTEM_ERROR, 3: ResponseCode.SUCCESS}
    if flag:
        del expected[2]
    assert {each.opaque: each.code for each in answers(told)} == expected
    stored = [path.broker.ctx.store.queue_range("T", queue)[1] for queue in range(4)]
    assert stored == [0, 2, 0, 0]
    await path.close()
