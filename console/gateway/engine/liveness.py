"""Which brokers of a cluster answer: the failure of each address, and when to try again.

A transport error makes the broker *down*. Questions to a down broker get the known failure at
once, and every PROBE_EVERY_MS one request runs in the background.
The first answer ends the state.
"""

from collections.abc import Callable

from core_broker.errors import RequestTimeout, TransportError

#: Pause between two requests to a broker that is down, milliseconds.
PROBE_EVERY_MS = 2_000


class Liveness:
    """Failures and contacts by address; `changed` is called when a broker goes down or comes back.

    Belongs to the event loop of the gateway.
    """

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self._down: dict[str, TransportError] = {}
        self._probe_at_ms: dict[str, int] = {}
        #: Time of the last answer by address, milliseconds.
        self.contact_ms: dict[str, int] = {}

    def failure(self, addr: str) -> TransportError | None:
        """Return why the broker is down; None while the broker answers or before a request."""
        return self._down.get(addr)

    def probe_due(self, addr: str, now_ms: int) -> bool:
        """Return True once per PROBE_EVERY_MS for a broker that is down."""
        if addr not in self._down or now_ms < self._probe_at_ms.get(addr, 0):
            return False
        self._probe_at_ms[addr] = now_ms + PROBE_EVERY_MS
        return True

    def answered(self, addr: str, now_ms: int) -> None:
        self.contact_ms[addr] = now_ms
        if self._down.pop(addr, None) is not None:
            self._probe_at_ms.pop(addr, None)
            self._changed()

    def failed(self, addr: str, failure: TransportError, asked_ms: int, now_ms: int) -> None:
        """Take over the failure of a request sent at `asked_ms`.

        A timeout of one request is no outage when the broker answered another request meanwhile.
        """
        if isinstance(failure, RequestTimeout) and self.contact_ms.get(addr, -1) > asked_ms:
            return
        was_down = addr in self._down
        self._down[addr] = failure
        self._probe_at_ms[addr] = now_ms + PROBE_EVERY_MS
        if not was_down:
            self._changed()

    def forget(self, addr: str) -> None:
        self._down.pop(addr, None)
        self._probe_at_ms.pop(addr, None)
        self.contact_ms.pop(addr, None)
