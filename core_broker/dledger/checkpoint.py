"""The commit index of a member between two runs: the file `checkpoint`, written every 3 s."""

import asyncio
import logging
from pathlib import Path
from typing import NamedTuple

from core_broker.dledger.state_files import load_committed, save_committed

#: Interval of the writes, seconds: DLedger's.
CHECKPOINT_S = 3.0

log = logging.getLogger(__name__)


class Ends(NamedTuple):
    """The last entry, and the last committed one."""

    last: int
    committed: int


async def load_commit_index(path: Path, last: int) -> int:
    """Return the commit index of the last run, at most the last entry. Raises OSError.

    After a power cut the log may end before the commit index. The lower index is on the disk before
    the return: entries that take the place of the lost ones are not committed, and after another
    power cut the higher index would count them as such.
    """
    saved = await asyncio.to_thread(load_committed, path)
    if saved <= last:
        return saved
    log.warning("The log ends with entry %d, before the commit index %d", last, saved)
    await asyncio.to_thread(save_committed, path, last, last)
    return last


async def save_ends(path: Path, ends: Ends) -> None:
    """Write the commit index; a failure is logged."""
    try:
        await asyncio.to_thread(save_committed, path, ends.last, ends.committed)
    except OSError as error:
        log.warning("the checkpoint of DLedger cannot be written: %s", error)
