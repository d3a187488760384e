"""Both ends of a replication connection under a controller, on real stores and on their own."""

import random
from pathlib import Path

import pytest

from core_broker.errors import ProtocolError
from core_broker.ha.faults import DivergedLog
from core_broker.ha.record_stream import RecordStream
from core_broker.ha.switch_frames import (
    SlaveHandshake,
    encode_master_handshake,
    encode_report,
    encode_slave_handshake,
    encode_transfer_header,
)
from core_broker.ha.switch_master import LogRange, MasterSession
from core_broker.ha.switch_slave import Append, BeginEpoch, Effect, Send, SlaveSession, Truncate
from core_broker.store.epoch_file import EpochFile
from core_broker.store.epochs import EpochCache
from core_broker.store.simulated_files import SimulatedFiles
from core_broker.store.truncation import Rollback
from tests.support.replicas import assert_equal, feed, log_bytes
from tests.support.stores import Bench, StillLoop, message

SEGMENT = 1000


def transfer(offset: int, body: bytes, epoch: tuple[int, int], confirm: int = 0) -> bytes:
    return encode_transfer_header(offset, len(body), epoch, confirm) + body


def connected(
    own: list[tuple[int, int]],
    end: int,
    master: list[tuple[int, int]],
    master_end: int,
    confirm: int = 0,
) -> tuple[SlaveSession, list[Effect]]:
    """A slave's session after the master's handshake, and the effects of the handshake."""
    session = SlaveSession(SlaveHandshake(2), EpochCache(own), 0, end, confirm)
    assert session.start() == [Send(encode_slave_handshake(SlaveHandshake(2)))]
    return session, session.received(encode_master_handshake(master_end, master))


# -- the slave --


def test_a_slave_truncates_to_the_consistent_point() -> None:
    session, effects = connected([(1, 0), (2, 500)], 700, [(1, 0), (3, 500)], 900)
    assert effects == [Truncate(500)]
    assert session.report(700) == [], "no report before the truncation"
    with pytest.raises(ProtocolError, match="before the first report"):
        session.received(transfer(500, b"x", (3, 500)))
    assert session.truncated() == [Send(encode_report(500))]
    assert session.received(transfer(500, b"abc", (3, 500), 9_999)) == [
        BeginEpoch(3, 500),
        Append(500, b"abc", 503),
    ]
    assert session.received(transfer(503, b"d", (3, 500), 501)) == [Append(503, b"d", 503)]
    assert session.report(504) == [Send(encode_report(504))]


def test_a_slave_that_is_behind_reports_its_end() -> None:
    _, effects = connected([(1, 0)], 300, [(1, 0), (3, 500)], 900)
    assert effects == [Send(encode_report(300))]


def test_an_empty_slave_takes_the_begin_of_the_master() -> None:
    session, effects = connected([], 0, [(1, 0), (3, 500)], 900)
    assert effects == [Send(encode_report(0))]
    assert session.received(transfer(7, b"", (1, 0))) == []
    assert session.received(transfer(200, b"abc", (1, 0))) == [
        BeginEpoch(1, 0),
        Append(200, b"abc", 0),
    ]


def test_epochs_of_a_lost_log_go() -> None:
    session, effects = connected([(1, 0), (2, 400)], 0, [(1, 0)], 900)
    assert effects == [Truncate(0)]
    assert session.truncated() == [Send(encode_report(0))]


def test_an_empty_epoch_that_the_master_lacks_goes() -> None:
    """Later bytes of epoch 1 must not seem to be of epoch 2."""
    session, effects = connected([(1, 0), (2, 500)], 500, [(1, 0)], 900)
    assert effects == [Truncate(500)]
    session.truncated()
    assert session.received(transfer(500, b"x", (1, 0))) == [Append(500, b"x", 0)]


def test_confirmed_messages_are_never_truncated() -> None:
    with pytest.raises(DivergedLog, match="confirmed the messages"):
        connected([(1, 0), (2, 500)], 700, [(1, 0), (3, 500)], 900, confirm=501)
    assert connected([(1, 0), (2, 500)], 700, [(1, 0), (3, 500)], 900, confirm=500)[1]


