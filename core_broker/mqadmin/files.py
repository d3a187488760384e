"""Output files of commands: message bodies, exports, running info of consumers."""

import asyncio
import os
import tempfile
from pathlib import Path

from core_broker.mqadmin.session import NotFound


def default_folder(name: str) -> Path:
    """Return ``/tmp/rocketmq/<name>``, or ``rocketmq/<name>`` below TMPDIR."""
    return Path(tempfile.gettempdir(), "rocketmq", name)


async def write_file(path: Path, content: bytes) -> Path:
    """Write a file, create missing parent folders; raise NotFound for an unwritable path."""
    try:
        await asyncio.to_thread(_write, path, content)
    except OSError as error:
        raise NotFound(f"{path} cannot be written: {error.strerror or error}.") from None
    return path


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # O_NOFOLLOW: another user may have put a symbolic link into the shared /tmp. Mode 0600: bodies
    # and running info can be confidential.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
