"""The progress of a slave, for metrics, readiness and runtime information."""

from dataclasses import dataclass
from enum import StrEnum

SECOND_MS = 1_000


class SlaveState(StrEnum):
    """What the connection to the master does."""

    NO_MASTER = "no_master"
    CONNECTING = "connecting"
    TRANSFERRING = "transferring"
    #: Waits for the next attempt after a failure.
    WAITING = "waiting"
    DIVERGED = "diverged"
    DAMAGED = "damaged"


@dataclass(slots=True)
class SlaveStatus:
    """The progress of a slave; times are wall clock ms, 0 for never."""

    state: SlaveState = SlaveState.NO_MASTER
    #: Reason of the last failure; "" while bytes are transferred.
    problem: str = "the master is unknown"
    #: HA address of the master, host:port.
    ha_addr: str = ""
    last_read_ms: int = 0
    last_write_ms: int = 0
    #: Bytes of the master's log since the start.
    received_bytes: int = 0
    connections: int = 0
    #: End of the master's log as the master said last, 0 for unknown.
    master_end: int = 0

    #: Begin of the current second, ms; `received_bytes` at that time; the rate before.
    _second_ms: int = 0
    _second_bytes: int = 0
    _rate: int = 0

    def bytes_per_second(self, now_ms: int) -> int:
        """Bytes received per second, measured between two calls at least a second apart."""
        elapsed_ms = now_ms - self._second_ms
        if elapsed_ms >= SECOND_MS:
            self._rate = (self.received_bytes - self._second_bytes) * SECOND_MS // elapsed_ms
            self._second_ms, self._second_bytes = now_ms, self.received_bytes
        return self._rate

    def lag_bytes(self, end: int) -> int:
        """Bytes of the master's log that are not in the slave's log yet, as far as is known."""
        return max(self.master_end - end, 0)