def test_logs_without_a_common_epoch_are_refused() -> None:
    with pytest.raises(DivergedLog, match="no epoch"):
        connected([(7, 0)], 700, [(8, 0)], 900)
    with pytest.raises(DivergedLog, match="no epochs"):
        connected([], 700, [(8, 0)], 900)


def test_a_java_master_labels_the_end_of_an_epoch_with_the_next_one() -> None:
    session, _ = connected([(1, 0)], 300, [(1, 0), (3, 305)], 900)
    assert session.received(transfer(300, b"abcde", (3, 305))) == [
        BeginEpoch(3, 305),
        Append(300, b"abcde", 0),
    ]
    assert session.received(transfer(305, b"f", (3, 305))) == [Append(305, b"f", 0)]


@pytest.mark.parametrize("sent", [(0, b"x"), (299, b"x"), (301, b"x"), (301, b""), (10**9, b"")])
def test_another_offset_ends_the_session(sent: tuple[int, bytes]) -> None:
    session, _ = connected([(1, 0)], 300, [(1, 0)], 900)
    with pytest.raises(DivergedLog, match="300"):
        session.received(transfer(*sent, (1, 0)))


@pytest.mark.parametrize("epoch", [(1, 5), (1, 300), (0, 0), (3, 299), (3, 302), (-1, 300)])
def test_bytes_of_a_wrong_epoch_end_the_session(epoch: tuple[int, int]) -> None:
    session, _ = connected([(1, 0)], 300, [(1, 0)], 900)
    with pytest.raises(DivergedLog, match="epoch"):
        session.received(transfer(300, b"x", epoch))


@pytest.mark.parametrize("epochs", [[(2, 0), (1, 500)], [(1, 500), (2, 0)], [(-1, 0)], [(1, -1)]])
def test_epochs_out_of_order_are_refused(epochs: list[tuple[int, int]]) -> None:
    with pytest.raises(ProtocolError, match="out of order"):
        connected([(1, 0)], 300, epochs, 900)


def test_a_second_handshake_and_early_bytes_are_refused() -> None:
    session, _ = connected([(1, 0)], 300, [(1, 0)], 900)
    with pytest.raises(ProtocolError, match="second"):
        session.received(encode_master_handshake(900, [(1, 0)]))
    fresh = SlaveSession(SlaveHandshake(2), EpochCache(), 0, 0, 0)
    with pytest.raises(ProtocolError, match="before"):
        fresh.received(transfer(0, b"x", (1, 0)))


# -- the master --


def master_of(
    epochs: list[tuple[int, int]], log: LogRange, slave: SlaveHandshake, first: int
) -> MasterSession:
    session = MasterSession(EpochCache(epochs))
    assert session.next_piece(log, 0, 100, 0) is None
    assert session.heartbeat(0) is None
    (answer,) = session.received(encode_slave_handshake(slave), log, 0)
    assert answer == encode_master_handshake(log.end, epochs)
    assert session.received(encode_report(first), log, 0) == []
    return session


LOG = LogRange(1000, 5500, SEGMENT)


@pytest.mark.parametrize(
    ("slave", "first", "begin"),
    [
        (SlaveHandshake(2), 0, 1000),
        (SlaveHandshake(2, is_from_last_file=True), 0, 5000),
        (SlaveHandshake(2, is_from_last_file=True), 1700, 1700),
        (SlaveHandshake(2), 5500, 5500),
        (SlaveHandshake(2), 400, 400),
    ],
)
def test_the_begin_of_the_transfer(slave: SlaveHandshake, first: int, begin: int) -> None:
    assert master_of([(1, 0)], LOG, slave, first).next_offset == begin


def test_a_transfer_ends_with_its_epoch_and_its_segment() -> None:
    session = master_of([(1, 0), (2, 1700), (4, 5200)], LOG, SlaveHandshake(2), 0)
    pieces = []
    while (piece := session.next_piece(LOG, 77, 600, 0)) is not None:
        pieces.append((piece.offset, piece.size))
    assert pieces == [
        *((1000, 600), (1600, 100), (1700, 300), (2000, 600), (2600, 400), (3000, 600)),
        *((3600, 400), (4000, 600), (4600, 400), (5000, 200), (5200, 300)),
    ]
    session = master_of([(1, 0), (2, 1700)], LOG, SlaveHandshake(2), 1700)
    piece = session.next_piece(LOG, 77, 600, 0)
    assert piece is not None
    assert piece.header == encode_transfer_header(1700, 300, (2, 1700), 77)
    assert session.heartbeat(78) == encode_transfer_header(2000, 0, (2, 1700), 78)


