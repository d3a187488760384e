"""Memory of a worker after a task."""

import platform

import psutil
import pytest

from spark_jobs.spark.worker_tasks import return_freed_memory

BLOCK_BYTES = 16 * 1024
BLOCKS = 4096
#: Every block with this distance stays in use, so that glibc itself returns nothing.
KEPT_EACH = 64


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_trim is of glibc")
def test_freed_blocks_between_used_blocks_go_back_to_the_system() -> None:
    blocks = [bytearray(BLOCK_BYTES) for _ in range(BLOCKS)]
    used = blocks[::KEPT_EACH]
    blocks.clear()
    before = psutil.Process().memory_info().rss
    return_freed_memory()
    freed = before - psutil.Process().memory_info().rss
    assert freed > BLOCKS * BLOCK_BYTES / 2
    assert len(used) == BLOCKS // KEPT_EACH
