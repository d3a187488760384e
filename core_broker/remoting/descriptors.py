"""The limit of file descriptors, which connections and the store's files share.

A server without free descriptors cannot accept a connection, not even to close it, and the peer
waits. Servers therefore raise the soft limit to the hard limit, and limit their connections to the
descriptors that the files do not need.
"""

import resource
import sys
from contextlib import suppress

#: Descriptors reserved for files, logs and name servers; at most half of the limit.
FILES_RESERVE = 1024


def raise_descriptor_limit() -> int:
    """Raise the soft limit of the process to the hard limit; returns the new soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems report a hard limit that setrlimit() refuses.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return _soft_limit()


def connections_possible() -> int:
    """Number of connections for which the process has descriptors."""
    soft = _soft_limit()
    return max(soft - min(FILES_RESERVE, soft // 2), 1)


def _soft_limit() -> int:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