@pytest.mark.parametrize("first", [400, 999])
def test_deleted_bytes_are_not_sent(first: int) -> None:
    assert master_of([(1, 0)], LOG, SlaveHandshake(2), first).next_piece(LOG, 0, 9, 0) is None


def test_an_offset_in_no_epoch_is_not_sent() -> None:
    session = master_of([(2, 3000)], LOG, SlaveHandshake(2), 1200)
    assert session.next_piece(LOG, 0, 600, 0) is None
    assert session.heartbeat(0) == encode_transfer_header(1200, 0, (2, 3000), 0)


def test_false_reports_end_the_session() -> None:
    session = MasterSession(EpochCache([(1, 0)]))
    with pytest.raises(ProtocolError, match="before its handshake"):
        session.received(encode_report(0), LOG, 0)
    with pytest.raises(ProtocolError, match="5501"):
        master_of([(1, 0)], LOG, SlaveHandshake(2), 5501)
    session = master_of([(1, 0)], LOG, SlaveHandshake(2), 2000)
    session.next_piece(LOG, 0, 100, 0)
    with pytest.raises(ProtocolError, match="2101"):
        session.received(encode_report(2101), LOG, 0)
    with pytest.raises(ProtocolError, match="second"):
        session.received(encode_slave_handshake(SlaveHandshake(2)), LOG, 0)
    assert session.acknowledged == 2000


def test_when_a_slave_had_the_whole_log() -> None:
    session = master_of([(1, 0), (2, 5400)], LOG, SlaveHandshake(2), 5300)
    assert not session.has_current_epoch()
    assert session.caught_up_ms == 0
    session.next_piece(LOG, 0, 100, 10)
    session.next_piece(LOG, 0, 100, 15)
    grown = LOG._replace(end=5600)
    session.next_piece(grown, 0, 100, 18)
    session.received(encode_report(5400), grown, 19)
    assert session.has_current_epoch()
    assert session.caught_up_ms == 0
    session.received(encode_report(5500), grown, 20)
    assert session.caught_up_ms == 10, "the log grew after the first transfer"
    session.received(encode_report(5600), grown, 40)
    assert session.caught_up_ms == 40
    learner = master_of([(1, 0)], LOG, SlaveHandshake(3, is_learner=True), 5500)
    assert not learner.has_current_epoch()


def test_a_slave_under_steady_load_has_had_the_whole_log() -> None:
    """The log grows with every report, so the slave never has the present end."""
    session = master_of([(1, 0)], LOG, SlaveHandshake(2), 5500)
    for step in range(1, 50):
        log = LOG._replace(end=5500 + 100 * step)
        while session.next_piece(log, 0, 100, step * 10) is not None:
            pass
        session.received(encode_report(5500 + 100 * (step - 1)), log, step * 10 + 5)
    assert session.caught_up_ms >= 450


# -- both, on stores --


class Node:
    """A broker's store with its epochs, which is master and slave in turns."""

    def __init__(self, number: int, dice: random.Random) -> None:
        self.number = number
        self.root = Path(f"/node{number}")
        self.files = SimulatedFiles(number)
        self.dice = dice
        self.epoch_file = EpochFile(self.files, self.root / "epochFileCheckpoint")
        self.epochs = EpochCache()
        self.confirmed = 0
        self.bench = self._open("ASYNC_MASTER")

    def _open(self, role: str) -> Bench:
        bench = Bench(self.root, self.files, broker_role=role, broker_id=self.number)
        bench.open()
        return bench

    def become(self, role: str) -> None:
        self.bench.store.close()
        self.bench = self._open(role)
        self.epochs = self.epoch_file.load()

    @property
    def end(self) -> int:
        return self.bench.store.max_offset_physical

    def lead(self, epoch: int) -> None:
        self.become("ASYNC_MASTER")
        assert self.epochs.append(epoch, self.end)
        self.epoch_file.save(self.epochs)

    def write(self, first: int, count: int) -> None:
        for number in range(first, first + count):
            body = self.dice.randbytes(self.dice.randrange(700))
            self.bench.put(message(number, queue_id=number % 2, body=body))

    def written_epochs(self) -> list[tuple[int, int]]:
        return [each for each in self.epochs.starts if each[1] < self.end]

    def range(self) -> LogRange:
        store = self.bench.store
        return LogRange(store.min_offset_physical, self.end, store.replica.segment_size)


