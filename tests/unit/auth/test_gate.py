"""auth/gate.py: one decision by the rules of one generation, closed without rules."""

import pytest

from core_broker.auth.contracts import (
    Action,
    Decision,
    Established,
    Identity,
    Refusal,
    Request,
    ResourceKind,
)
from core_broker.auth.gate import Gate
from core_broker.remoting.codes import LanguageCode, RequestCode

ALICE = Identity("alice", False, Established.SIGNATURE)
REQUEST = Request(RequestCode.SEND_MESSAGE_V2, 399, LanguageCode.JAVA, {"AccessKey": "alice"}, b"")


class Fixed:
    """Rules with one answer to every question."""

    def __init__(
        self, generation: int, refusal: Refusal | None = None, asked: list[str] | None = None
    ) -> None:
        self.generation = generation
        self.refusal = refusal
        self.asked = [] if asked is None else asked

    def identify(self, address: str, request: Request) -> Identity:
        if self.refusal is not None:
            raise self.refusal
        return Identity(f"alice{self.generation}", False, Established.SIGNATURE)

    def admit(self, address: str, request: Request) -> Identity:
        return self.identify(address, request)

    def may(
        self, identity: Identity, address: str, kind: ResourceKind, name: str, action: Action
    ) -> Decision:
        self.asked.append(name)
        remark = "" if self.refusal is None else self.refusal.remark
        return Decision(self.refusal is None, f"rule {self.generation}", remark)


class Notes:
    """An observer that keeps what it is told, and may refuse."""

    def __init__(self) -> None:
        self.told: list[str] = []
        self.refuse_at = ""

    def before(self, address: str, request: Request) -> None:
        self._note("before", address)

    def admitted(self, address: str, request: Request, identity: Identity) -> None:
        self._note("admitted", identity.account)

    def refused(self, address: str, request: Request, refusal: Refusal) -> None:
        self.told.append(f"refused {refusal.reason}")

    def _note(self, event: str, text: str) -> None:
        self.told.append(f"{event} {text}")
        if event == self.refuse_at:
            raise Refusal(1, "no", "replayed")


def _refusal(remark: str) -> Refusal:
    return Refusal(16, remark, "no-permission", account="alice", resource="Topic:T", rule="r")


def test_a_gate_without_rules_is_closed() -> None:
    gate = Gate()
    with pytest.raises(Refusal, match="no access rules") as refused:
        gate.admit("10.0.0.1", REQUEST)
    assert refused.value.reason == "no-rules"
    with pytest.raises(Refusal):
        gate.identify("10.0.0.1", REQUEST)


@pytest.mark.parametrize(
    ("acl1", "acl2", "remark"),
    [(None, None, None), ("one", None, "one"), (None, "two", "two"), ("one", "two", "two")],
)
def test_both_generations_decide_and_the_second_answers_first(
    acl1: str | None, acl2: str | None, remark: str | None
) -> None:
    gate = Gate()
    gate.use_acl1(Fixed(1, _refusal(acl1) if acl1 else None))
    gate.use_acl2(Fixed(2, _refusal(acl2) if acl2 else None))
    assert gate.generations == (1, 2)
    if remark is None:
        assert gate.admit("10.0.0.1", REQUEST).account == "alice2"
        return
    with pytest.raises(Refusal) as refused:
        gate.admit("10.0.0.1", REQUEST)
    assert (refused.value.code, refused.value.remark) == (16, remark)


def test_a_swap_in_the_middle_of_a_decision_does_not_mix_rules() -> None:
    gate = Gate()

    class Swapping(Fixed):
        def admit(self, address: str, request: Request) -> Identity:
            gate.use_acl2(Fixed(4, _refusal("new")))
            return self.identify(address, request)

    gate.use_acl1(Swapping(1))
    gate.use_acl2(Fixed(2))
    assert gate.admit("10.0.0.1", REQUEST).account == "alice2"
    with pytest.raises(Refusal, match="new"):
        gate.admit("10.0.0.1", REQUEST)


@pytest.mark.parametrize(
    ("refuse_at", "told"),
    [
        ("", ["before 10.0.0.1", "admitted alice1"]),
        ("before", ["before 10.0.0.1", "refused replayed"]),
        ("admitted", ["before 10.0.0.1", "admitted alice1", "refused replayed"]),
    ],
)
def test_observers_see_each_decision_and_may_refuse(refuse_at: str, told: list[str]) -> None:
    notes = Notes()
    notes.refuse_at = refuse_at
    gate = Gate((notes,))
    gate.use_acl1(Fixed(1))
    if refuse_at:
        with pytest.raises(Refusal):
            gate.admit("10.0.0.1", REQUEST)
    else:
        gate.admit("10.0.0.1", REQUEST)
    assert notes.told == told
