"""Bits of the system flag, a 32-bit field of stored messages, and of pull requests.

    0x001 compressed body        0x00C transaction: 0 none, 4 prepared, 8 commit, C rollback
    0x002 several tags           0x010 born host is IPv6      0x020 store host is IPv6
    0x700 compression: 0x000 zlib (old clients), 0x100 LZ4, 0x200 Zstandard, 0x300 zlib

Compatible with RocketMQ's MessageSysFlag and PullSysFlag.
"""

COMPRESSED = 0x1
MULTI_TAGS = 0x2

TRANSACTION_MASK = 0xC
TRANSACTION_NONE = 0x0
TRANSACTION_PREPARED = 0x4
TRANSACTION_COMMIT = 0x8
TRANSACTION_ROLLBACK = 0xC

BORN_HOST_V6 = 0x10
STORE_HOST_V6 = 0x20

COMPRESSION_MASK = 0x700
COMPRESSION_LZ4 = 0x100
COMPRESSION_ZSTD = 0x200
COMPRESSION_ZLIB = 0x300

PULL_COMMIT_OFFSET = 0x1
PULL_SUSPEND = 0x2
PULL_SUBSCRIPTION = 0x4
PULL_LITE = 0x10
