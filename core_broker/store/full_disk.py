"""Errors of a full disk."""

import errno

#: Error numbers of a full disk and of an exhausted quota.
FULL_ERRNOS = frozenset({errno.ENOSPC, errno.EDQUOT})


def is_disk_full(error: BaseException | None) -> bool:
    """Return whether an error says that the disk is full."""
    return isinstance(error, OSError) and error.errno in FULL_ERRNOS
