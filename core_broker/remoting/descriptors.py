"""File descriptors: each connection needs one, and so do the store's files.

A server that runs out of them cannot even accept a connection to close it; the peer would wait.
So the limit is raised as far as it goes, and connections get what files do not need.
"""

import resource
import sys
from contextlib import suppress

#: Left for files, logs and name servers, or half of all where there are few.
FILES_RESERVE = 1024


def raise_descriptor_limit() -> int:
    """Raise the soft limit of the process to the hard one; returns what is in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        # Some systems name a limit that they do not grant.
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return _soft_limit()


def connections_possible() -> int:
    """How many connections the process has descriptors for now."""
    soft = _soft_limit()
    return max(soft - min(FILES_RESERVE, soft // 2), 1)


def _soft_limit() -> int:
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft
