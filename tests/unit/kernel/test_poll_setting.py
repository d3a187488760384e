"""The setting kernelPollEnable: who reads the connections of a broker."""

import asyncio
import socket
from pathlib import Path

import pytest

from core_broker.fastpath import has_kernel
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.frames import FrameSplitter
from tests.support.eventually import eventually
from tests.support.send_frames import common_case_frame
from tests.support.two_paths import OnePath

pytestmark = pytest.mark.skipif(not has_kernel(), reason="the kernel is not compiled here")

WITHIN_S = 60


@pytest.mark.parametrize("is_polling", [True, False])
async def test_sends_are_taken_from_either_reader(tmp_path: Path, is_polling: bool) -> None:
    path = OnePath(tmp_path, (("T", 4),), kernel_poll_enable=is_polling)
    assert path.compiled is not None
    reads = path.compiled.polled_reads
    port = await path.server.listen("127.0.0.1", 0)
    with socket.create_connection(("127.0.0.1", port)) as peer:
        await eventually(lambda: path.server.connections, WITHIN_S)
        if is_polling:
            await eventually(lambda: reads.connections, WITHIN_S)
        peer.setblocking(False)
        splitter = FrameSplitter()
        answers: list[RemotingCommand] = []
        for number in range(3):
            peer.send(common_case_frame(number))
            while len(answers) <= number:
                read = asyncio.get_running_loop().sock_recv(peer, 4096)
                answers += splitter.feed(await asyncio.wait_for(read, WITHIN_S))
        assert [each.opaque for each in answers] == [0, 1, 2]
        assert path.messages_sent == 3
        assert reads.connections == is_polling
    await path.close()
    assert reads.connections == 0
