"""Writes into a store as fast as it can until it is killed; run by test_store_kill.py.

    python -m tests.crash.store_writer FOLDER FLUSH_DISK_TYPE LIFE

Prints `ready`, then one line per acknowledged message: queue id, logical offset, number.
"""

import asyncio
import os
import random
import sys
from collections.abc import Callable
from pathlib import Path

from core_broker.store import MessageStore, PutStatus
from tests.support.stores import message, store_config

QUEUES = 3
#: Numbers of one life lie between its own and the next.
NUMBERS_PER_LIFE = 10_000_000
SETTINGS = {
    "mapped_file_size_commit_log": 256 * 1024,
    "mapped_file_size_consume_queue": 20 * 500,
    "max_hash_slot_num": 500,
    "max_index_num": 2000,
    "flush_interval_consume_queue": 100,
    "flush_consume_queue_thorough_interval": 300,
}


async def write(folder: Path, flush: str, life: int) -> None:
    """Put messages for ever."""
    store = MessageStore(store_config(folder, flush_disk_type=flush, **SETTINGS))
    store.load()
    store.start(asyncio.get_running_loop())
    os.write(1, b"ready\n")
    generator = random.Random(life)
    number = life * NUMBERS_PER_LIFE
    while True:
        lines = []
        for _ in range(generator.randint(1, 20)):
            queue_id = generator.randrange(QUEUES)
            body = generator.randbytes(generator.choice((0, 30, 300, 3000)))
            result = store.put(message(number, queue_id=queue_id, body=body))
            assert result.status is PutStatus.PUT_OK
            line = b"%d %d %d\n" % (queue_id, result.offset_logical, number)
            if flush == "SYNC_FLUSH":
                store.on_flushed(result.offset_end, _printer(line))
            lines.append(line)
            number += 1
        store.write_staged()
        if flush == "ASYNC_FLUSH":
            os.write(1, b"".join(lines))
        await asyncio.sleep(0)


def _printer(line: bytes) -> Callable[[bool], None]:
    def flushed(is_flushed: bool) -> None:
        assert is_flushed
        os.write(1, line)

    return flushed


if __name__ == "__main__":
    asyncio.run(write(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
