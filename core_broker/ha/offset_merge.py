"""Merges the consumer offsets of a master into those of its slave. Pure.

A slave accepts commits, too: consumers commit to the slave while the master is down. RocketMQ
overwrites these offsets when the master returns, and the consumers repeat messages. Here the larger
offset wins, except after a reset: an offset that decreased on the master since the last answer of
the same process. After a restart of the master a smaller offset is no reset, because the master
lost its newest commits. Offsets that disappear from the master's answers are removed.
"""

from collections.abc import Iterator, Mapping

from core_broker.ha.offset_table import PAIRS_PER_SLICE, OffsetTable
from core_broker.state.consumer_offsets import SEPARATOR, ConsumerOffsets


class OffsetMerge:
    """Keeps the master's last answer, by which resets are recognised."""

    def __init__(self, offsets: ConsumerOffsets) -> None:
        self._offsets = offsets
        self._last: OffsetTable = {}
        self._boot_ms = 0

    def merge(self, table: OffsetTable, boot_ms: int) -> Iterator[None]:
        """Apply the master's table; `boot_ms` is the start time of the master's process.

        Yields after each slice, for the caller to let other work run.
        """
        last = self._last if boot_ms == self._boot_ms else {}
        for count, key in enumerate(last, start=1):
            if key not in table:
                topic, _, group = key.rpartition(SEPARATOR)
                self._offsets.forget(group, topic)
            if count % PAIRS_PER_SLICE == 0:
                yield
        for count, (key, queues) in enumerate(table.items(), start=1):
            self._merge_pair(key, queues, last.get(key, {}))
            if count % PAIRS_PER_SLICE == 0:
                yield
        # An interrupted merge is repeated as a whole.
        self._last, self._boot_ms = table, boot_ms

    def _merge_pair(self, key: str, queues: Mapping[int, int], before: Mapping[int, int]) -> None:
        if before == queues:
            return
        topic, _, group = key.rpartition(SEPARATOR)
        for queue_id, offset in self._changed(topic, group, queues, before):
            if not self._offsets.commit(group, topic, queue_id, offset):
                break  # the table is full, as that of the master

    def _changed(
        self, topic: str, group: str, queues: Mapping[int, int], before: Mapping[int, int]
    ) -> Iterator[tuple[int, int]]:
        for queue_id, offset in queues.items():
            own = self._offsets.committed(group, topic, queue_id)
            is_reset = offset < before.get(queue_id, 0)
            if own is None or offset > own or (is_reset and offset != own):
                yield queue_id, offset
