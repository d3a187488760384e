"""Changes of the epochs from the event loop and from an I/O thread."""

from pathlib import Path

from core_broker.store.epoch_log import EpochLog
from core_broker.store.simulated_files import SimulatedFiles

PATH = Path("/store/epochFileCheckpoint")


def test_a_change_replaces_the_epochs_that_readers_have() -> None:
    log = EpochLog(SimulatedFiles(), PATH)
    assert log.begin(1, 0)
    assert log.begin(2, 100)
    held = log.cache
    log.truncate(100)
    log.expire(1)
    assert (held.starts, log.cache.starts) == ([(1, 0), (2, 100)], [(1, 0)])
    assert log.begin(3, 50)
    log.expire(60)
    assert log.cache.starts == [(3, 50)]


def test_each_change_is_on_the_disk() -> None:
    files = SimulatedFiles()
    log = EpochLog(files, PATH)
    for epoch in range(1, 5):
        assert log.begin(epoch, epoch * 100)
    log.truncate(400)
    log.expire(250)
    files.power_cut()
    again = EpochLog(files, PATH)
    again.load()
    assert again.cache.starts == log.cache.starts == [(2, 200), (3, 300)]
