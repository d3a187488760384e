"""The epochs of a log: RocketMQ's rules for appending, cutting and the consistent point."""

import random

import pytest

from core_broker.store.epochs import (
    EPOCH_MAX,
    EPOCHS_MAX,
    NO_POINT,
    OPEN_END,
    EpochCache,
    EpochEntry,
    consistent_point,
)

Starts = list[tuple[int, int]]


def test_an_epoch_ends_where_the_next_begins() -> None:
    cache = EpochCache([(1, 0), (2, 500), (5, 900)])
    assert cache.entries() == [
        EpochEntry(1, 0, 500),
        EpochEntry(2, 500, 900),
        EpochEntry(5, 900, OPEN_END),
    ]
    assert cache.entries(950)[-1] == EpochEntry(5, 900, 950)
    assert cache.last_epoch == 5
    assert cache.get(2) == EpochEntry(2, 500, 900)
    assert cache.get(3) is None


def test_a_log_that_lost_its_end_leaves_out_later_epochs() -> None:
    cache = EpochCache([(1, 0), (2, 500), (5, 900)])
    assert cache.entries(500) == [EpochEntry(1, 0, 500), EpochEntry(2, 500, 500)]
    assert cache.entries(499) == [EpochEntry(1, 0, 499)]


@pytest.mark.parametrize(("offset", "epoch"), [(99, None), (100, 1), (499, 1), (500, 2), (9999, 2)])
def test_the_epoch_of_an_offset(offset: int, epoch: int | None) -> None:
    found = EpochCache([(1, 100), (2, 500)]).at(offset)
    assert (found.epoch if found else None) == epoch


@pytest.mark.parametrize(
    ("epoch", "start"), [(2, 600), (1, 600), (3, 499), (-1, 600), (EPOCH_MAX + 1, 600), (3, -1)]
)
def test_an_older_epoch_or_an_earlier_start_is_refused(epoch: int, start: int) -> None:
    cache = EpochCache([(1, 0), (2, 500)])
    assert not cache.append(epoch, start)
    assert cache.starts == [(1, 0), (2, 500)]


def test_an_epoch_takes_the_place_of_an_empty_one() -> None:
    """RocketMQ refuses the new epoch, and its messages get the number of the old one."""
    cache = EpochCache([(1, 0), (2, 500)])
    assert cache.append(4, 500)
    assert cache.starts == [(1, 0), (4, 500)]


def test_only_increasing_epochs_are_accepted() -> None:
    with pytest.raises(ValueError, match="epoch 2"):
        EpochCache([(3, 0), (2, 500)])


def test_the_number_of_epochs_is_bounded() -> None:
    cache = EpochCache((epoch, epoch * 10) for epoch in range(EPOCHS_MAX + 5))
    assert len(cache) == EPOCHS_MAX
    assert cache.starts[0] == (5, 50)


@pytest.mark.parametrize(
    ("offset", "left"),
    [(0, []), (1, [(1, 0)]), (500, [(1, 0)]), (501, [(1, 0), (2, 500)]), (900, [(1, 0), (2, 500)])],
)
def test_cut_of_the_suffix_by_offset(offset: int, left: Starts) -> None:
    cache = EpochCache([(1, 0), (2, 500), (5, 900)])
    assert cache.truncate_suffix(offset)
    assert cache.starts == left
    assert not cache.truncate_suffix(offset)


@pytest.mark.parametrize(
    ("epoch", "left"), [(1, []), (2, [(1, 0)]), (3, [(1, 0), (2, 500)]), (5, [(1, 0), (2, 500)])]
)
def test_cut_of_the_suffix_by_epoch(epoch: int, left: Starts) -> None:
    cache = EpochCache([(1, 0), (2, 500), (5, 900)])
    assert cache.truncate_suffix_by_epoch(epoch)
    assert cache.starts == left


@pytest.mark.parametrize(
    ("offset", "left"),
    [
        (0, [(1, 0), (2, 500), (5, 900)]),
        (499, [(1, 0), (2, 500), (5, 900)]),
        (500, [(2, 500), (5, 900)]),
        (899, [(2, 500), (5, 900)]),
        (900, [(5, 900)]),
        (10_000, [(5, 900)]),
    ],
)
def test_cut_of_the_prefix(offset: int, left: Starts) -> None:
    cache = EpochCache([(1, 0), (2, 500), (5, 900)])
    cache.truncate_prefix(offset)
    assert cache.starts == left


