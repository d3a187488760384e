"""Refusal of guesses: an account that fails too often from one address must wait.

Failures are unknown accounts and wrong signatures. Above `failures_max` failures in a minute, the
account is refused from the address for 1, 2, 4, … `pause_max_s` seconds, and the signature is not
checked. Other accounts of the address, and the account from other addresses, are not slowed.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from core_broker.auth.contracts import GUESSES, Established, Identity, Refusal, Request
from core_broker.auth.signature import ACCESS_KEY
from core_broker.remoting.codes import ResponseCode

#: Maximum remembered pairs of address and account; the oldest is forgotten when the table is full.
PAIRS_MAX = 10_000
#: Time without a failure after which a pair starts again at zero, seconds.
FORGOTTEN_AFTER_S = 60.0


@dataclass(slots=True)
class _Failures:
    count: int = 0
    last_s: float = 0.0
    pauses: int = 0
    closed_until_s: float = 0.0


class BackOff:
    """An observer of a gate that refuses accounts after failures."""

    def __init__(
        self,
        failures_max: int,
        pause_max_s: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._failures_max = failures_max
        self._pause_max_s = pause_max_s
        self._clock = clock
        self._pairs: dict[tuple[str, str], _Failures] = {}

    def before(self, address: str, request: Request) -> None:
        """Refuse a request of an account that must wait."""
        account = request.ext_fields.get(ACCESS_KEY, "")
        failures = self._pairs.get((address, account))
        if failures is not None and self._clock() < failures.closed_until_s:
            raise Refusal(
                ResponseCode.NO_PERMISSION,
                f"too many failed attempts of {account} from {address}; try again after a pause"
                " (maxAccessFailures)",
                "backing-off",
                account=account,
            )

    def admitted(self, address: str, request: Request, identity: Identity) -> None:
        """Forget the failures of an account with the right key."""
        if self._pairs and identity.how is Established.SIGNATURE:
            self._pairs.pop((address, identity.account), None)

    def refused(self, address: str, request: Request, refusal: Refusal) -> None:
        """Count a failure."""
        if refusal.reason not in GUESSES:
            return
        now, pair = self._clock(), (address, refusal.account)
        failures = self._pairs.pop(pair, None)
        idle_after_s = FORGOTTEN_AFTER_S
        if failures is not None:
            idle_after_s += failures.closed_until_s - failures.last_s if failures.pauses else 0
        if failures is None or now - failures.last_s > idle_after_s:
            failures = _Failures()
        failures.count += 1
        failures.last_s = now
        if failures.count > self._failures_max:
            failures.closed_until_s = now + min(2**failures.pauses, self._pause_max_s)
            failures.pauses = min(failures.pauses + 1, 30)
        if len(self._pairs) >= PAIRS_MAX:
            del self._pairs[next(iter(self._pairs))]
        self._pairs[pair] = failures
