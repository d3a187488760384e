"""What a broker remembers beside its messages, without I/O and without a clock.

    topics, groups, consumer_offsets, delay_progress    kept in config/*.json by `config_files`
    consumers, producers, queue_locks, long_poll        live with the connections
    half_progress, half_messages                          what becomes of transactional messages
    statistics, delay_levels                            counters and tables

Every call that depends on time takes `now_ms`.
"""
