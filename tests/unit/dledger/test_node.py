"""Rules of a member: votes, heartbeats, and what a follower never does."""

from random import Random
from typing import TypeVar

from core_broker.dledger.codes import DLedgerCode, PushKind, VoteResult
from core_broker.dledger.messages import (
    Entry,
    HeartbeatRequest,
    PushRequest,
    PushResponse,
    Response,
    VoteRequest,
    VoteResponse,
    push_request,
)
from core_broker.dledger.model import Answer, Effect, Push, Role, SaveTerm, Send, Truncate
from core_broker.dledger.node import Node
from tests.support.dledger_group import MemoryLog

PEERS = ("n0", "n1", "n2")
R = TypeVar("R", Response, VoteResponse)


def entry(log: MemoryLog, term: int, body: bytes = b"x") -> Entry:
    index = log.end_index + 1
    return Entry(body=body, index=index, pos=log.end_position, size=48 + len(body), term=term)


def log_of(*terms: int) -> MemoryLog:
    log = MemoryLog()
    for term in terms:
        log.write(term, b"%d" % term)
    return log


def node_of(log: MemoryLog, term: int = 3, vote: str | None = None, commit: int = -1) -> Node:
    return Node("g", "n0", PEERS, log, term=term, vote=vote, commit_index=commit, random=Random(1))


def ask(
    node: Node, term: int, end: tuple[int, int], candidate: str = "n1", now_ms: int = 0
) -> VoteResponse:
    request = VoteRequest(
        group="g",
        leader_id=candidate,
        local_id=candidate,
        remote_id="n0",
        term=term,
        ledger_end_term=end[0],
        ledger_end_index=end[1],
    )
    node.vote_requested(request, None, now_ms)
    return answer_of(node, VoteResponse)


def answer_of(node: Node, kind: type[R]) -> R:
    answers = [effect for effect in node.take() if isinstance(effect, Answer)]
    assert len(answers) == 1
    response = answers[0].response
    assert isinstance(response, kind)
    return response


def beat(node: Node, term: int, leader: str = "n1", now_ms: int = 0) -> Response:
    request = HeartbeatRequest(
        group="g", leader_id=leader, local_id=leader, remote_id="n0", term=term
    )
    node.heartbeat_requested(request, None, now_ms)
    return answer_of(node, Response)


def pushed(
    node: Node, kind: PushKind, entries: list[Entry], term: int = 3, commit: int = -1
) -> list[Effect]:
    request: PushRequest = push_request(kind, entries, commit)
    request.group, request.term, request.remote_id = "g", term, "n0"
    request.leader_id = request.local_id = "n1"
    node.push_requested(request, None, 0)
    return node.take()


def code_of(effects: list[Effect]) -> int:
    (answer,) = [effect for effect in effects if isinstance(effect, Answer)]
    assert isinstance(answer.response, PushResponse)
    return answer.response.code


def test_a_vote_is_saved_before_it_is_told() -> None:
    node = node_of(log_of(1, 2))
    node.vote_requested(
        VoteRequest(
            group="g",
            leader_id="n1",
            local_id="n1",
            remote_id="n0",
            term=5,
            ledger_end_term=2,
            ledger_end_index=1,
        ),
        None,
        0,
    )
    effects = node.take()
    assert effects[:2] == [SaveTerm(5, None), SaveTerm(5, "n1")]
    assert isinstance(effects[2], Answer)
    assert ask(node, 5, (2, 1)).vote_result is VoteResult.ACCEPT, "the same candidate again"
    assert ask(node, 5, (9, 9), "n2").vote_result is VoteResult.REJECT_ALREADY_VOTED


def test_refusals_have_the_names_of_java() -> None:
    node = node_of(log_of(1, 2))
    assert ask(node, 3, (1, 9)).vote_result is VoteResult.REJECT_EXPIRED_LEDGER_TERM
    assert ask(node, 3, (2, 0)).vote_result is VoteResult.REJECT_SMALL_LEDGER_END_INDEX
    assert ask(node, 2, (9, 9)).vote_result is VoteResult.REJECT_EXPIRED_VOTE_TERM
    assert ask(node, 3, (9, 9), "n7").vote_result is VoteResult.REJECT_UNKNOWN_LEADER
    assert ask(node, 3, (9, 9), "n0").vote_result is VoteResult.REJECT_UNEXPECTED_LEADER
    beat(node, 3, "n2")
    assert ask(node, 3, (9, 9)).vote_result is VoteResult.REJECT_ALREADY_HAS_LEADER


def test_a_candidate_with_a_later_term_and_an_older_log_raises_the_term() -> None:
    """DLedger's issue 325: else the candidate could not follow any more."""
    node = node_of(log_of(1, 2))
    answer = ask(node, 9, (1, 0))
    assert (answer.vote_result, answer.term) == (VoteResult.REJECT_EXPIRED_LEDGER_TERM, 9)
    assert (node.term, node.role) == (9, Role.CANDIDATE)


