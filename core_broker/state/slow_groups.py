"""How far behind groups read: the protection of a broker from those that read from the disk.

Noted with each pull, and forgotten when the group is switched off for it. Compatible with
RocketMQ's BrokerController.protectBroker.
"""

#: How often groups that lag too far are looked for.
PROTECT_INTERVAL_MS = 180_000
#: Queues noted; more are not, so that forged pulls cannot fill the memory.
NOTES_MAX = 100_000


class SlowGroups:
    """Bytes between what a group read last of a queue and the end of the log."""

    def __init__(self) -> None:
        self._behind: dict[tuple[str, str, int], int] = {}

    def note(self, group: str, topic: str, queue_id: int, behind_bytes: int) -> None:
        """Remember how far behind a read was."""
        key = (group, topic, queue_id)
        if key in self._behind or len(self._behind) < NOTES_MAX:
            self._behind[key] = behind_bytes

    def take(self, threshold_bytes: int) -> list[str]:
        """The groups that are further behind than this in any queue, and forget them."""
        slow = sorted({key[0] for key, behind in self._behind.items() if behind > threshold_bytes})
        for key in [key for key in self._behind if key[0] in slow]:
            del self._behind[key]
        return slow
