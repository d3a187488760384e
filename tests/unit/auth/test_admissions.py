"""What the gate remembers for fast paths: bounded, until the rules change."""

import pytest

from core_broker.auth.admissions import ADMISSIONS_MAX, Admissions, joined
from core_broker.auth.contracts import Established, Identity, Refusal, Request
from core_broker.auth.signature import SigningKey
from core_broker.remoting.codes import LanguageCode
from core_broker.remoting.codes import RequestCode as Code

ADDRESS = "10.0.0.1"
ALICE = joined(ADDRESS, "alice")
KEY = SigningKey("12345678")


def identity(
    account: str = "alice",
    how: Established = Established.SIGNATURE,
    key: SigningKey | None = KEY,
) -> Identity:
    return Identity(account, False, how, key)


def request(code: int = Code.SEND_MESSAGE_V2, **fields: str) -> Request:
    return Request(code, 0, LanguageCode.JAVA, fields, b"")


def test_a_resource_is_remembered_with_its_code_and_all_names() -> None:
    admissions = Admissions()
    admissions.note(ADDRESS, request(b="T"), identity())
    pull = request(Code.PULL_MESSAGE, topic="T", consumerGroup="g")
    admissions.note(ADDRESS, pull, identity())
    account = admissions.accounts[ALICE]
    assert account.signing_key is KEY
    assert account.resources == {joined("310", "T"), joined("11", "T", "g")}


def test_keys_of_different_names_differ() -> None:
    assert joined("a", "bc") != joined("ab", "c")
    assert joined("a") != joined("a", "")


@pytest.mark.parametrize(
    ("asked", "sender"),
    [
        (request(b="%RETRY%g"), identity()),
        (request(Code.UPDATE_AND_CREATE_TOPIC, topic="T"), identity()),
        (request(b="T"), identity(key=None)),
        (request(b="T"), identity(how=Established.ACCOUNT_WHITE_LIST)),
        (request(b="T"), identity("", Established.NOT_CHECKED, None)),
    ],
)
def test_requests_that_only_the_rules_can_decide_are_not_remembered(
    asked: Request, sender: Identity
) -> None:
    admissions = Admissions()
    admissions.note(ADDRESS, asked, sender)
    assert not admissions.accounts
    assert not admissions.white_addresses


def test_codes_that_observers_must_see_are_not_remembered() -> None:
    admissions = Admissions({Code.PULL_MESSAGE})
    admissions.note(ADDRESS, request(b="T"), identity())
    assert not admissions.accounts


def test_the_number_of_remembered_resources_is_bounded() -> None:
    admissions = Admissions()
    for number in range(2 * ADMISSIONS_MAX + 5):
        admissions.note(ADDRESS, request(b=f"T{number}"), identity())
        resources = sum(len(each.resources) for each in admissions.accounts.values())
        assert len(admissions.accounts) + resources <= ADMISSIONS_MAX
    assert admissions.accounts


def test_a_white_address_with_many_requests_fills_one_place() -> None:
    admissions = Admissions()
    admissions.note(ADDRESS, request(b="T"), identity())
    white = identity("", Established.WHITE_LIST, None)
    for _ in range(2 * ADMISSIONS_MAX):
        admissions.note("10.0.0.2", request(), white)
    assert admissions.white_addresses == {b"10.0.0.2"}
    assert ALICE in admissions.accounts


def test_a_wrong_signature_forgets_the_account_at_its_address_alone() -> None:
    admissions = Admissions()
    for address in (ADDRESS, "10.0.0.2"):
        admissions.note(address, request(b="T"), identity())
    admissions.refused(ADDRESS, Refusal(1, "no", "no-permission", account="alice"))
    assert ALICE in admissions.accounts
    admissions.refused(ADDRESS, Refusal(1, "no", "bad-signature", account="alice"))
    assert list(admissions.accounts) == [joined("10.0.0.2", "alice")]


def test_other_rules_forget_everything() -> None:
    admissions = Admissions()
    admissions.note(ADDRESS, request(b="T"), identity())
    admissions.note(ADDRESS, request(), identity("", Established.WHITE_LIST, None))
    admissions.forget()
    assert not admissions.accounts
    assert not admissions.white_addresses
