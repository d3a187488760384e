"""Child processes: their end, and their command lines; a child may end, or be a zombie, at any
time."""

import subprocess
from contextlib import suppress
from typing import Any

import psutil

#: Maximum time between SIGTERM and the end of a program, seconds.
STOP_TIMEOUT_S = 60.0


def stop_program(process: "subprocess.Popen[Any]", timeout_s: float = STOP_TIMEOUT_S) -> int:
    """Stop a program with SIGTERM and return the exit code: -9 for a program that SIGKILL had to
    end after the timeout."""
    process.terminate()
    try:
        return process.wait(timeout_s)
    except subprocess.TimeoutExpired:
        return kill_program(process)


def kill_program(process: "subprocess.Popen[Any]") -> int:
    """End a program with SIGKILL; return the exit code."""
    process.kill()
    return process.wait()


def command_line(process: psutil.Process) -> list[str]:
    """Return the command line; empty when the process has ended, reaped or not."""
    with suppress(psutil.NoSuchProcess):  # also its subclass ZombieProcess
        return process.cmdline()
    return []


def running_children(parent: psutil.Process, mark: str) -> list[psutil.Process]:
    """Return the running descendants with an argument that contains `mark`."""
    return [
        child
        for child in parent.children(recursive=True)
        if any(mark in part for part in command_line(child))
    ]
