"""All consume queues of a store: topic → queue id → queue."""

import itertools
import logging
import sys
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from core_broker.errors import StoreCorrupt
from core_broker.store.consume_queue import TAIL_BYTES_MAX, ConsumeQueue
from core_broker.store.files import Buffer, Files
from core_broker.store.full_disk import is_disk_full
from core_broker.store.segments import OpenFiles
from core_broker.store.visibility import Shown, Visibility

if TYPE_CHECKING:
    from core_broker.store.queue_tail import publish_all
else:
    try:
        from core_broker.kernel.queue_tail import publish_all
    except ImportError:
        from core_broker.store.queue_tail import publish_all

_NO_FOLDERS = frozenset({"", ".", ".."})

log = logging.getLogger(__name__)

#: Takes topic, queue id, first and end offset of new messages, and a function that returns their
#: tags codes.
Hear = Callable[[str, int, int, int, Callable[[], list[int]]], None]


@dataclass(frozen=True, slots=True)
class ArrivalListener:
    """Gets notified of messages that became visible in the given topics.

    `hear` is called once for each queue with new messages. `topics` may change at any time.
    """

    topics: Collection[str]
    hear: Hear


class ConsumeQueues:
    """Owns the queues, the set of queues changed in this iteration, and the unsynced files."""

    def __init__(self, files: Files, folder: Path, file_size: int, open_files: OpenFiles) -> None:
        self.folder = folder
        #: Unsynced files, with the bytes written since the last sync.
        self.dirty_paths: dict[Path, int] = {}
        self._files = files
        self._file_size = file_size
        self._open_files = open_files
        self._topics: dict[str, dict[int, ConsumeQueue]] = {}
        self._appended: set[ConsumeQueue] = set()
        #: Number of queues removed or shortened, and of units repaired, since the start.
        self.removals = 0
        self.repairs = 0
        #: Holds units back from readers; open unless a controller elects the master.
        self.visibility = Visibility()
        #: Queues with units in memory only, and the subset with at least TAIL_BYTES_MAX of them.
        self._unwritten: dict[ConsumeQueue, None] = {}
        self._full: set[ConsumeQueue] = set()

    # -- look up --

    def get(self, topic: str, queue_id: int) -> ConsumeQueue | None:
        """Return a queue that has, or once had, messages; None otherwise."""
        queues = self._topics.get(topic)
        return queues.get(queue_id) if queues is not None else None

    def get_or_create(self, topic: str, queue_id: int) -> ConsumeQueue:
        """Return a queue, created when missing; the first write of units creates files."""
        queue = self.get(topic, queue_id)
        if queue is None:
            assert is_folder_name(topic)
            queue = self._make(self.folder / topic / str(queue_id))
            self._topics.setdefault(topic, {})[queue_id] = queue
        return queue

    def topics(self) -> list[str]:
        """Return the topics with queues."""
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
        """Add a unit; the next `publish` makes the unit visible."""
        queue.append(offset, size, tags_code)
        self._appended.add(queue)

    def append_encoded(self, enter: Callable[[set[ConsumeQueue]], None]) -> None:
        """Let `enter` add encoded units; the next `publish` makes the units visible.

        `enter` appends to queues, and adds the queues to the given set.
        """
        enter(self._appended)

    def enter(self, queue: ConsumeQueue, offset: int, size: int, tags_code: int) -> None:
        """Add a unit that is visible immediately, of a message already in the log."""
        queue.append(offset, size, tags_code)
        self._show(queue)

    def enter_encoded(self, queue: ConsumeQueue, units: Buffer, end_physical: int) -> None:
        """Add encoded units as `enter` adds one; the last message ends at `end_physical`."""
        queue.append_units(units, end_physical)
        self._show(queue)

    def _show(self, queue: ConsumeQueue) -> None:
        self._unwritten[queue] = None
        is_gated = self.visibility.is_gated
        size = queue.keep() if is_gated else queue.publish()
        if size >= TAIL_BYTES_MAX:
            self._full.add(queue)
        if is_gated:
            self.visibility.hold(queue)

    @property
    def has_full_tails(self) -> bool:
        """True while a queue has at least TAIL_BYTES_MAX of units in memory."""
        return bool(self._full)

    @property
    def unwritten_bytes(self) -> int:
        """Size of all units that are in memory only, bytes."""
        return sum(queue.tail_bytes for queue in self._unwritten)

    def publish(self, listeners: list[ArrivalListener]) -> None:
        """Keep the units of this iteration; show them and notify listeners unless gated."""
        appended, self._appended = self._appended, set()
        if self.visibility.is_gated:
            for queue in appended:
                self._show(queue)
            return
        waiting = [(each.topics, each.hear) for each in listeners if each.topics]
        heard = publish_all(appended, self._unwritten, self._full, TAIL_BYTES_MAX, waiting)
        # A listener may read all queues, so the calls come after the last publish.
        for hear, queue, first in heard:
            _tell(hear, queue, first, queue.max_offset)

    def notify(self, shown: Shown, listeners: Iterable[ArrivalListener]) -> None:
        """Notify the listeners of units that the gate has shown."""
        waiting = [each for each in listeners if each.topics] if shown else ()
        for each in waiting:
            for queue, (first, end) in shown.items():
                if queue.topic in each.topics:
                    _tell(each.hear, queue, first, end)

    def rollback(self) -> None:
        """Discard the units of this iteration: the log did not get their messages."""
        for queue in self._appended:
            queue.rollback()
        self._appended.clear()

    def write_full_tails(self) -> None:
        """Write the units of queues with at least TAIL_BYTES_MAX in memory; see `write_tails`."""
        while self._full:
            queue = self._full.pop()
            try:
                self.write_tail(queue)
            except OSError:
                self._full.add(queue)
                raise

    def write_tails(self, writes: int = sys.maxsize) -> None:
        """Write units from memory to the files, oldest first, up to a cost of `writes`.

        After OSError the remaining units can be written later.
        """
        for queue in list(itertools.islice(self._unwritten, writes)):
            writes -= queue.write_cost
            self.write_tail(queue)
            if writes <= 0:
                break

    def write_tail(self, queue: ConsumeQueue) -> None:
        """Write the units of one queue; after OSError the units can be written later."""
        queue.write_tail()
        self._unwritten.pop(queue, None)
        self._full.discard(queue)

    def take_dirty(self, least_bytes: int = 0) -> dict[Path, int]:
        """Return the files to sync and mark the files as clean; `mark_dirty` undoes the marking."""
        taken = {path: size for path, size in self.dirty_paths.items() if size >= least_bytes}
        for path in taken:
            del self.dirty_paths[path]
        return taken

    def mark_dirty(self, paths: dict[Path, int]) -> None:
        """Mark files whose sync failed as unsynced."""
        for path, size in paths.items():
            self.dirty_paths[path] = self.dirty_paths.get(path, 0) + size

    # -- life --

    def load(self) -> list[StoreCorrupt]:
        """Open all queues of the folder; remove and return damaged queues.

        Queues are derived from the log, so the broker starts in spite of damaged queues.
        """
        flaws = []
        try:
            self._files.make_dir(self.folder)
        except OSError as error:
            if not is_disk_full(error):
                raise
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

    def close(self) -> None:
        """Close and forget all queues before a second `load`; queue objects become invalid."""
        for queue in self:
            queue.forget_all()
        self.removals += 1
        self.visibility.restore(self.visibility.confirmed)
        self.dirty_paths.clear()
        for each in (self._topics, self._appended, self._unwritten, self._full):
            each.clear()

    def remove(self, topic: str, queue_id: int) -> Path | None:
        """Remove a queue; return the folder, for the caller to move or remove."""
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


def _tell(hear: Hear, queue: ConsumeQueue, first: int, end: int) -> None:
    hear(queue.topic, queue.queue_id, first, end, partial(queue.tags_codes, first, end))


def is_folder_name(topic: str) -> bool:
    """Return whether a topic can be a folder name; true for all legal topics."""
    return "/" not in topic and "\0" not in topic and topic not in _NO_FOLDERS
