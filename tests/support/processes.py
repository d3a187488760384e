"""Command lines of child processes; a child may end, or be a zombie, at any time."""

from contextlib import suppress

import psutil


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
