"""The confirm offset of a store: the end of the messages that all replicas have.

While the gate is closed, readers see the messages before the confirm offset only (visibility.py).
"""

from core_broker.store.appender import Appender
from core_broker.store.layout import StoreParts


class ReadGate:
    """Advances the confirm offset, and tells listeners what became visible. Event loop only."""

    def __init__(self, parts: StoreParts, appender: Appender) -> None:
        self._log, self._queues = parts.log, parts.queues
        self._appender = appender

    @property
    def confirmed(self) -> int:
        """The confirm offset; it never decreases."""
        return self._queues.visibility.confirmed

    @property
    def is_closed(self) -> bool:
        """True while messages behind the confirm offset are hidden."""
        return self._queues.visibility.is_gated

    def hides(self, topic: str, queue_id: int, offset: int) -> bool:
        """Return whether the log has the message before an offset of a queue, but hides it."""
        queue = self._queues.get(topic, queue_id)
        return queue is not None and queue.max_offset < offset <= queue.end_offset

    def shows(self, end_physical: int) -> bool:
        """Return whether readers may see a message that ends at an offset of the log.

        Then no failover drops the message.
        """
        return not self._queues.visibility.hides(end_physical)

    def confirm(self, offset: int) -> None:
        """Advance the confirm offset, at most to the end of the written log."""
        shown = self._queues.visibility.confirm(min(offset, self._log.written))
        self._queues.notify(shown, self._appender.listeners)

    def close(self) -> None:
        """Hide all messages behind the confirm offset, and those that follow."""
        if not self.is_closed:
            self._queues.visibility.gate(self._queues, self._log.written)

    def open(self, *, is_told: bool = True) -> None:
        """Show all messages, and tell listeners unless `is_told` is false."""
        shown = self._queues.visibility.open()
        if is_told:
            self._queues.notify(shown, self._appender.listeners)
