"""The Raft core, and its storage on disk.

    node                                events in, `Ready` values out
    leader, replication, follower, election      roles
    log, membership, progress, reads    parts of a node's state
    model, messages, config, ready      values
    machine                             interfaces of the replicated program
    storage, segments, snapshots        the log on disk, on top of `store/files.py`

All modules are pure except storage, segments and snapshots: no clock, no I/O, effects as values.
"""
