# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# cython: initializedcheck=False
"""Plain records of a received log: queue units and index entries, without a Python object each.

Plain is a record as most are: magic 1, IPv4 hosts, an ASCII topic other than the schedule topic,
ASCII tags and keys, no transaction or a committed one, and the next offset of its queue. The form
in Python is parse_record (store/log_scan.py) with Dispatcher.dispatch (store/dispatcher.py), which
also take every other record; tests/unit/kernel/test_plain_records.py compares both.
"""

import cython
from cython.cimports.core_broker.kernel.layout import (
    RECORD_HEAD,
    RECORD_MAGIC_V1,
    RECORD_MIN,
    UNIT_BYTES,
)
from cython.cimports.core_broker.kernel.octets import (
    Text,
    get16,
    get32,
    get64,
    is_ascii,
    java_hash,
    put32,
    put64,
    same,
)
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cython.cimports.libc.stdint import int32_t, int64_t, uint8_t, uint32_t
from cython.cimports.libc.string import memchr, memcmp, memset

#: Bits of the system flag of other records: kinds of transactions except commit, IPv6 hosts.
OTHER_FLAGS = cython.declare(uint32_t, 0x4 | 0x10 | 0x20)


@cython.cclass
class PlainScan:
    """Scans received bytes; keeps nothing between two calls."""

    def scan(
        self, data: bytes, at: cython.Py_ssize_t, offset: int64_t, left: int64_t
    ) -> tuple | None:
        """Return the plain records from `at` of `data` on, up to the first other or incomplete one.

        `offset` is the log offset of the byte at `at`, `left` the distance from there to the end of
        the segment. The result has the number of bytes, the log offset and the store time of the
        last record, the runs, all units, and the entries; a run has topic, queue id,
        first queue offset, first and last byte of its units, and the end of its last record.
        None without a plain record.
        """
        start: cython.pointer(uint8_t) = cython.cast(
            cython.pointer(uint8_t), PyBytes_AS_STRING(data)
        )
        here: cython.pointer(uint8_t) = start + at
        end: cython.pointer(uint8_t) = start + len(data)
        size: int64_t
        taken: int64_t = 0
        newest: int64_t = -1
        self._run_count = self._unit_count = self._entry_count = 0
        self._stored_at = 0
        while end - here >= RECORD_MIN and self._unit_count < RECORDS_MAX:
            size = get32(here)
            if (
                size < RECORD_MIN
                or size > end - here
                or size > left - taken - BLANK_BYTES
                or size > PLAIN_BYTES_MAX
                or get32(here + 4) != RECORD_MAGIC_V1
            ):
                break
            if newest < 0:
                memset(self._slots, 0, RUN_SLOTS * 2)
            if not self._read(here, cython.cast(uint32_t, size), offset + taken):
                break
            newest = offset + taken
            taken += size
            here += size
        if newest < 0:
            return None
        # The runs come first: they place their units.
        runs = self._take_runs()
        entries = PyBytes_FromStringAndSize(
            cython.cast(cython.p_char, self._entries), self._entry_count * ENTRY_NUMBERS * 8
        )
        units = self._take_units()
        return taken, newest, self._stored_at, runs, units, entries

    def _read(self, record, size, offset):
        """Note one record; false for a record that is not plain."""
        queue_id: int32_t = cython.cast(int32_t, get32(record + 12))
        queue_offset: int64_t = get64(record + 20)
        stored_at: int64_t = get64(record + 56)
        body_bytes: uint32_t = get32(record + RECORD_HEAD - 4)
        topic: Text
        at: cython.pointer(uint8_t)
        end: cython.pointer(uint8_t) = record + size
        unit: cython.pointer(FoundUnit) = cython.address(self._units[self._unit_count])
        run: cython.int
        if (
            get64(record + 28) != offset
            or queue_id < 0
            or queue_offset < 0
            or queue_offset > offset // RECORD_MIN
            or get32(record + 36) & OTHER_FLAGS
            or stored_at <= 0
            or body_bytes > size - RECORD_MIN
        ):
            return False
        at = record + RECORD_HEAD + body_bytes
        topic.n = at[0]
        topic.p = at + 1
        # The body leaves room for both lengths.
        if topic.n > end - topic.p - 2:
            return False
        at = topic.p + topic.n
        if at + 2 + get16(at) != end or get16(at) > 32767:
            return False
        if not self._properties(at + 2, end):
            return False
        run = self._run(topic, queue_id, queue_offset)
        if run < 0:
            return False
        if not self._index(self._runs[run].key_seed, offset, stored_at):
            return False
        unit.run = run
        unit.offset = offset
        unit.size = size
        unit.tags_code = 0
        if self._tags.p != cython.NULL:
            unit.tags_code = cython.cast(int32_t, java_hash(self._tags.p, self._tags.n, 0))
        self._unit_count += 1
        self._runs[run].count += 1
        self._runs[run].end = offset + size
        self._stored_at = stored_at
        return True

    def _properties(self, at, end):
        """Find tags and keys, the last of each; false when one is not ASCII."""
        stop: cython.pointer(uint8_t)
        split: cython.pointer(uint8_t)
        name: Text
        value: Text
        self._tags.p = self._keys.p = self._unique_key.p = cython.NULL
        while at < end:
            stop = cython.cast(cython.pointer(uint8_t), memchr(at, 2, end - at))
            if stop == cython.NULL:
                stop = end
            split = cython.cast(cython.pointer(uint8_t), memchr(at, 1, stop - at))
            if split != cython.NULL and split > at and split + 1 < stop:
                name.p = at
                name.n = cython.cast(cython.int, split - at)
                value.p = split + 1
                value.n = cython.cast(cython.int, stop - value.p)
                if same(name, b"TAGS", 4):
                    self._tags = value
                elif same(name, b"KEYS", 4):
                    self._keys = value
                elif same(name, b"UNIQ_KEY", 8):
                    self._unique_key = value
                else:
                    value.n = 0
                if value.n and not is_ascii(value.p, value.n):
                    return False
            at = stop + 1
        return True

    def _run(self, topic, queue_id, queue_offset):
        """Return the run of a queue; -1 when the message is not the next one of the queue."""
        hashed: uint32_t = java_hash(topic.p, topic.n, 0)
        slot: uint32_t = (hashed + cython.cast(uint32_t, queue_id) * 0x9E3779B1) % RUN_SLOTS
        number: cython.int
        run: cython.pointer(Run)
        while self._slots[slot]:
            number = self._slots[slot] - 1
            run = cython.address(self._runs[number])
            if (
                run.queue_id == queue_id
                and run.topic.n == topic.n
                and not memcmp(run.topic.p, topic.p, topic.n)
            ):
                return number if queue_offset == run.first + run.count else -1
            slot = (slot + 1) % RUN_SLOTS
        if self._run_count == RUNS_MAX or not is_plain_topic(topic):
            return -1
        number = self._run_count
        run = cython.address(self._runs[number])
        run.topic = topic
        run.key_seed = hashed * 31 + KEY_SEPARATOR
        run.queue_id = queue_id
        run.first = queue_offset
        run.end = 0
        run.count = 0
        self._slots[slot] = number + 1
        self._run_count += 1
        return number

    def _index(self, seed, offset, stored_at):
        """Add the keys of a record: the unique key, then every key of KEYS; false without room."""
        before: cython.int = self._entry_count
        at: cython.pointer(uint8_t) = self._keys.p
        end: cython.pointer(uint8_t)
        stop: cython.pointer(uint8_t)
        key: Text = self._unique_key
        if key.p != cython.NULL and not self._index_key(seed, key.p, key.n, offset, stored_at):
            return False
        if at == cython.NULL:
            return True
        end = at + self._keys.n
        while at < end:
            stop = cython.cast(cython.pointer(uint8_t), memchr(at, 32, end - at))
            if stop == cython.NULL:
                stop = end
            if stop > at and not self._index_key(
                seed, at, cython.cast(cython.int, stop - at), offset, stored_at
            ):
                self._entry_count = before
                return False
            at = stop + 1
        return True

    def _index_key(self, seed, key, count, offset, stored_at):
        code: int32_t = cython.cast(int32_t, java_hash(key, count, seed))
        entry: cython.pointer(int64_t)
        if self._entry_count == ENTRIES_MAX:
            return False
        if code < 0:
            code = -code if code != -2147483648 else 0
        entry = cython.address(self._entries[self._entry_count * ENTRY_NUMBERS])
        entry[0] = code
        entry[1] = offset
        entry[2] = stored_at
        self._entry_count += 1
        return True

    def _take_runs(self):
        runs = []
        i: cython.int
        unit: cython.int = 0
        run: cython.pointer(Run)
        for i in range(self._run_count):
            run = cython.address(self._runs[i])
            run.unit = unit
            if run.count:
                topic = cython.cast(cython.p_char, run.topic.p)[: run.topic.n].decode("ascii")
                begin = unit * UNIT_BYTES
                unit += run.count
                runs.append((topic, run.queue_id, run.first, begin, unit * UNIT_BYTES, run.end))
        return runs

    def _take_units(self):
        units = PyBytes_FromStringAndSize(cython.NULL, self._unit_count * UNIT_BYTES)
        start: cython.pointer(uint8_t) = cython.cast(
            cython.pointer(uint8_t), PyBytes_AS_STRING(units)
        )
        i: cython.int
        at: cython.pointer(uint8_t)
        found: cython.pointer(FoundUnit)
        run: cython.pointer(Run)
        for i in range(self._unit_count):
            found = cython.address(self._units[i])
            run = cython.address(self._runs[found.run])
            at = start + run.unit * UNIT_BYTES
            run.unit += 1
            put64(at, found.offset)
            put32(at + 8, found.size)
            put64(at + 12, found.tags_code)
        return units


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def is_plain_topic(topic: Text) -> cython.bint:
    """Return true for an ASCII topic that is a folder's name, except the schedule topic."""
    if topic.n == 0 or not is_ascii(topic.p, topic.n):
        return False
    if memchr(topic.p, 47, topic.n) != cython.NULL or memchr(topic.p, 0, topic.n) != cython.NULL:
        return False
    if topic.p[0] == 46 and (topic.n == 1 or (topic.n == 2 and topic.p[1] == 46)):
        return False
    return not same(topic, b"SCHEDULE_TOPIC_XXXX", 19)
