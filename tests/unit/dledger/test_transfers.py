"""Transfers of the leadership: the answers of leader and transferee."""

from core_broker.dledger.codes import DLedgerCode
from core_broker.dledger.messages import HeartbeatRequest, Response, TransferRequest
from core_broker.dledger.model import Answer, Role, SaveTerm, Send
from core_broker.dledger.node import Node
from core_broker.dledger.transfers import CATCH_UP_MS, LAG_MAX
from tests.support.dledger_group import MemoryLog, SimulatedGroup
from tests.unit.dledger.test_node import beat, entry, lead, log_of, node_of


def ask(
    node: Node,
    transferee: str = "n1",
    term: int = 3,
    transfer: str = "n0",
    index: int = 0,
    now_ms: int = 0,
) -> list[Response]:
    """Send a transfer to a node; return the answers that came at once."""
    request = TransferRequest(
        group="g",
        remote_id="n0",
        term=term,
        transfer_id=transfer,
        transferee_id=transferee,
        take_leadership_ledger_index=index,
    )
    node.transfer_requested(request, "operator", now_ms)
    return answers_of(node)


def answers_of(node: Node) -> list[Response]:
    found = [effect.response for effect in node.take() if isinstance(effect, Answer)]
    assert all(isinstance(each, Response) for each in found)
    return [each for each in found if isinstance(each, Response)]


def leader_with(log: MemoryLog) -> Node:
    node = node_of(log)
    lead(node)
    return node


def test_refusals_of_a_leader_have_the_codes_of_java() -> None:
    node = leader_with(log_of(1))
    assert ask(node, "n9")[0].code == DLedgerCode.UNKNOWN_MEMBER
    assert ask(node, term=2)[0].code == DLedgerCode.INCONSISTENT_TERM
    assert ask(node, "n0")[0].code == DLedgerCode.UNEXPECTED_ARGUMENT
    assert ask(node, "n1", transfer="n2")[0].code == DLedgerCode.UNEXPECTED_ARGUMENT
    assert ask(node_of(log_of(1)))[0].code == DLedgerCode.NOT_LEADER
    behind = leader_with(log_of(*[1] * LAG_MAX))
    assert ask(behind)[0].code == DLedgerCode.FALL_BEHIND_TOO_MUCH
    assert ask(node) == [], "the answer comes with the outcome"
    assert ask(node)[0].code == DLedgerCode.LEADER_TRANSFERRING


def test_a_leader_asks_the_transferee_and_passes_its_answer_on() -> None:
    node = leader_with(log_of(1, 1))
    request = TransferRequest(
        group="g", remote_id="n0", term=3, transfer_id="n0", transferee_id="n2"
    )
    node.transfer_requested(request, "operator", 0)
    (sent,) = (effect for effect in node.take() if isinstance(effect, Send))
    assert sent.target == "n2"
    assert isinstance(sent.request, TransferRequest)
    assert (sent.request.transfer_id, sent.request.transferee_id) == ("n0", "n2")
    assert sent.request.take_leadership_ledger_index == 1
    assert node.transferee == "n2"
    answer = Response(code=DLedgerCode.TAKE_LEADERSHIP_FAILED, term=3)
    node.answered(sent, answer, 0)
    assert node.take() == [Answer("operator", answer)]
    assert (node.transferee, node.role) == (None, Role.LEADER)


def test_no_answer_of_the_transferee_is_a_network_error() -> None:
    node = leader_with(log_of(1))
    request = TransferRequest(
        group="g", remote_id="n0", term=3, transfer_id="n0", transferee_id="n2"
    )
    node.transfer_requested(request, "operator", 0)
    (sent,) = (effect for effect in node.take() if isinstance(effect, Send))
    node.answered(sent, None, 3_000)
    assert answers_of(node)[0].code == DLedgerCode.NETWORK_ERROR


def follower(log: MemoryLog) -> Node:
    node = node_of(log)
    beat(node, 3)
    return node


def test_a_transferee_votes_at_once_in_the_next_term() -> None:
    node = follower(log_of(1))
    request = TransferRequest(
        group="g", remote_id="n0", term=3, transfer_id="n1", transferee_id="n0"
    )
    node.transfer_requested(request, "leader", 0)
    effects = node.take()
    assert effects[:2] == [SaveTerm(4, None), SaveTerm(4, "n0")]
    assert [each.target for each in effects[2:] if isinstance(each, Send)] == ["n1", "n2"]
    other = HeartbeatRequest(group="g", leader_id="n2", local_id="n2", remote_id="n0", term=4)
    node.heartbeat_requested(other, "other", 0)
    codes = [response.code for response in answers_of(node)]
    assert codes == [DLedgerCode.TAKE_LEADERSHIP_FAILED, DLedgerCode.SUCCESS]


def test_refusals_of_a_transferee_have_the_codes_of_java() -> None:
    node = follower(log_of(1))
    (response,) = ask(node, "n0", transfer="n2")
    assert response.code == DLedgerCode.INCONSISTENT_LEADER
    (response,) = ask(node, "n0", transfer="n1", term=2)
    assert response.code == DLedgerCode.INCONSISTENT_TERM
    assert ask(node, "n0", transfer="n1", index=7) == []
    (response,) = ask(node, "n0", transfer="n1")
    assert response.code == DLedgerCode.TAKE_LEADERSHIP_FAILED, "another one is under way"
    node.tick(CATCH_UP_MS)
    assert answers_of(node) == []
    node.tick(CATCH_UP_MS + 1)
    (response,) = answers_of(node)
    assert response.code == DLedgerCode.TAKE_LEADERSHIP_FAILED
    assert node.role is Role.FOLLOWER
    node.set_writable(False)
    (response,) = ask(node, "n0", transfer="n1")
    assert response.code == DLedgerCode.DISK_FULL


def test_a_transferee_waits_for_the_last_entry() -> None:
    log = log_of(1)
    node = follower(log)
    assert ask(node, "n0", transfer="n1", index=1) == []
    log.append([entry(log, 3)])
    node.tick(10)
    assert (node.role, node.term) == (Role.CANDIDATE, 4)


def test_a_transfer_ends_with_another_leader() -> None:
    group = SimulatedGroup(3, 7)
    group.run(15_000, 500, group.write)
    leader = group.leader()
    target = next(name for name in group.names if name != leader)
    answers = group.transfer(target)
    group.run(2_000)
    assert group.leader() == target
    (answer,) = answers
    assert isinstance(answer, Response)
    assert answer.code == DLedgerCode.SUCCESS
    group.write(least=1)
    group.run(12_000)
    group.check_converged()
