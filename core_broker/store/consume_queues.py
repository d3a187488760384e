"""All consume queues of a store: topic → queue id → queue."""

import itertools
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from core_broker.errors import StoreCorrupt
from core_broker.store.consume_queue import TAIL_BYTES_MAX, ConsumeQueue
from core_broker.store.files import Files
from core_broker.store.segments import OpenFiles

_NO_FOLDERS = frozenset({"", ".", ".."})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class ArrivalListener:
    """Hears of messages that became visible, of the topics that it waits for at that moment.

    `hear` is called once for each queue: topic, queue id, offset of the first message and behind
    the last, and what returns their tags codes.
    """

    topics: Collection[str]
    hear: Callable[[str, int, int, int, Callable[[], list[int]]], None]


class ConsumeQueues:
    """Owns the queues, which of them changed in this turn, and what of them is not synced."""

    def __init__(self, files: Files, folder: Path, file_size: int, open_files: OpenFiles) -> None:
        self.folder = folder
        #: Written files that are not synced, with the bytes written since.
        self.dirty_paths: dict[Path, int] = {}
        self._files = files
        self._file_size = file_size
        self._open_files = open_files
        self._topics: dict[str, dict[int, ConsumeQueue]] = {}
        self._appended: set[ConsumeQueue] = set()
        #: How many queues were removed since the start.
        self.removals = 0
        #: Queues with units that are only in memory, and those of them with many.
        self._unwritten: dict[ConsumeQueue, None] = {}
        self._full: set[ConsumeQueue] = set()

    # -- look up --

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Return a queue that has, or once had, messages."""
        queues = self._topics.get(topic)
        return queues.get(queue_id) if queues is not None else None

    def get_or_create(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Return a queue; its files come with its first units."""
        queue = self.get(topic, queue_id)
        if queue is None:
            assert is_folder_name(topic)
            queue = self._make(self.folder / topic / str(queue_id))
            self._topics.setdefault(topic, {})[queue_id] = queue
        return queue

    def topics(self) -> list[str]:
        """Return the topics that have queues."""
        return list(self._topics)

    def __iter__(self) -> Iterator[ConsumeQueue]:
        for queues in self._topics.values():
            yield from queues.values()

    def _make(self, folder: Path) -> ConsumeQueue:
        return ConsumeQueue(
            self._files, self._open_files, folder, self._file_size, self.dirty_paths
        )

    # -- append --

    def append(self, queue: ConsumeQueue, offset: int, size: int, tags_code: int) -> None:
        """Add a unit; it becomes visible with the next `publish`."""
        queue.append(offset, size, tags_code)
        self._appended.add(queue)

    def append_encoded(self, made: Iterable[tuple[ConsumeQueue, bytes, int]]) -> None:
        """Add units made elsewhere; they become visible with the next `publish`.

        Of each queue come its units and where the last of their records ends.
        """
        appended = self._appended
        for queue, units, end in made:
            queue.append_units(units, end)
            appended.add(queue)

    def enter(self, queue: ConsumeQueue, offset: int, size: int, tags_code: int) -> None:
        """Add a unit that is visible at once, of a message that has long been in the log."""
        queue.append(offset, size, tags_code)
        queue.publish()
        self._unwritten[queue] = None
        if queue.tail_bytes >= TAIL_BYTES_MAX:
            self.write_tail(queue)

    def publish(self, listeners: list[ArrivalListener]) -> None:
        """Make the turn's units visible and tell the listeners of each queue."""
        appended, self._appended = self._appended, set()
        unwritten, full, heard = self._unwritten, self._full, []
        waiting = [each for each in listeners if each.topics]
        for queue in appended:
            first = queue.max_offset
            if queue.publish() >= TAIL_BYTES_MAX:
                full.add(queue)
            unwritten[queue] = None
            if waiting:
                heard += [
                    (each.hear, queue, first) for each in waiting if queue.topic in each.topics
                ]
        # Whoever hears of one may read all of them.
        for hear, queue, first in heard:
            end = queue.max_offset
            hear(queue.topic, queue.queue_id, first, end, partial(queue.tags_codes, first, end))

    def rollback(self) -> None:
        """Forget the turn's units: their messages did not get into the log."""
        for queue in self._appended:
            queue.rollback()
        self._appended.clear()

    def write_full_tails(self) -> None:
        """Write the units of queues that have many in memory; see `write_tails`."""
        while self._full:
            queue = self._full.pop()
            try:
                self.write_tail(queue)
            except OSError:
                self._full.add(queue)
                raise

    def write_tails(self, writes: int = sys.maxsize) -> None:
        """Write units from memory to the files, up to so much work, what waited longest first.

        On OSError the rest can be written later.
        """
        for queue in list(itertools.islice(self._unwritten, writes)):
            writes -= queue.write_cost
            self.write_tail(queue)
            if writes <= 0:
                break

    def write_tail(self, queue: ConsumeQueue) -> None:
        """Write the units of one queue; on OSError they can be written later."""
        queue.write_tail()
        self._unwritten.pop(queue, None)
        self._full.discard(queue)

    def take_dirty(self, least_bytes: int = 0) -> dict[Path, int]:
        """Return the files to sync and regard them as clean; `mark_dirty` takes it back."""
        taken = {path: size for path, size in self.dirty_paths.items() if size >= least_bytes}
        for path in taken:
            del self.dirty_paths[path]
        return taken

    def mark_dirty(self, paths: dict[Path, int]) -> None:
        """Note files whose sync failed."""
        for path, size in paths.items():
            self.dirty_paths[path] = self.dirty_paths.get(path, 0) + size

    # -- life --

    def load(self) -> list[StoreCorrupt]:
        """Open all queues of the folder; a damaged one is left out, removed and reported.

        Queues are derived from the log, so damage is never a reason not to start.
        """
        flaws = []
        self._files.make_dir(self.folder)
        for topic in self._files.names(self.folder):
            for name in self._files.names(self.folder / topic):
                if not name.isdecimal():
                    continue
                queue = self._make(self.folder / topic / name)
                try:
                    queue.load()
                except StoreCorrupt as flaw:
                    log.warning("%s The queue will be rebuilt from the commit log.", flaw)
                    flaws.append(flaw)
                    queue.forget_all()
                    self._files.remove_tree(queue.folder)
                    continue
                self._topics.setdefault(topic, {})[queue.queue_id] = queue
        return flaws

    def remove(self, topic: str, queue_id: int) -> Path | None:
        """Take one queue out; the caller moves or removes its folder, which is returned."""
        queue = self.get(topic, queue_id)
        if queue is None:
            return None
        self.removals += 1
        del self._topics[topic][queue_id]
        if not self._topics[topic]:
            del self._topics[topic]
        self._appended.discard(queue)
        self._unwritten.pop(queue, None)
        self._full.discard(queue)
        queue.forget_all()
        return queue.folder


def is_folder_name(topic: str) -> bool:
    """Tell whether a topic can be a folder; legal topics always can."""
    return "/" not in topic and "\0" not in topic and topic not in _NO_FOLDERS
