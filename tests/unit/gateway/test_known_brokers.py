"""The table of known brokers, the state of brokers that are down, and their last answers."""

from collections.abc import AsyncIterator, Iterable

import pytest

from console.gateway.brokers.listing import _row
from console.gateway.engine import known_brokers
from console.gateway.engine import session as sessions
from console.gateway.engine.answers import BrokerFailure, merge_failures
from console.gateway.engine.errors import ClusterUnreachable
from console.gateway.engine.known_brokers import BrokerRef, KnownBroker, KnownBrokers
from console.gateway.engine.last_answers import LastAnswers
from console.gateway.engine.liveness import PROBE_EVERY_MS, Liveness
from console.gateway.engine.session import ClusterSession
from core_broker.errors import ConnectFailed, RequestRefused, RequestTimeout

A = BrokerRef("a", 0, "a:10911")
B = BrokerRef("b", 0, "b:10911")


class Memory:
    """A BrokerMemory of one cluster."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, int], KnownBroker] = {}
        self.saves = 0

    def load(self, cluster: str) -> list[KnownBroker]:
        return list(self.rows.values())

    def save(self, cluster: str, brokers: Iterable[KnownBroker]) -> None:
        self.saves += 1
        self.rows |= {(each.ref.name, each.ref.id): each for each in brokers}

    def forget(self, cluster: str, ref: BrokerRef) -> None:
        self.rows.pop((ref.name, ref.id), None)


def test_a_broker_that_leaves_the_list_stays_known() -> None:
    known = KnownBrokers()
    assert not known.listed([(A, "one")], 0), "the first list is no change"
    assert known.listed([(A, "one"), (B, "one")], 1)
    assert not known.listed([(A, "one"), (B, "one")], 2)
    assert known.listed([(A, "one")], 3)
    assert [(each.ref.name, each.registered) for each in known.all()] == [("a", True), ("b", False)]
    known.forget(B)
    assert [each.ref for each in known.all()] == [A]


def test_an_address_follows_the_name_server() -> None:
    known = KnownBrokers()
    known.listed([(A, "one")], 1)
    known.contacted(A, 5)
    moved = BrokerRef("a", 0, "elsewhere:1")
    assert known.listed([(moved, "one")], 10)
    assert known.all() == (KnownBroker(moved, "one", 1, 5, True),)
    known.contacted(A, 20)  # a late answer of the old address
    assert known.all()[0].contact_ms == 5


def test_a_replica_is_not_down_under_the_id_it_had_before_a_failover() -> None:
    memory, known = Memory(), KnownBrokers()
    slave = BrokerRef("a", 2, "slave:10911")
    known.listed([(A, "one"), (slave, "one")], 1)
    known.save(memory, "c")
    elected, returned = BrokerRef("a", 0, slave.addr), BrokerRef("a", 1, A.addr)
    known.listed([(elected, "one"), (returned, "one")], 2)
    assert [each.ref for each in known.all()] == [elected, returned]
    known.load(memory, "c", 3)
    assert [each.ref for each in known.all()] == [elected, returned], "also not from the memory"


def test_the_table_survives_a_restart_and_forgets_what_others_forget() -> None:
    memory = Memory()
    first = KnownBrokers()
    first.listed([(A, "one"), (B, "one")], 1)
    first.contacted(B, 7)
    first.save(memory, "c")
    second = KnownBrokers()
    second.load(memory, "c", 100)
    assert [(each.ref, each.contact_ms, each.registered) for each in second.all()] == [
        (A, None, False),
        (B, 7, False),
    ]
    memory.forget("c", B)
    second.load(memory, "c", 101)
    assert len(second.all()) == 2, "the memory is read every LOAD_EVERY_MS"
    second.load(memory, "c", 100 + known_brokers.LOAD_EVERY_MS)
    assert [each.ref for each in second.all()] == [A]


def test_contacts_are_saved_from_time_to_time() -> None:
    memory, known = Memory(), KnownBrokers()
    known.listed([(A, "one")], 1)
    known.save(memory, "c")
    known.contacted(A, 1_000)
    assert not known.unsaved()
    known.contacted(A, known_brokers.SAVE_CONTACT_EVERY_MS)
    known.save(memory, "c")
    known.save(memory, "c")
    assert memory.saves == 2
    assert memory.rows["a", 0].contact_ms == known_brokers.SAVE_CONTACT_EVERY_MS


def test_the_table_is_bounded_and_keeps_registered_brokers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(known_brokers, "KNOWN_BROKERS_MAX", 2)
    known = KnownBrokers()
    for number in range(4):
        ref = BrokerRef(f"n{number}", 0, f"n{number}:1")
        known.listed([(ref, "one")], number)
        known.contacted(ref, 10 - number)
    assert [each.ref.name for each in known.all()] == ["n0", "n3"]


def test_registered_brokers_beyond_the_limit_stay_without_a_log_line(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(known_brokers, "KNOWN_BROKERS_MAX", 1)
    known = KnownBrokers()
    known.listed([(A, "one"), (B, "one")], 1)
    assert [each.ref for each in known.all()] == [A, B]
    assert not caplog.records
    known.listed([(A, "one")], 2)
    assert [each.ref for each in known.all()] == [A]
    assert [record.getMessage() for record in caplog.records] == [
        "dropped broker b:0: over 1 are known"
    ]


async def test_a_broker_that_refuses_a_request_is_up(session: ClusterSession) -> None:
    session.known.listed([(A, "one")], 1)

    async def refuse(ref: BrokerRef) -> str:
        raise RequestRefused(1, "no permission", ref.addr)

    found, failures = await session.fan_out([A], refuse, one_must_answer=False)
    row = _row(session, A, {}, failures)
    assert (found, row.state, row.reason) == ({}, "up", failures[0].reason)


def test_a_timeout_beside_an_answer_is_no_outage() -> None:
    changes: list[int] = []
    liveness = Liveness(lambda: changes.append(1))
    liveness.answered("a:1", 50)
    liveness.failed("a:1", RequestTimeout("a:1", 28, 10), 40, 60)
    assert liveness.failure("a:1") is None
    liveness.failed("a:1", ConnectFailed("a:1"), 40, 60)
    assert liveness.failure("a:1") is not None
    assert not liveness.probe_due("a:1", 61)
    assert liveness.probe_due("a:1", 60 + PROBE_EVERY_MS)
    assert not liveness.probe_due("a:1", 61 + PROBE_EVERY_MS)
    liveness.answered("a:1", 70)
    assert len(changes) == 2


def test_last_answers_are_bounded() -> None:
    answers = LastAnswers(answers_max=2)
    for number in range(3):
        answers.store(("n", number), "a:1", number, number)
    assert answers.find(("n", 0), "a:1") is None
    assert answers.find(("n", 2), "a:1") == (2, 2)
    answers.forget("a:1")
    assert len(answers) == 0


def test_failures_are_merged_by_broker_and_reason() -> None:
    merged = merge_failures(
        (BrokerFailure("a", "a:1", "gone"), BrokerFailure("b", "b:1", "gone", 7)),
        (BrokerFailure("a", "a:1", "gone", 5), BrokerFailure("a", "a:1", "gone", 9)),
    )
    assert merged == (BrokerFailure("a", "a:1", "gone", 5), BrokerFailure("b", "b:1", "gone", 7))


@pytest.fixture
async def session() -> AsyncIterator[ClusterSession]:
    found = ClusterSession("test", "192.0.2.1:9876")
    yield found
    await found.close()


async def test_the_last_answer_takes_the_place_of_a_missing_one(
    session: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "now_ms", lambda: 1_000)
    alive = True

    async def ask(ref: BrokerRef) -> str:
        if not alive and ref == B:
            raise ConnectFailed(ref.addr, "refused")
        return ref.name

    await session.fan_out([A, B], ask, keep=("names",))
    alive = False
    found, failures = await session.fan_out([A, B], ask, keep=("names",))
    assert found == {A: "a", B: "b"}
    assert [(one.broker, one.as_of_ms) for one in failures] == [("b", 1_000)]
    with pytest.raises(ClusterUnreachable):
        await session.fan_out([B], ask, keep=("other",))
    session.forget(B)
    with pytest.raises(ClusterUnreachable):
        await session.fan_out([B], ask, keep=("names",))
