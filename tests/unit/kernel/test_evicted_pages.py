"""Messages evicted from the page cache: the read threads handle the pulls, not the kernel."""

import ctypes
import mmap
import os
from pathlib import Path

import pytest

from core_broker.fastpath import has_kernel
from tests.support.two_paths import OnePath
from tests.unit.kernel.test_polls_same_on_all_paths import BEGIN, pulled

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")


def drop(path: Path) -> bool:
    """Evict a file from the page cache; return False when pages stay resident.

    mincore() reports resident pages; a non-blocking read would start readahead of the file.
    """
    fd = os.open(path, os.O_RDONLY)
    try:
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
        size = path.stat().st_size
        with mmap.mmap(fd, size, access=mmap.ACCESS_COPY) as pages:
            first = ctypes.c_char.from_buffer(pages)
            resident = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
            at = ctypes.c_void_p(ctypes.addressof(first))
            failed = ctypes.CDLL(None).mincore(at, ctypes.c_size_t(size), resident)
            del first
        return not failed and not any(each & 1 for each in resident)
    finally:
        os.close(fd)


async def test_the_kernel_does_not_read_evicted_pages(tmp_path: Path) -> None:
    path = OnePath(tmp_path, (("T", 2),), notify_consumer_ids_changed_enable=False)
    path.peer()
    for turn in BEGIN:
        for number, data in turn:
            path.hear(number, data)
        await path.settle()
    if not drop(min((path.folder / "commitlog").iterdir())):
        await path.close()
        pytest.skip("the file system of this machine keeps evicted pages resident")
    path.hear(0, pulled(0, opaque=5))
    first = (await path.settle())[0]
    assert path.messages_pulled == 0
    path.hear(0, pulled(0, opaque=5))
    second = (await path.settle())[0]
    assert path.messages_pulled == 4
    # A pull that waited for the disk and a pull from memory get equal answers.
    answer = second[len(first) :]
    assert first.endswith(answer)
    await path.close()