def lead(node: Node, now_ms: int = 0) -> list[Effect]:
    """Let the node win an election."""
    node.tick(now_ms)
    sent = [effect for effect in node.take() if isinstance(effect, Send)]
    response = VoteResponse(group="g", term=node.term, vote_result=VoteResult.ACCEPT)
    node.answered(sent[0], response, now_ms)
    assert node.role is Role.LEADER
    return node.take()


def test_a_leader_steps_down_for_a_later_term_also_with_a_majority() -> None:
    node = node_of(log_of(1))
    beats = [effect for effect in lead(node) if isinstance(effect, Send)]
    node.answered(beats[0], Response(term=3), 0)
    assert node.role is Role.LEADER
    node.answered(beats[1], Response(code=DLedgerCode.EXPIRED_TERM, term=8), 0)
    assert (node.role, node.term) == (Role.CANDIDATE, 8)


def test_entries_of_earlier_terms_are_committed_with_one_of_the_own_term() -> None:
    log = log_of(1, 2)
    node = node_of(log)
    compare = next(effect for effect in lead(node) if isinstance(effect, Push))
    node.pushed(compare, PushResponse(begin_index=0, end_index=1, term=3), 0)
    assert node.matches["n1"] == 1
    assert node.commit_index == -1, "a majority has them, and a later leader may replace them"
    log.write(3, b"own")
    node.appended(0)
    append = next(
        effect
        for effect in node.take()
        if isinstance(effect, Push) and effect.kind is PushKind.APPEND
    )
    node.pushed(append, PushResponse(term=3), 0)
    assert node.commit_index == 2


def test_a_member_that_voted_for_itself_never_leads_that_term_again() -> None:
    node = node_of(log_of(1), term=4, vote="n0")
    node.tick(0)
    assert node.term == 5


def test_a_fresh_group_votes_in_term_0() -> None:
    node = node_of(MemoryLog(), term=0)
    node.tick(0)
    assert node.term == 0


def test_a_follower_writes_only_behind_what_it_has_compared() -> None:
    log = log_of(1, 1)
    node = node_of(log)
    fresh = entry(log, 3)
    assert code_of(pushed(node, PushKind.APPEND, [fresh])) == DLedgerCode.INCONSISTENT_STATE
    assert code_of(pushed(node, PushKind.COMPARE, [log.at(1)])) == DLedgerCode.SUCCESS
    assert code_of(pushed(node, PushKind.APPEND, [fresh])) == DLedgerCode.SUCCESS
    assert log.end_index == 2


def test_a_follower_commits_only_what_it_has_compared() -> None:
    node = node_of(log_of(1, 1))
    pushed(node, PushKind.COMMIT, [], commit=1)
    assert node.commit_index == -1
    pushed(node, PushKind.COMPARE, [log_of(1, 1).at(0)], commit=1)
    assert node.commit_index == 0


def test_committed_entries_are_never_dropped() -> None:
    log = log_of(1, 1, 1)
    node = node_of(log, commit=2)
    other = Entry(body=b"other", index=1, pos=log.at(1).pos, size=53, term=2)
    assert code_of(pushed(node, PushKind.TRUNCATE, [other])) == DLedgerCode.INDEX_OUT_OF_RANGE
    assert "remove the store" in node.problem
    assert log.end_index == 2


def test_a_truncation_is_an_effect_and_the_entry_comes_behind_it() -> None:
    log = log_of(1, 1, 1)
    node = node_of(log, commit=0)
    other = Entry(body=b"other", index=1, pos=log.at(1).pos, size=53, term=2)
    assert pushed(node, PushKind.TRUNCATE, [other]) == [Truncate(0)]
    log.truncate(0)
    node.truncated(None, 0)
    assert code_of(node.take()) == DLedgerCode.SUCCESS
    assert log.at(1) == other


def test_a_late_truncation_drops_nothing() -> None:
    log = log_of(1, 1, 1)
    node = node_of(log, commit=1)
    pushed(node, PushKind.COMPARE, [log.at(2)])
    assert code_of(pushed(node, PushKind.TRUNCATE, [log.at(0)])) == DLedgerCode.SUCCESS
    assert (log.end_index, node.problem) == (2, "")


def test_pushes_wait_for_the_entries_before_them() -> None:
    log, source = log_of(1), log_of(1, 3, 3)
    node = node_of(log)
    pushed(node, PushKind.COMPARE, [log.at(0)])
    assert pushed(node, PushKind.APPEND, [source.at(2)]) == []
    assert code_of(pushed(node, PushKind.APPEND, [source.at(2)])) == DLedgerCode.REPEATED_PUSH
    answers = pushed(node, PushKind.APPEND, [source.at(1)])
    assert len(answers) == 2
    assert log.entries == source.entries


def test_requests_of_other_groups_and_for_other_members_are_refused() -> None:
    node = node_of(MemoryLog())
    for group, remote, code in (
        ("other", "n0", DLedgerCode.UNKNOWN_GROUP),
        ("g", "n2", DLedgerCode.UNKNOWN_MEMBER),
        (None, "n0", DLedgerCode.UNKNOWN_GROUP),
    ):
        request = HeartbeatRequest(group=group, leader_id="n1", remote_id=remote, term=99)
        node.heartbeat_requested(request, None, 0)
        answer = answer_of(node, Response)
        assert answer.code == code
    assert node.term == 3