@pytest.mark.parametrize(
    ("own", "own_end", "master", "master_end", "point"),
    [
        # The worked example: epoch 2 is unknown, epoch 1 ends at 500 on both.
        ([(1, 0), (2, 500)], 700, [(1, 0), (3, 500)], 900, 500),
        # The same history, and the slave is behind, equal, or ahead.
        ([(1, 0), (2, 500)], 700, [(1, 0), (2, 500)], 900, 700),
        ([(1, 0), (2, 500)], 900, [(1, 0), (2, 500)], 900, 900),
        ([(1, 0), (2, 500)], 950, [(1, 0), (2, 500)], 900, 900),
        # The old master wrote on in epoch 1 behind the begin of epoch 2.
        ([(1, 0)], 800, [(1, 0), (2, 500)], 900, 500),
        # The slave missed the end of epoch 1.
        ([(1, 0), (2, 500)], 700, [(1, 0), (2, 600)], 900, 500),
        ([(1, 0), (2, 600)], 700, [(1, 0), (2, 500)], 900, 500),
        # Two elections that only one side saw.
        ([(1, 0), (2, 300), (3, 400)], 450, [(1, 0), (2, 300), (5, 350)], 900, 350),
        ([(1, 0), (4, 300)], 450, [(1, 0), (2, 100), (5, 350)], 900, 100),
        # The same epoch with another start is another epoch.
        ([(2, 10)], 700, [(2, 0)], 900, NO_POINT),
        ([(7, 0)], 700, [(8, 0)], 900, NO_POINT),
        ([(7, 0)], 700, [], 900, NO_POINT),
        ([], 700, [(1, 0)], 900, NO_POINT),
        # The own log lost its end in a power cut, also the begin of epoch 2.
        ([(1, 0), (2, 500)], 450, [(1, 0), (2, 500)], 900, 450),
        # The master lost the begin of epoch 2.
        ([(1, 0), (2, 500)], 700, [(1, 0), (2, 500)], 450, 450),
        # An epoch without a byte.
        ([(1, 0), (2, 500)], 500, [(1, 0), (2, 500), (3, 600)], 900, 500),
    ],
)
def test_the_consistent_point(
    own: Starts, own_end: int, master: Starts, master_end: int, point: int
) -> None:
    assert consistent_point(EpochCache(own), own_end, EpochCache(master), master_end) == point


@pytest.mark.parametrize("seed", range(200))
def test_logs_are_equal_up_to_the_consistent_point(seed: int) -> None:
    """Two brokers of random histories: the point never lies behind the first different byte.

    A byte is the epoch of its writer; each epoch has one master, whose log the other may copy.
    """
    dice = random.Random(seed)
    logs: list[list[int]] = [[], []]
    caches = [EpochCache(), EpochCache()]
    for epoch in range(1, dice.randrange(2, 12)):
        master = dice.randrange(2)
        slave = 1 - master
        assert caches[master].append(epoch, len(logs[master]))
        is_connected = dice.random() < 0.7
        logs[master] += [epoch] * dice.choice((0, 1, 5))
        if is_connected:
            rejoin(logs, caches, slave, master, dice)
        logs[master] += [epoch] * dice.choice((0, 3))
    for own, other in ((0, 1), (1, 0)):
        point = consistent_point(caches[own], len(logs[own]), caches[other], len(logs[other]))
        if point != NO_POINT:
            assert logs[own][:point] == logs[other][:point]


def rejoin(
    logs: list[list[int]],
    caches: list[EpochCache],
    slave: int,
    master: int,
    dice: random.Random,
) -> None:
    """Truncate the slave's log to the consistent point, and copy a part of the master's log."""
    end = 0
    if len(caches[slave]):
        end = consistent_point(caches[slave], len(logs[slave]), caches[master], len(logs[master]))
        end = max(end, 0)
    assert logs[slave][:end] == logs[master][:end]
    del logs[slave][end:]
    caches[slave].truncate_suffix(end)
    copied = dice.randint(end, len(logs[master]))
    logs[slave] += logs[master][end:copied]
    for entry in caches[master].entries():
        if end <= entry.start_offset < copied:
            caches[slave].append(entry.epoch, entry.start_offset)
