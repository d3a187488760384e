"""The decisions of ACL 1.0 are those of a Java broker: a recorded matrix of requests."""

import pytest

from core_broker.auth.acl1.demands import Mode
from core_broker.auth.acl1.reading import read_acl_file
from core_broker.auth.acl1.rules import Acl1Rules
from core_broker.auth.contracts import Refusal, Request
from core_broker.remoting.codes import LanguageCode
from core_broker.remoting.codes import RequestCode as Code
from tests.support.acl1_matrix import ALLOWED, FILE, SENDERS, Asked, Sender, recorded, requests

#: Codes that Java 4.9 checks for the signature only, or for a group that the client names.
HOLES = {
    *(Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2, Code.SEND_BATCH_MESSAGE),
    *(Code.QUERY_CONSUMER_OFFSET, Code.GET_MAX_OFFSET, Code.VIEW_MESSAGE_BY_ID),
    *(Code.LOCK_BATCH_MQ, Code.GET_CONSUME_STATS, Code.INVOKE_BROKER_TO_RESET_OFFSET),
}
#: Single sends have the hole only with topics of retries.
RETRY = "%RETRY%"


@pytest.fixture(scope="module")
def java() -> dict[tuple[str, str], str]:
    return recorded()


def rules(mode: Mode) -> Acl1Rules:
    file = read_acl_file("plain_acl.yml", FILE, 0)
    accounts = {account.access_key: account for account in file.accounts}
    return Acl1Rules(1, mode, accounts, file.white_list)


RULES = {mode: rules(mode) for mode in Mode}


def decision(mode: Mode, asked: Asked, sender: Sender) -> str:
    request = Request(asked.code, 399, LanguageCode.JAVA, asked.signed_by(sender), asked.body)
    try:
        RULES[mode].admit(sender.address, request)
    except Refusal as refusal:
        return asked.outcome(refusal.remark)
    return ALLOWED


@pytest.mark.parametrize("name", SENDERS)
def test_the_java_mode_decides_as_java(name: str, java: dict[tuple[str, str], str]) -> None:
    for asked in requests():
        ours = decision(Mode.JAVA, asked, SENDERS[name])
        assert ours == java[asked.title, name], asked.title


@pytest.mark.parametrize("name", SENDERS)
def test_the_strict_mode_refuses_what_java_refuses_and_closes_the_holes(
    name: str, java: dict[tuple[str, str], str]
) -> None:
    closed = set()
    for asked in requests():
        ours, theirs = decision(Mode.STRICT, asked, SENDERS[name]), java[asked.title, name]
        if theirs != ALLOWED:
            assert ours != ALLOWED, asked.title
        elif ours != ALLOWED:
            closed.add(asked.code)
            is_single = asked.code in {Code.SEND_MESSAGE, Code.SEND_MESSAGE_V2}
            assert not is_single or asked.names[0].startswith(RETRY), asked.title
    assert closed <= HOLES


def test_the_recording_has_the_whole_matrix(java: dict[tuple[str, str], str]) -> None:
    assert java.keys() == {(asked.title, name) for asked in requests() for name in SENDERS}
