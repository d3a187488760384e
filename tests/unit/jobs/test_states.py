"""The states of a job: only forward, and the table of rows holds to it."""

from itertools import product

import pytest

from console.services.jobs.states import ACTIVE, NEXT, State, before, may_follow

FINAL = set(State) - ACTIVE


def test_active_states_lead_on_and_final_ones_do_not() -> None:
    assert {State.QUEUED, State.RUNNING, State.PAUSED} == ACTIVE
    assert all(not NEXT[state] for state in FINAL)


@pytest.mark.parametrize(("state", "follower"), list(product(State, State)))
def test_no_job_comes_back(state: State, follower: State) -> None:
    if may_follow(state, follower):
        assert state in ACTIVE
        assert follower != State.QUEUED
        assert {state, follower} == {State.RUNNING, State.PAUSED} or not may_follow(follower, state)
    assert (state in before(follower)) is may_follow(state, follower)


def test_every_active_job_can_be_cancelled_or_fail() -> None:
    for state in ACTIVE:
        assert {State.CANCELLED, State.FAILED} <= NEXT[state]
