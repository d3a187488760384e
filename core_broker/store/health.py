"""Whether the store accepts messages, and the reason if the store refuses them."""

import logging

log = logging.getLogger(__name__)


class Health:
    """The reasons for refusing messages. Reads continue in every state."""

    __slots__ = ("_disk_refusal", "_failure", "_is_open", "_lag", "_postponed", "reason")

    def __init__(self) -> None:
        #: The reason with the highest priority; None while the store accepts messages.
        self.reason: str | None = None
        self._is_open = False
        self._failure: str | None = None
        self._postponed: str | None = None
        self._lag: str | None = None
        self._disk_refusal: str | None = None
        self._settle()

    @property
    def has_failed(self) -> bool:
        """The disk failed; the store stays read-only until a restart."""
        return self._failure is not None

    def set_open(self, is_open: bool) -> None:
        """Set whether the store runs: True between start and stop."""
        self._is_open = is_open
        self._settle()

    def fail(self, reason: str) -> None:
        """Refuse messages until a restart, since data on the disk may be lost."""
        if self._failure is None:
            log.critical("The store is read-only until the broker is restarted: %s", reason)
            self._failure = reason
            self._settle()

    @property
    def has_postponed(self) -> bool:
        """A full disk has postponed a part of the start."""
        return self._postponed is not None

    def set_postponed(self, reason: str | None) -> None:
        """Set the reason why a part of the start is postponed; None when the start is complete."""
        if reason is not None:
            reason = f"the start of the store is not complete: {reason}"
        if reason is not None and self._postponed is None:
            log.error("Messages are refused: %s", reason)
        elif reason is None and self._postponed is not None:
            log.warning("The disk has free space again; the start of the store is complete")
        self._postponed = reason
        self._settle()

    def set_lag(self, reason: str | None) -> None:
        """Set the reason why queues or index cannot be written; None when they can."""
        if reason is not None:
            reason = f"consume queues or index cannot be written: {reason}"
        if reason is not None and self._lag is None:
            log.error("Messages are refused: %s", reason)
        elif reason is None and self._lag is not None:
            log.warning("Messages are accepted again: consume queues and index can be written")
        self._lag = reason
        self._settle()

    def set_disk_refusal(self, reason: str | None) -> None:
        """Set the reason why the disk is too full for messages; None when it is not."""
        if reason != self._disk_refusal:
            log.warning("%s", reason or "The disk of the store has free space again")
        self._disk_refusal = reason
        self._settle()

    def _settle(self) -> None:
        closed = None if self._is_open else "the store is not running"
        lag = self._postponed or self._lag
        self.reason = self._failure or closed or lag or self._disk_refusal
