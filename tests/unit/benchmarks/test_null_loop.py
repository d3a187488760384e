"""The null server of the bounds answers every request of the load generator as a broker does."""

import shutil
import socket
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks import null_loop
from benchmarks.bounds import LOADS, Load, measure
from benchmarks.load import Scenario, run
from benchmarks.null_loop import QUEUE_OFFSET, Flushing, pull_answer, running_null, send_answer
from benchmarks.requests import (
    BODY_BYTES,
    OFFSET,
    PULL_COUNT,
    batch_template,
    pull_template,
    send_template,
)
from core_broker.message.record import decode_records
from core_broker.remoting.command import RemotingCommand

SECONDS_MAX = 60
LOG_BYTES = 1 << 20


@pytest.fixture(autouse=True)
def _needs_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    if shutil.which("cc") is None:
        pytest.skip("the null server is a C program")
    monkeypatch.setattr(null_loop, "LOG_BYTES", LOG_BYTES)


def test_the_answers_are_a_brokers() -> None:
    batch = RemotingCommand.decode(send_answer(32).head)
    assert (batch.code, batch.ext_fields["queueOffset"]) == (0, str(QUEUE_OFFSET))
    assert len(set(batch.ext_fields["msgId"].split(","))) == 32
    head, body, messages = pull_answer()
    answer = RemotingCommand.decode(head + body)
    assert (answer.code, answer.ext_fields["nextBeginOffset"]) == (0, str(OFFSET))
    assert messages == PULL_COUNT
    assert [len(each.body) for each in decode_records(answer.body)] == [BODY_BYTES] * PULL_COUNT


@pytest.mark.parametrize("has_log", [False, True])
def test_every_send_is_answered_and_copied(tmp_path: Path, has_log: bool) -> None:
    with running_null(send_answer(1), tmp_path if has_log else None) as (_, addr):
        scenario = Scenario(3, 5, send_template)
        figures = run(scenario, addr, seconds=SECONDS_MAX, messages_max=500)
    assert figures["messages"] == figures["requests"] >= 500
    if has_log:
        log = (tmp_path / "null-log").read_bytes()
        assert log.count(b"x" * BODY_BYTES) == figures["messages"]


@pytest.mark.parametrize("flushing", ["loop", "thread"])
@pytest.mark.parametrize("in_flight", [1, 3])
def test_synced_sends_are_in_the_file(tmp_path: Path, flushing: Flushing, in_flight: int) -> None:
    with running_null(send_answer(1), tmp_path, flushing=flushing) as (_, addr):
        scenario = Scenario(8, in_flight, send_template)
        figures = run(scenario, addr, seconds=SECONDS_MAX, messages_max=100)
        log = (tmp_path / "null-log").read_bytes()
    assert log.count(b"x" * BODY_BYTES) == figures["messages"] >= 100


def test_batches_count_their_messages() -> None:
    with running_null(send_answer(32)) as (_, addr):
        scenario = Scenario(4, 1, lambda number: batch_template(number, 32))
        figures = run(scenario, addr, seconds=SECONDS_MAX, messages_max=3_200)
    assert figures["messages"] == 32 * figures["requests"] >= 3_200


@pytest.mark.parametrize("has_log", [False, True])
def test_pulls_never_end(tmp_path: Path, has_log: bool) -> None:
    with running_null(pull_answer(), tmp_path if has_log else None) as (_, addr):
        scenario = Scenario(4, 1, pull_template)
        figures = run(scenario, addr, seconds=SECONDS_MAX, messages_max=20_000)
    assert figures["messages"] == PULL_COUNT * figures["requests"] >= 20_000


def test_a_request_in_pieces_is_answered_once() -> None:
    frame, answer = send_template(0).frame, send_answer(1).head
    with running_null(send_answer(1)) as (_, addr):
        host, _, port = addr.rpartition(":")
        with closing(socket.create_connection((host, int(port)), SECONDS_MAX)) as peer:
            peer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            whole = frame * 3
            for at in range(0, len(whole), 700):
                peer.sendall(whole[at : at + 700])
            received = b""
            while len(received) < 3 * len(answer):
                received += peer.recv(65_536)
            assert received == answer * 3


def test_a_measurement_has_the_shares_of_server_and_generator() -> None:
    load = Load(LOADS["send-64x1"].scenario, 2_000)
    with running_null(send_answer(1)) as (server, addr):
        figures = measure(server, load, addr)
    assert figures.rate > 0
    assert figures.p99_us > 0
    assert figures.generator_us >= figures.generator_own_us >= 0
    assert figures.generator_share >= 0