def test_entries_in_another_order_are_refused() -> None:
    log, source = log_of(1), log_of(1, 3, 3)
    node = node_of(log)
    pushed(node, PushKind.COMPARE, [log.at(0)])
    swapped = [source.at(2), source.at(1)]
    assert code_of(pushed(node, PushKind.APPEND, swapped)) == DLedgerCode.UNEXPECTED_ARGUMENT
    assert code_of(pushed(node, PushKind.APPEND, [])) == DLedgerCode.UNEXPECTED_ARGUMENT
    assert log.end_index == 0


def test_entries_that_no_leader_sends_are_refused() -> None:
    for kind in (PushKind.COMPARE, PushKind.APPEND, PushKind.TRUNCATE):
        for name in ("index", "pos", "term"):
            fields = {"index": 0, "pos": 0, "term": 0} | {name: -5}
            bad = Entry(body=b"x", size=49, **fields)
            for log in (MemoryLog(), log_of(1, 1)):
                code = code_of(pushed(node_of(log), kind, [bad]))
                assert code == DLedgerCode.UNEXPECTED_ARGUMENT


def new_node(log: MemoryLog) -> Node:
    """A member that started without a saved term."""
    start = {"term": 0, "vote": None, "commit_index": -1, "is_new": True}
    return Node("g", "n0", PEERS, log, random=Random(1), **start)


def test_the_acceptance_of_a_new_member_is_none_for_java() -> None:
    node = new_node(MemoryLog())
    answer = ask(node, 5, (2, 1))
    assert answer.vote_result is VoteResult.UNKNOWN
    assert answer.code == DLedgerCode.ILLEGAL_MEMBER_STATE
    assert "needs all members" in node.problem
    assert ask(node, 5, (2, 1), "n2").vote_result is VoteResult.REJECT_ALREADY_VOTED


def test_a_new_member_that_follows_works_and_tells_of_its_vote() -> None:
    node = new_node(MemoryLog())
    assert beat(node, 5).code == DLedgerCode.SUCCESS
    assert node.problem == ""
    assert "needs all members" in node.vote_problem


def half_vote(node: Node) -> VoteResponse:
    code = DLedgerCode.ILLEGAL_MEMBER_STATE
    return VoteResponse(group="g", term=node.term, code=code, vote_result=VoteResult.UNKNOWN)


def requests_of(node: Node, now_ms: int) -> list[Send]:
    node.tick(now_ms)
    return [effect for effect in node.take() if isinstance(effect, Send)]


def test_new_members_elect_only_with_all_members() -> None:
    for node in (new_node(log_of(1)), node_of(log_of(1))):
        first, second = requests_of(node, 0)
        node.answered(first, half_vote(node), 0)
        assert node.role is Role.CANDIDATE
        node.answered(second, half_vote(node), 0)
        assert node.role is Role.LEADER


def test_a_candidate_waits_in_its_term_for_the_members_that_do_not_answer() -> None:
    node = new_node(MemoryLog())
    first, second = requests_of(node, 0)
    term = node.term
    node.answered(first, half_vote(node), 0)
    node.answered(second, None, 0)
    (again, _) = requests_of(node, 5_000)
    assert (node.term, node.role) == (term, Role.CANDIDATE)
    rejection = VoteResponse(
        group="g", term=term, vote_result=VoteResult.REJECT_SMALL_LEDGER_END_INDEX
    )
    node.answered(again, rejection, 5_000)
    assert node.role is Role.CANDIDATE


def test_a_new_member_votes_when_it_has_the_log_of_its_leader() -> None:
    log, source = MemoryLog(), log_of(1, 1, 1)
    node = new_node(log)
    assert SaveTerm(3, None, is_new=True) in pushed(node, PushKind.COMPARE, [source.at(2)])
    for kind, index in ((PushKind.TRUNCATE, 0), (PushKind.APPEND, 1)):
        effects = pushed(node, kind, [source.at(index)])
        assert code_of(effects) == DLedgerCode.SUCCESS
        assert len(effects) == 1, "still a new member"
    assert SaveTerm(3, "n1") in pushed(node, PushKind.APPEND, [source.at(2)])
    assert ask(node, 4, (1, 2)).vote_result is VoteResult.ACCEPT


def test_the_first_leader_of_a_group_is_no_new_member() -> None:
    node = new_node(MemoryLog())
    for sent in requests_of(node, 0):
        node.answered(sent, half_vote(node), 0)
    assert SaveTerm(0, "n0") in node.take()


def test_entries_before_the_first_one_are_another_log() -> None:
    log, source = log_of(1, 1, 1), log_of(1, 1, 1)
    del log.entries[:2]
    node = node_of(log)
    for kind in (PushKind.COMPARE, PushKind.APPEND):
        code = code_of(pushed(node, kind, [source.at(0)]))
        assert code == DLedgerCode.INCONSISTENT_STATE
