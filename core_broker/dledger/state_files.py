"""Term, vote and commit index of a member on the disk: two texts in Java's properties format.

    currterm     currTerm=3 and voteLeader=n0, an empty vote for none; hasGroupLog=false on a member
                 that has not copied the log of a leader since a start without the file, or
                 without entries that were committed
    checkpoint   endIndex=41 and committedIndex=41

Both are replaced as a whole, and synced: DLedger does not sync them, so that a power cut may take a
vote back. An unreadable file counts as damage for `currterm`, and as missing for `checkpoint`.
Compatible with MemberState and DLedgerMmapFileStore of DLedger 0.3.1.2.
"""

from pathlib import Path
from typing import NamedTuple

from core_broker.durable_files import replace_file
from core_broker.errors import StoreCorrupt

_TERM, _VOTE, _HAS_LOG = "currTerm", "voteLeader", "hasGroupLog"
_END, _COMMITTED = "endIndex", "committedIndex"


class TermAndVote(NamedTuple):
    """The term, and the member that has the vote of that term."""

    term: int
    vote: str | None
    #: `NodeState.is_new`; DLedger drops the property when it writes the file.
    is_new: bool = False


def load_term(path: Path) -> TermAndVote:
    """Return term and vote, a new member without a file; raises StoreCorrupt for other content."""
    try:
        found = _properties(path.read_text())
        is_new = found.get(_HAS_LOG) == "false"
        return TermAndVote(int(found[_TERM]), found.get(_VOTE) or None, is_new)
    except FileNotFoundError:
        return TermAndVote(0, None, is_new=True)
    except (KeyError, ValueError):
        reason = "it has no term; a member without its vote could make a second leader of a term"
        raise StoreCorrupt(str(path), 0, reason) from None


def save_term(path: Path, saved: TermAndVote) -> None:
    """Write term and vote; return when they are on the disk. Raises OSError."""
    text = f"{_TERM}={saved.term}\n{_VOTE}={saved.vote or ''}\n"
    if saved.is_new:
        text += f"{_HAS_LOG}=false\n"
    replace_file(path, [text.encode()])


def load_committed(path: Path) -> int:
    """Return the commit index of the last run, -1 when unknown."""
    try:
        return int(_properties(path.read_text())[_COMMITTED])
    except (OSError, KeyError, ValueError):
        return -1


def save_committed(path: Path, end_index: int, committed_index: int) -> None:
    """Write the last entry and the commit index; raises OSError."""
    replace_file(path, [f"{_END}={end_index}\n{_COMMITTED}={committed_index}\n".encode()])


def _properties(text: str) -> dict[str, str]:
    pairs = (
        line.partition("=")
        for line in text.splitlines()
        if line and not line.startswith(("#", "!"))
    )
    return {key.strip(): value.strip() for key, _, value in pairs}
