"""Searches among child processes while children end."""

import subprocess
import sys
import time

import psutil

from tests.support.processes import command_line, running_children

DEADLINE_S = 180


def test_ended_children_have_no_command_line_and_are_not_running() -> None:
    ended = subprocess.Popen([sys.executable, "-c", "pass # marked-child"])
    process = psutil.Process(ended.pid)
    deadline = time.monotonic() + DEADLINE_S
    while process.status() != psutil.STATUS_ZOMBIE:  # nobody has called wait()
        assert time.monotonic() < deadline, process
        time.sleep(0.01)
    assert command_line(process) == []
    running = subprocess.Popen(
        [sys.executable, "-c", "input() # marked-child"], stdin=subprocess.PIPE
    )
    try:
        found = running_children(psutil.Process(), "marked-child")
        assert [child.pid for child in found] == [running.pid]
    finally:
        running.communicate(b"\n", timeout=DEADLINE_S)
        ended.wait(DEADLINE_S)
    assert command_line(process) == []
