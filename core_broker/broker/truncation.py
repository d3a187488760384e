"""Truncates the log of a broker with its tables, in one step that survives a crash.

    pause the store · plan · truncation.json · cut and recover the store · tables · truncation.json

A crash before truncation.json is on the disk changes nothing; after a later crash the next start
finishes the truncation (`finish_truncation`).
"""

import asyncio

from core_broker.broker.saving import TableSaver
from core_broker.ha.rollback import plan_rollback, roll_back
from core_broker.processors.context import BrokerContext, ConfigTable

#: A table is written twice: its previous version must have no progress of dropped records either.
VERSIONS = 2
#: The tables with progress in the log.
TABLES = (ConfigTable.OFFSETS, ConfigTable.DELAYS)


async def truncate(ctx: BrokerContext, saver: TableSaver, offset: int, confirm_offset: int) -> None:
    """Drop all messages at or behind a physical offset; waits for the disk.

    The caller has stopped sends and all services that write. `confirm_offset` is the end of the
    messages that replicas confirmed. Raises TruncationRefused, with the store running unchanged,
    for an offset before it or within a record. After another error, the broker must be started
    again, which finishes the truncation.
    """
    store, loop = ctx.store, asyncio.get_running_loop()
    is_gated = store.gate.is_closed
    store.pause()
    store.gate.open(is_told=False)
    try:
        rollback = plan_rollback(store, offset, ctx.delay_progress)
        store.truncator.begin(offset, confirm_offset, rollback)
    except BaseException:
        if store.truncator.pending is None:
            if is_gated:
                store.gate.close()
            store.start(loop)
        raise
    store.reload()
    if is_gated:
        store.gate.close()
    assert store.truncator.pending is not None
    roll_back(store.truncator.pending, ctx.offsets, ctx.delay_progress)
    for table in TABLES:
        for _ in range(VERSIONS):
            await _saved(saver, table)
    store.truncator.end()
    store.start(loop)


async def _saved(saver: TableSaver, table: ConfigTable) -> None:
    """Write a table behind all earlier writes; raises the error of the write."""
    done: asyncio.Future[Exception | None] = asyncio.get_running_loop().create_future()
    saver.save(table, done.set_result)
    error = await done
    if error is not None:
        raise error


def finish_truncation(ctx: BrokerContext, saver: TableSaver) -> None:
    """Finish a truncation after a crash: the store and the tables are loaded, nothing runs.

    Raises OSError; the next start then finishes the truncation.
    """
    truncation = ctx.store.truncator.pending
    if truncation is None:
        return
    roll_back(truncation, ctx.offsets, ctx.delay_progress)
    for table in TABLES:
        for _ in range(VERSIONS):
            saver.write_now(table)
    ctx.store.truncator.end()