def replicate(master: Node, slave: Node, dice: random.Random, share: float) -> None:
    """Connect, and copy about this share of the missing pieces; bytes arrive in any chunks."""
    slave.become("SLAVE")
    there = MasterSession(master.epochs)
    store = slave.bench.store
    here = SlaveSession(
        SlaveHandshake(slave.number),
        slave.epochs,
        store.min_offset_physical,
        slave.end,
        slave.confirmed,
    )
    streams: list[RecordStream] = []
    execute(here.start(), here, there, master, slave, streams)
    while (piece := there.next_piece(master.range(), slave.confirmed, 900, 0)) is not None:
        body = log_bytes(master.bench.store, piece.offset, piece.offset + piece.size)
        data = piece.header + body
        while data:
            size = dice.choice((1, 30, 500, 5000))
            execute(here.received(data[:size]), here, there, master, slave, streams)
            data = data[size:]
        execute(here.report(slave.end), here, there, master, slave, streams)
        if dice.random() > share:
            return
    assert there.acknowledged == master.end
    assert_equal(master.bench.store, slave.bench.store)
    assert slave.epoch_file.load() == slave.epochs
    # The begin of an epoch comes with its first bytes.
    assert slave.written_epochs() == master.written_epochs()


def execute(
    effects: list[Effect],
    here: SlaveSession,
    there: MasterSession,
    master: Node,
    slave: Node,
    streams: list[RecordStream],
) -> None:
    for effect in effects:
        store = slave.bench.store
        if isinstance(effect, Send):
            for answer in there.received(effect.data, master.range(), 0):
                execute(here.received(answer), here, there, master, slave, streams)
        elif isinstance(effect, Truncate):
            store.pause()
            store.truncator.begin(effect.offset, slave.confirmed, Rollback())
            store.reload()
            store.truncator.end()
            store.start(StillLoop())  # type: ignore[arg-type]
            slave.epochs = slave.epoch_file.load()
            execute(here.truncated(), here, there, master, slave, streams)
        elif isinstance(effect, BeginEpoch):
            slave.epochs.truncate_suffix(effect.start_offset)
            assert slave.epochs.append(effect.epoch, effect.start_offset)
            slave.epoch_file.save(slave.epochs)
        elif isinstance(effect, Append):
            if not streams:
                streams.append(RecordStream(effect.offset, store.replica.segment_size))
            assert streams[0].end == effect.offset
            feed(store, streams[0], effect.data)


@pytest.mark.parametrize("seed", range(12))
def test_brokers_that_lead_in_turns_end_with_one_log(seed: int) -> None:
    """Elections at any time: old masters drop their tails, and all logs become equal."""
    dice = random.Random(seed)
    nodes = [Node(number, dice) for number in range(3)]
    master = nodes[0]
    for epoch in range(1, 8):
        if epoch > 1:
            # The most complete log is elected, as among the members of a sync-state set.
            best = max((each.epochs.last_epoch, each.end) for each in nodes if each is not master)
            others = [each for each in nodes if each is not master]
            master = next(each for each in others if (each.epochs.last_epoch, each.end) == best)
        master.lead(epoch)
        master.write(epoch * 100, 5 if epoch == 1 else dice.choice((0, 5, 30)))
        for slave in nodes:
            # A broker without any byte of the first epoch would be elected over confirmed messages.
            if slave is not master and (epoch == 1 or dice.random() < 0.8):
                replicate(master, slave, dice, dice.choice((0.5, 0.9, 1.0)))
        master.write(epoch * 100 + 50, dice.choice((0, 10)))
    for slave in nodes:
        if slave is not master:
            replicate(master, slave, dice, 1.0)
