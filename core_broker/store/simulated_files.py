"""A simulated disk in memory with the faults of real disks, driven by a seed.

Has the interface of `DiskFiles`. After a power cut, each unsynced sector survives at random, so any
write may be torn; unsynced creations, renames and removals survive in order up to a random point. A
failed sync loses the data, as on Linux: the next sync succeeds without the data. A full disk
accepts a part of a write and then fails.
"""

import errno
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from core_broker.errors import StoreLocked
from core_broker.store.files import Buffer, DiskUsage, SyncFailed

SECTOR = 512
BLOCK = 4096
UNLIMITED = 1 << 60

#: Called before each operation with name and path; raises OSError to inject a failure.
Fault = Callable[[str, Path], None]


@dataclass(slots=True)
class _Node:
    """One file: its cached content, its durable content, and the sectors that differ."""

    current: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    dirty: set[int] = field(default_factory=set)
    blocks: set[int] = field(default_factory=set)
    modified_ms: int = 0

    def touch(self, start: int, end: int) -> None:
        self.dirty.update(range(start // SECTOR, -(-end // SECTOR)))

    def settle(self, sectors: set[int]) -> None:
        """Make these sectors and the size durable."""
        size = len(self.current)
        del self.durable[size:]
        self.durable.extend(bytes(size - len(self.durable)))
        for sector in sectors:
            span = slice(sector * SECTOR, min(sector * SECTOR + SECTOR, size))
            self.durable[span] = self.current[span]
        self.dirty.difference_update(sectors)


class SimulatedFiles:
    """A file system with faults injected by a test and random choices from a seed."""

    def __init__(
        self, seed: int = 0, *, capacity: int = UNLIMITED, clock_ms: Callable[[], int] = lambda: 0
    ) -> None:
        self.random = random.Random(seed)
        self.capacity = capacity
        self.fault: Fault | None = None
        self.life = 0
        self._boots = 0
        self._clock_ms = clock_ms
        self._nodes: dict[Path, _Node] = {}
        self._durable_names: dict[Path, _Node] = {}
        self._unsynced_names: list[tuple[Path, _Node | None]] = []
        self._folders: set[Path] = set()
        self._locked: set[Path] = set()

    # -- fault injection --

    def power_cut(self) -> None:
        """Simulate a power cut: lose unsynced data at random, invalidate open files, free locks."""
        self.life += 1
        self._boots += 1
        self._locked.clear()
        self.fault = None
        kept = self.random.randint(0, len(self._unsynced_names))
        for path, node in self._unsynced_names[:kept]:
            self._set_name(self._durable_names, path, node)
        chance = self.random.choice((0.0, 0.5, 1.0, self.random.random()))
        self._nodes = {}
        for path, node in self._durable_names.items():
            survivors = {each for each in sorted(node.dirty) if self.random.random() < chance}
            node.settle(survivors)
            blocks = node.blocks
            self._nodes[path] = _Node(
                bytearray(node.durable), bytearray(node.durable), set(), blocks, node.modified_ms
            )
        self._durable_names = dict(self._nodes)
        self._unsynced_names.clear()

    def kill(self) -> None:
        """Simulate the kill of the process: all written data survives."""
        self.life += 1
        self._locked.clear()

    def flip_bit(self, path: Path, offset: int, bit: int = 0) -> None:
        """Flip one bit, in the cached and in the durable content."""
        node = self._node(path)
        node.current[offset] ^= 1 << bit
        if offset < len(node.durable):
            node.durable[offset] = node.current[offset]

    # -- the file system --

    def open(self, path: Path, *, create: bool = False) -> "SimulatedFile":
        """Open for reading and writing."""
        self.check("open", path)
        if path not in self._nodes:
            if not create:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
            self._rename_to(path, _Node(modified_ms=self._clock_ms()))
        return SimulatedFile(self, path, self._nodes[path])

    def exists(self, path: Path) -> bool:
        """Return whether a file or folder of this name exists."""
        return path in self._nodes or path in self._folders

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        return len(self._node(path).current)

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last written, in milliseconds since 1970."""
        return self._node(path).modified_ms

    def names(self, folder: Path) -> list[str]:
        """Return the sorted names in a folder; an empty list without the folder."""
        inside = {path.name for path in self._nodes if path.parent == folder}
        return sorted(inside | {each.name for each in self._folders if each.parent == folder})

    def make_dir(self, folder: Path) -> None:
        """Create a folder and missing parents; folders survive a power cut."""
        if folder not in self._folders:
            self.check("make_dir", folder)
        self._folders.update((folder, *folder.parents))

    def remove(self, path: Path) -> None:
        """Remove one file; a missing file is no error."""
        self.check("unlink", path)
        if path in self._nodes:
            self._rename_to(path, None)

    def remove_slowly(self, path: Path) -> None:
        """Remove one file, as `remove` does."""
        self.remove(path)

    def remove_tree(self, folder: Path) -> None:
        """Remove a folder with its contents; a missing folder is no error."""
        self.check("unlink", folder)
        for path in [each for each in self._nodes if folder in each.parents]:
            del self._nodes[path]
            self._durable_names.pop(path, None)
        self._folders = {
            each for each in self._folders if each != folder and folder not in each.parents
        }

    def rename(self, source: Path, target: Path) -> None:
        """Rename atomically; an existing target file is replaced."""
        self.check("rename", source)
        if source in self._nodes:
            node = self._nodes[source]
            self._rename_to(target, node)
            self._rename_to(source, None)
            return
        for names in (self._nodes, self._durable_names):
            for path in [each for each in names if source in each.parents]:
                names[target / path.relative_to(source)] = names.pop(path)
        for each in [
            folder for folder in self._folders if folder == source or source in folder.parents
        ]:
            self._folders.discard(each)
            self._folders.add(target / each.relative_to(source))

    def sync_dir(self, folder: Path) -> None:
        """Return when the names of a folder are on the disk."""
        try:
            self.check("sync_dir", folder)
        except OSError as error:
            raise SyncFailed(error.errno, error.strerror, str(folder)) from error
        waiting = self._unsynced_names
        for path, node in [each for each in waiting if each[0].parent == folder]:
            self._set_name(self._durable_names, path, node)
        self._unsynced_names = [each for each in waiting if each[0].parent != folder]

    def usage(self, folder: Path) -> DiskUsage:
        """Return the usage of the simulated disk."""
        used = self.used
        return DiskUsage(used, max(0, self.capacity - used))

    def boot_id(self) -> str:
        """Return the boot id; a power cut changes it."""
        return f"boot {self._boots}"

    def lock(self, path: Path) -> "SimulatedLock":
        """Lock a file and its folder against other stores, or raise StoreLocked."""
        return self.lock_path(path.parent)

    def lock_path(self, path: Path) -> "SimulatedLock":
        """Lock a folder or file against other stores, or raise StoreLocked."""
        if path in self._locked:
            raise StoreLocked(str(path))
        self._locked.add(path)
        return SimulatedLock(self._locked, path)

    # -- shared with the open files --

    @property
    def used(self) -> int:
        """Size of all allocated blocks, bytes."""
        return BLOCK * sum(len(node.blocks) for node in self._nodes.values())

    def check(self, operation: str, path: Path) -> None:
        """Raise the injected fault, if any."""
        if self.fault is not None:
            self.fault(operation, path)

    def now_ms(self) -> int:
        """The modification time for written files, ms."""
        return self._clock_ms()

    def _node(self, path: Path) -> _Node:
        if path not in self._nodes:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return self._nodes[path]

    def _rename_to(self, path: Path, node: _Node | None) -> None:
        self._set_name(self._nodes, path, node)
        self._unsynced_names.append((path, node))

    @staticmethod
    def _set_name(names: dict[Path, _Node], path: Path, node: _Node | None) -> None:
        if node is None:
            names.pop(path, None)
        else:
            names[path] = node


class SimulatedFile:
    """An open file of the simulated disk; invalid after a power cut or kill."""

    def __init__(self, files: SimulatedFiles, path: Path, node: _Node) -> None:
        self._files = files
        self._path = path
        self._node = node
        self._life = files.life

    def pread(self, size: int, offset: int) -> bytes:
        """Read up to `size` bytes; fewer only at the end of the file."""
        self._begin("read")
        return bytes(self._node.current[offset : offset + size])

    def next_data(self, offset: int) -> int:
        """Return `offset`: the simulated disk has no sparse files."""
        return offset

    def pread_now(self, size: int, offset: int) -> bytes | None:
        """Read as `pread` does: all data is in memory."""
        return self.pread(size, offset)

    def will_need(self, size: int, offset: int) -> None:
        """Do nothing: all data is in memory."""

    def map(self, offset: int, size: int, start: int) -> None:
        """Return None: the simulated disk has no mappings."""

    def pwrite(self, data: Buffer, offset: int) -> None:
        """Write all of `data`; a failed call writes a random part of `data`."""
        try:
            self._begin("write")
        except OSError:
            self._put(data[: self._files.random.randint(0, len(data))], offset)
            raise
        free = self._files.capacity - self._files.used
        fresh = [each for each in self._blocks(offset, len(data)) if each not in self._node.blocks]
        if fresh and len(fresh) * BLOCK > free:
            first = max(0, fresh[max(0, free) // BLOCK] * BLOCK - offset)
            self._put(data[:first], offset)
            raise OSError(errno.ENOSPC, "no space left on device", str(self._path))
        self._put(data, offset)

    def write_zeros(self, offset: int, size: int) -> None:
        """Write zeros."""
        self.pwrite(bytes(size), offset)

    def sync(self) -> None:
        """Make all writes durable; a failed call loses the unsynced data."""
        try:
            self._begin("sync")
        except OSError as error:
            self._node.dirty.clear()
            raise SyncFailed(error.errno, error.strerror, str(self._path)) from error
        self._node.settle(set(self._node.dirty))

    def truncate(self, size: int) -> None:
        """Set the size; added bytes read as zeros, bytes behind the new end are lost."""
        self._begin("truncate")
        node = self._node
        old = len(node.current)
        del node.current[size:]
        node.current.extend(bytes(size - len(node.current)))
        node.blocks = {each for each in node.blocks if each * BLOCK < size}
        node.touch(min(size, old), max(size, old))

    def allocate(self, offset: int, size: int) -> bool:
        """Reserve blocks; ENOSPC when the disk is full."""
        self._begin("allocate")
        fresh = set(self._blocks(offset, size)) - self._node.blocks
        if len(fresh) * BLOCK > self._files.capacity - self._files.used:
            raise OSError(errno.ENOSPC, "no space left on device", str(self._path))
        self._node.blocks |= fresh
        return True

    def close(self) -> None:
        """Close the file."""

    def _begin(self, operation: str) -> None:
        if self._life != self._files.life:
            raise OSError(errno.EBADF, "the machine was restarted", str(self._path))
        self._files.check(operation, self._path)

    def _blocks(self, offset: int, size: int) -> range:
        return range(offset // BLOCK, -(-(offset + size) // BLOCK))

    def _put(self, data: Buffer, offset: int) -> None:
        node = self._node
        end = offset + len(data)
        if end > len(node.current):
            node.current.extend(bytes(end - len(node.current)))
        node.current[offset:end] = data
        node.blocks.update(self._blocks(offset, len(data)))
        node.touch(offset, end)
        node.modified_ms = self._files.now_ms()


class SimulatedLock:
    """A held lock of the simulated disk."""

    def __init__(self, locked: set[Path], path: Path) -> None:
        self._locked = locked
        self._path = path

    def covers(self, folder: Path) -> bool:
        """Return True for the locked folder, and for the folder of a locked file."""
        return folder == self._path

    def release(self) -> None:
        """Release the lock."""
        self._locked.discard(self._path)
