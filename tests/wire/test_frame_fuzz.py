"""Hostile bytes on a real broker and name server: other connections are not affected.

FUZZ_FRAMES and FUZZ_SEED change how many frames and which; a failure names the seed.
"""

import json
import os
import socket
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import psutil
import pytest

from core_broker.remoting.command import RemotingCommand
from tests.support.broker_requests import send_header
from tests.support.cluster import Cluster
from tests.wire.hostile_frames import hostile_frames

FRAMES = int(os.environ.get("FUZZ_FRAMES", "3000"))
SEED = int(os.environ.get("FUZZ_SEED", "20261121"))
#: Number of frames before the memory measurement begins, because they fill caches and tables.
WARM_UP = FRAMES // 3
GROWTH_BYTES_MAX = 16 * 1024 * 1024
HONEST_EVERY = 50
ANSWER_SECONDS_MAX = 60.0


@pytest.fixture
def fuzzed(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path) as cluster:
        yield cluster


class Honest:
    """A well-behaved client on a permanent connection; all its requests must succeed."""

    def __init__(self, addr: tuple[str, int]) -> None:
        self._socket = socket.create_connection(addr, timeout=ANSWER_SECONDS_MAX)
        self._stream = self._socket.makefile("rb")
        self._asked = 0
        self.sent = 0

    def send(self) -> None:
        """Send a message, which must be stored behind the previous message."""
        header = self.ask(RemotingCommand.request(310, send_header("Honest", ""), b"honest"))
        assert header["extFields"]["queueOffset"] == str(self.sent)
        self.sent += 1

    def look(self) -> None:
        """Ask for the clusters."""
        self.ask(RemotingCommand.request(106))

    def ask(self, command: RemotingCommand) -> dict[str, Any]:
        command.opaque = self._asked = self._asked + 1
        self._socket.sendall(command.encode())
        length = int.from_bytes(self._stream.read(4), "big")
        frame = self._stream.read(length)
        header: dict[str, Any] = json.loads(frame[4 : 4 + int.from_bytes(frame[1:4], "big")])
        assert (header["code"], header["opaque"]) == (0, self._asked), header
        return header

    def close(self) -> None:
        self._stream.close()
        self._socket.close()


def attack(addr: tuple[str, int], frame: bytes) -> None:
    """Send the frame on a new connection and wait until the broker has closed the connection."""
    with socket.create_connection(addr, timeout=ANSWER_SECONDS_MAX) as hostile:
        try:
            hostile.sendall(frame)
            hostile.shutdown(socket.SHUT_WR)
            while hostile.recv(65_536):
                pass
        except (ConnectionResetError, BrokenPipeError):
            return


def resident_bytes(pid: int) -> int:
    return int(psutil.Process(pid).memory_info().rss)


@pytest.mark.parametrize("target", ["broker", "namesrv"])
def test_hostile_frames_hurt_only_their_own_connection(fuzzed: Cluster, target: str) -> None:
    program = fuzzed.broker if target == "broker" else fuzzed.namesrv
    addr = ("127.0.0.1", program.port("remoting"))
    honest = Honest(addr)
    work = honest.send if target == "broker" else honest.look
    before = 0
    for number, frame in enumerate(islice(hostile_frames(SEED), FRAMES)):
        if number == WARM_UP:
            before = resident_bytes(program.pid)
        try:
            attack(addr, frame)
            if number % HONEST_EVERY == 0:
                work()
        except (AssertionError, OSError) as error:
            raise AssertionError(f"seed {SEED}, frame {number}: {frame[:200]!r}") from error
    work()
    honest.close()
    growth = resident_bytes(program.pid) - before
    assert growth < GROWTH_BYTES_MAX, f"seed {SEED}: {growth} bytes more after {FRAMES} frames"
    assert "Traceback" not in program.printed, f"seed {SEED}"
