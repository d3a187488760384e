"""Removes queues: of a deleted topic, and queues without a message in the log.

Queue folders are moved to `trash` immediately and emptied in an I/O thread. A start of the store
empties `trash`.
"""

import itertools
from collections.abc import Callable
from pathlib import Path

from core_broker.message.topics import SCHEDULE_TOPIC
from core_broker.store.consume_queue import ConsumeQueue
from core_broker.store.files import Files
from core_broker.store.full_disk import is_disk_full
from core_broker.store.layout import StoreParts


class Removal:
    """Removes queues from the store. Event loop only."""

    def __init__(
        self, parts: StoreParts, files: Files, trash: Path, empty: Callable[[Path], None]
    ) -> None:
        self._log, self._queues = parts.log, parts.queues
        self._files = files
        self._trash = trash
        self._empty = empty
        self._numbers = itertools.count()

    def remove_topic(self, topic: str) -> int:
        """Remove the queues of a topic; return their number."""
        return self._remove([each for each in self._queues if each.topic == topic])

    def remove_expired(self) -> int:
        """Remove queues without a message in the log; return their number."""
        return self._remove(
            [
                each
                for each in self._queues
                if 0 < each.end_physical <= self._log.min_offset and each.topic != SCHEDULE_TOPIC
            ]
        )

    def _remove(self, queues: list[ConsumeQueue]) -> int:
        for queue in queues:
            moved = None
            if self._files.exists(queue.folder):
                # The rename may fail and comes first: a removed queue must not leave files.
                moved = self._moved(queue.folder)
            self._queues.remove(queue.topic, queue.queue_id)
            if moved is not None:
                self._empty(moved)
        return len(queues)

    def _moved(self, folder: Path) -> Path | None:
        """Move a folder to the trash; where the disk is too full for the trash, remove it."""
        moved = self._trash / f"{next(self._numbers)}"
        try:
            self._files.make_dir(self._trash)
            self._files.rename(folder, moved)
        except OSError as error:
            if not is_disk_full(error):
                raise
            self._files.remove_tree(folder)
            return None
        return moved
