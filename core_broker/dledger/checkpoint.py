"""The commit index of a member between two runs: the file `checkpoint`, written every 3 s.

A log that ends before it has lost committed entries: its disk was replaced, or a power cut took the
tail. Loss of entries that were committed after the last write of the file is not noticed.
"""

import asyncio
import logging
from pathlib import Path
from typing import NamedTuple

from core_broker.dledger.state_files import (
    TermAndVote,
    load_committed,
    save_committed,
    save_term,
)

#: Interval of the writes, seconds: DLedger's.
CHECKPOINT_S = 3.0

log = logging.getLogger(__name__)


class Ends(NamedTuple):
    """The last entry, and the last committed one."""

    last: int
    committed: int


class Found(NamedTuple):
    """What the files of the last run say, after repairs."""

    term_and_vote: TermAndVote
    #: At most the last entry.
    commit_index: int


def vote_after_loss(saved: TermAndVote, committed: int, last: int) -> TermAndVote:
    """Return term and vote; without committed entries the member is a new one.

    With a full vote it could elect a member that lacks these entries, too.
    """
    return saved._replace(is_new=True) if committed > last else saved


async def load_commit_index(folder: Path, saved: TermAndVote, last: int) -> Found:
    """Return the commit index of the last run, at most the last entry. Raises OSError.

    When committed entries are lost, the half vote of a new member is on the disk first, then the
    lower index, before the return: entries that take the place of the lost ones are not committed,
    and after another power cut the higher index would count them as such.
    """
    path = folder / "checkpoint"
    committed = await asyncio.to_thread(load_committed, path)
    if committed <= last:
        return Found(saved, committed)
    log.warning("The log ends with entry %d, before the commit index %d", last, committed)
    saved = vote_after_loss(saved, committed, last)
    await asyncio.to_thread(save_term, folder / "currterm", saved)
    await asyncio.to_thread(save_committed, path, last, last)
    return Found(saved, last)


async def save_ends(path: Path, ends: Ends) -> None:
    """Write the commit index; a failure is logged."""
    try:
        await asyncio.to_thread(save_committed, path, ends.last, ends.committed)
    except OSError as error:
        log.warning("the checkpoint of DLedger cannot be written: %s", error)
