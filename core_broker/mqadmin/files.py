"""Files that commands leave: bodies of messages, exports, the inside of consumers."""

import asyncio
import os
import tempfile
from pathlib import Path

from core_broker.mqadmin.session import NotThere


def default_folder(name: str) -> Path:
    """``/tmp/rocketmq/<name>``, or below TMPDIR."""
    return Path(tempfile.gettempdir(), "rocketmq", name)


async def write_file(path: Path, content: bytes) -> Path:
    """Write a file and the folders above it; NotThere when it cannot be."""
    try:
        await asyncio.to_thread(_write, path, content)
    except OSError as error:
        raise NotThere(f"{path} cannot be written: {error.strerror or error}.") from None
    return path


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Not through a link that somebody else put into a shared folder, and for the owner's eyes.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW
    with os.fdopen(os.open(path, flags, 0o600), "wb") as file:
        file.write(content)
