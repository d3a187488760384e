"""The broker's tables beside its messages, without I/O and without a clock.

    topics, groups, consumer_offsets, delay_progress    saved in config/*.json by `config_files`
    consumers, producers, queue_locks, long_poll        in memory, tied to connections
    half_progress, half_messages                        transactional messages
    statistics, delay_levels                            counters and the table of delays

Every function that depends on time takes `now_ms`.
"""
