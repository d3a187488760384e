"""Bits of the system flag."""

from core_broker.message import sysflag


def test_transaction_bits() -> None:
    flag = sysflag.COMPRESSED | sysflag.TRANSACTION_PREPARED | sysflag.COMPRESSION_LZ4
    assert sysflag.transaction_type(flag) == sysflag.TRANSACTION_PREPARED
    committed = sysflag.with_transaction_type(flag, sysflag.TRANSACTION_COMMIT)
    assert committed == sysflag.COMPRESSED | sysflag.TRANSACTION_COMMIT | sysflag.COMPRESSION_LZ4
    assert sysflag.with_transaction_type(committed, sysflag.TRANSACTION_NONE) == 0x101
