"""Liveness by heartbeats: expiry, closed connections, the time of grace after a start."""

import pytest

from core_broker.controller.live_brokers import (
    HEARTBEAT_TIMEOUT_MS,
    HEARTBEAT_TIMEOUT_MS_MAX,
    HEARTBEAT_TIMEOUT_MS_MIN,
    LiveBrokers,
)
from core_broker.controller.model import BrokerSet, Candidate, Replica

SET = BrokerSet(
    name="broker-a",
    cluster="c",
    next_broker_id=4,
    replicas={n: Replica(f"h:{n}", f"h:{n};1") for n in (1, 2, 3)},
    master_id=1,
    master_epoch=1,
    sync_state_set=(1, 2),
)
LATER_MS = 1_000_000


class Peer:
    """A connection that does nothing."""

    def close(self, reason: str) -> None:
        """Do nothing."""


def brokers() -> LiveBrokers:
    return LiveBrokers(0)


def ids(live: LiveBrokers, now_ms: int) -> list[int]:
    return [candidate.broker_id for candidate in live.candidates(SET, now_ms)]


@pytest.mark.parametrize(
    ("sent_ms", "timeout_ms"),
    [
        (None, HEARTBEAT_TIMEOUT_MS),
        (3_000, 3_000),
        (-5, HEARTBEAT_TIMEOUT_MS_MIN),
        (2**63 - 1, HEARTBEAT_TIMEOUT_MS_MAX),
    ],
)
def test_a_broker_lives_until_its_own_timeout(sent_ms: int | None, timeout_ms: int) -> None:
    live = brokers()
    assert live.heartbeat("broker-a", Candidate(2), Peer(), sent_ms, LATER_MS)
    assert live.expire(LATER_MS + timeout_ms) == []
    assert ids(live, LATER_MS + timeout_ms) == [2]
    assert ids(live, LATER_MS + timeout_ms + 1) == []
    (expired,) = live.expire(LATER_MS + timeout_ms + 1)
    assert (expired.name, expired.broker_id) == ("broker-a", 2)
    assert len(live) == 0


def test_the_last_heartbeat_counts_also_when_the_log_is_shorter() -> None:
    live = brokers()
    for offset in (5, 900, 70):
        live.heartbeat("broker-a", Candidate(2, 1, offset), Peer(), None, LATER_MS)
    assert live.candidates(SET, LATER_MS) == (Candidate(2, 1, 70),)


def test_only_the_present_connection_of_a_broker_is_its_life() -> None:
    live, old, new = brokers(), Peer(), Peer()
    live.heartbeat("broker-a", Candidate(2), old, None, LATER_MS)
    live.heartbeat("broker-a", Candidate(2), new, None, LATER_MS)
    live.heartbeat("broker-a", Candidate(3), new, None, LATER_MS)
    assert live.connection_lost(old) == []
    assert [lost.broker_id for lost in live.connection_lost(new)] == [2, 3]
    assert ids(live, LATER_MS) == []


def test_an_unheard_master_counts_as_living_for_a_while_after_the_start() -> None:
    live = brokers()
    live.heartbeat("broker-a", Candidate(2, 1, 5), Peer(), None, 1)
    assert live.candidates(SET, 1) == (Candidate(1), Candidate(2, 1, 5))
    assert not live.is_alive(SET, 3, 1)
    assert not live.is_alive(SET, 1, HEARTBEAT_TIMEOUT_MS)


def test_a_master_that_was_heard_and_lost_is_dead_also_after_a_start() -> None:
    live, peer = brokers(), Peer()
    live.heartbeat("broker-a", Candidate(1), peer, None, 1)
    live.connection_lost(peer)
    assert not live.is_alive(SET, 1, 2)
