"""File sizes of a store folder: from options, from a broker.conf, or measured.

Without a setting, the size of segments and queue files is the most frequent file size or distance
between file names. The size of an index file does not determine the numbers of slots and items:
RocketMQ's proportion of four items per slot is assumed, else RocketMQ's default of 5,000,000 slots.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from core_broker.config import BrokerConfig
from core_broker.config.property_files import parse_properties
from core_broker.errors import SettingProblem, SettingsError
from core_broker.message.delays import parse_delay_levels
from core_broker.mqstore.folder import DataFile, StoreFolder, data_files
from core_broker.store.index_layout import HEADER, ITEM, SLOT, IndexLayout
from core_broker.store.segments import NAME_DIGITS
from core_broker.store.unit_layout import UNIT_BYTES

#: Queue folders sampled for the size of queue files.
QUEUES_SAMPLED = 200
#: Index items per slot in RocketMQ's default configuration.
ITEMS_PER_SLOT = 4
_DEFAULTS = BrokerConfig()

#: The settings of a broker.conf used by mqstore.
SEGMENT_KEY = "mappedFileSizeCommitLog"
QUEUE_KEY = "mappedFileSizeConsumeQueue"
SLOTS_KEY = "maxHashSlotNum"
ITEMS_KEY = "maxIndexNum"
LEVELS_KEY = "messageDelayLevel"
LOG_PATH_KEY = "storePathCommitLog"
#: Lower bounds of the settings; a segment below 1024 bytes holds no message.
_LIMITS = {SEGMENT_KEY: 1024, QUEUE_KEY: 20, SLOTS_KEY: 1, ITEMS_KEY: 2}
#: Upper bound of file sizes, bytes: the maximum of Java's mapped files.
SIZE_MAX = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Sizes:
    """The settings of a store required by the checks; file sizes in bytes."""

    segment: int
    queue_file: int
    index: IndexLayout
    delay_levels_ms: tuple[int, ...]


def read_settings(conf: Path | None, overrides: dict[str, str | None]) -> dict[str, str]:
    """Return the settings of a broker.conf, with `overrides` of the command line.

    Settings missing from a broker.conf have RocketMQ's defaults. Raises SettingsError.
    """
    settings: dict[str, str] = {}
    if conf is not None:
        try:
            text = conf.read_text()
        except (OSError, UnicodeDecodeError) as error:
            raise SettingsError([SettingProblem("-c", f"a readable file: {error}")]) from None
        settings = dict(_DEFAULTS.items())
        settings |= {entry.key: entry.value.strip() for entry in parse_properties(text)}
    settings |= {name: value for name, value in overrides.items() if value is not None}
    problems = []
    for name, low in _LIMITS.items():
        value = settings.get(name)
        if value is not None and not (value.isdecimal() and low <= int(value[:11]) <= SIZE_MAX):
            problems.append(SettingProblem(name, f"a number from {low} to {SIZE_MAX}", value))
    try:
        parse_delay_levels(settings.get(LEVELS_KEY, ""))
    except (ValueError, IndexError) as error:
        problems.append(SettingProblem(LEVELS_KEY, str(error), settings[LEVELS_KEY]))
    if problems:
        raise SettingsError(problems)
    return settings


def find_sizes(folder: StoreFolder, settings: dict[str, str]) -> Sizes:
    """Return the file sizes of a folder: from the settings, measured for missing settings."""
    queue_file = _number(settings, QUEUE_KEY) or _most_frequent(
        _queue_sizes(folder), _DEFAULTS.mapped_file_size_consume_queue
    )
    segment = _number(settings, SEGMENT_KEY) or _most_frequent(
        _sizes_and_gaps(folder.segments()[0]), _DEFAULTS.mapped_file_size_commit_log
    )
    levels = settings.get(LEVELS_KEY, _DEFAULTS.message_delay_level)
    return Sizes(
        segment,
        max(queue_file, UNIT_BYTES),
        _index_layout(folder, settings),
        parse_delay_levels(levels),
    )


def _number(settings: dict[str, str], name: str) -> int | None:
    return int(settings[name]) if name in settings else None


def _queue_sizes(folder: StoreFolder) -> Iterator[int]:
    for queue in folder.queues()[0][:QUEUES_SAMPLED]:
        yield from _sizes_and_gaps(data_files(queue.path, NAME_DIGITS)[0])


def _sizes_and_gaps(files: list[DataFile]) -> Iterator[int]:
    yield from (file.size for file in files)
    yield from (later.start - file.start for file, later in pairwise(files))


def _most_frequent(sizes: Iterable[int], default: int) -> int:
    """Return the most frequent size; among equally frequent sizes the largest."""
    counts = Counter(size for size in sizes if 0 < size <= SIZE_MAX)
    return max(counts, key=lambda size: (counts[size], size)) if counts else default


def _index_layout(folder: StoreFolder, settings: dict[str, str]) -> IndexLayout:
    slots, items = _number(settings, SLOTS_KEY), _number(settings, ITEMS_KEY)
    size = _most_frequent((file.size for file in folder.index_files()[0]), 0) - HEADER.size
    if slots is None and items is None:
        slots, rest = divmod(size, SLOT.size + ITEMS_PER_SLOT * ITEM.size)
        if rest or slots <= 0:
            slots = _DEFAULTS.max_hash_slot_num
        items = slots * ITEMS_PER_SLOT
    elif slots is None and items is not None:
        slots = max((size - items * ITEM.size) // SLOT.size, 1)
    elif slots is not None and items is None:
        items = max((size - slots * SLOT.size) // ITEM.size, 2)
    return IndexLayout(slots or 1, items or 2)
