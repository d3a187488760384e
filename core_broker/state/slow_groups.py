"""Lag of groups in bytes, for the protection of the broker from groups that read from the disk.

Each pull records its lag; disabling a group removes its records. Compatible with RocketMQ's
BrokerController.protectBroker.
"""

#: Time between two searches for slow groups, ms.
PROTECT_INTERVAL_MS = 180_000
#: Maximum recorded queues, so that forged pulls cannot exhaust the memory.
QUEUES_RECORDED_MAX = 100_000


class SlowGroups:
    """Bytes between each group's last read of a queue and the end of the log."""

    def __init__(self) -> None:
        self._behind: dict[tuple[str, str, int], int] = {}

    def note(self, group: str, topic: str, queue_id: int, behind_bytes: int) -> None:
        """Record the lag of a read, bytes."""
        key = (group, topic, queue_id)
        if key in self._behind or len(self._behind) < QUEUES_RECORDED_MAX:
            self._behind[key] = behind_bytes

    def take(self, threshold_bytes: int) -> list[str]:
        """Groups with a lag above the threshold in any queue; their records are removed."""
        slow = sorted({key[0] for key, behind in self._behind.items() if behind > threshold_bytes})
        for key in [key for key in self._behind if key[0] in slow]:
            del self._behind[key]
        return slow
