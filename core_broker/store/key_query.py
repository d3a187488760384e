"""The messages of a finished search for a key, read one after the other.

The check of a message with thousands of keys takes milliseconds, so the event loop gets on with
other work between two messages.
"""

import asyncio
from functools import partial

from core_broker.store.cold_reads import ColdReads
from core_broker.store.key_search import KeySearch
from core_broker.store.reader import Reader
from core_broker.store.results import QueryResult


async def query_result(reader: Reader, cold_reads: ColdReads, search: KeySearch) -> QueryResult:
    """Return the messages of a search, oldest first.

    The result may contain messages with other keys of the same hash; clients compare keys. Raises
    OSError when a read fails and StoreBusy when too many reads are pending.
    """
    reader.report_flaws(search)
    records = []
    for offset in sorted(set(search.offsets)):
        record = await cold_reads.when_warm(partial(reader.found, search, offset))
        if record is not None:
            records.append(record)
        await asyncio.sleep(0)
    return QueryResult(records, *reader.reach())
