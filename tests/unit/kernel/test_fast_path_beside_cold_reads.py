"""A disk that stalls: requests for messages in memory go on, cold reads wait."""

import asyncio
from pathlib import Path

import pytest

from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.frames import FrameSplitter
from core_broker.store.cold_reads import READ_THREADS
from tests.support.cold_files import ColdFiles
from tests.support.two_paths import PATHS, TURNS, OnePath
from tests.unit.kernel.test_polls_same_on_all_paths import pulled, sent

#: Cold pulls, more than read threads, so that pulls queue up.
COLD_PULLS = 3 * READ_THREADS
FAST_ROUNDS = 50
SENT_AT_ONCE = 20
SEGMENT_BYTES = 32 * 1024
SLOW, FAST = 0, 1


async def answers(path: OnePath, peer: int) -> dict[int, tuple[int, bytes]]:
    """Code and body of a peer's answers, while all cold reads are blocked."""
    for _ in range(TURNS):
        await asyncio.sleep(0)
        for executor in path.broker.executors:
            if not executor.name.startswith("store-read"):
                executor.run()
    frames = FrameSplitter().feed(path.told[peer])
    return {each.opaque: (each.code, each.body) for each in frames}


@pytest.mark.parametrize("kind", PATHS)
async def test_fast_paths_go_on_while_all_cold_reads_wait(tmp_path: Path, kind: str) -> None:
    files = ColdFiles()
    settings = {
        "notify_consumer_ids_changed_enable": False,
        "mapped_file_size_commit_log": SEGMENT_BYTES,
    }
    path = OnePath(tmp_path, (("T", 2),), path=kind, files=files, **settings)
    for _ in (SLOW, FAST):
        path.peer()
    first = path.folder / "commitlog" / f"{0:020d}"
    stored = 0
    while path.broker.ctx.store.max_offset_physical <= SEGMENT_BYTES:
        path.hear(FAST, b"".join(sent(stored + each) for each in range(SENT_AT_ONCE)))
        await answers(path, FAST)
        stored += SENT_AT_ONCE
    path.hear(FAST, pulled(stored - 1, opaque=1_000_000))  # creates the group
    await answers(path, FAST)
    files.evict(first)
    executors = [
        executor for executor in path.broker.executors if executor.name.startswith("store-read")
    ]
    for executor in executors:
        executor.hold()
    for number in range(COLD_PULLS):
        path.hear(SLOW, pulled(0, opaque=number, max_msg_nums=4))
    assert await answers(path, SLOW) == {}
    assert [len(each.jobs) for each in executors] == [COLD_PULLS // READ_THREADS] * READ_THREADS
    was_sent, was_pulled = path.messages_sent, path.messages_pulled
    for number in range(stored, stored + FAST_ROUNDS):
        path.hear(FAST, sent(number))
        path.hear(FAST, pulled(number - 1, opaque=2_000_000 + number))
        told = await answers(path, FAST)
        assert told[number][0] == ResponseCode.SUCCESS
        code, body = told[2_000_000 + number]
        assert (code, b"%d" % (number - 1) in body) == (ResponseCode.SUCCESS, True)
    if kind == "compiled":
        assert path.messages_sent == was_sent + FAST_ROUNDS
        assert path.messages_pulled >= was_pulled + FAST_ROUNDS
    assert path.told[SLOW] == b""
    assert path.broker.ctx.store.cold_reads.waiting == COLD_PULLS
    path.broker.read_cold()
    late = await answers(path, SLOW)
    assert sorted(late) == list(range(COLD_PULLS))
    assert {code for code, _ in late.values()} == {ResponseCode.SUCCESS}
    assert len({body for _, body in late.values()}) == 1
    await path.close()
