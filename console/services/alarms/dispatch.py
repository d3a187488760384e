"""Deliveries are claimed and sent, by every worker.

A claim is one conditional UPDATE: of several workers, one sends. The notices of a receiver go
one after the other, oldest first: a resolved notice never overtakes its firing notice. A worker
that dies between the receiver's acceptance and the stored result repeats the notice after CLAIM_MS;
the number of the delivery is the same.
"""

import logging
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Final

from django.db import DatabaseError, connection
from django.db.models import Min, Q

from console.gateway import now_ms
from console.services.alarms.feed import announce
from console.services.alarms.models import Delivery, DeliveryState
from console.services.alarms.results import Result
from console.services.alarms.sending.content import notice_of
from console.services.alarms.sending.http import REQUEST_S_MAX, SendFailed
from console.services.alarms.sending.send import send
from console.services.leases.periodic import Periodic

log = logging.getLogger(__name__)

INTERVAL_MS: Final = 1_000
#: Maximum number of notices that a worker sends at the same time.
SENDS_AT_ONCE: Final = 4
#: Duration of a claim, ms.
CLAIM_MS: Final = 60_000
ATTEMPTS_MAX: Final = 8
#: Time before the second attempt, ms; each further one waits four times longer, up to the maximum.
RETRY_MS: Final = 5_000
RETRY_MS_MAX: Final = 15 * 60_000
STOP_S: Final = REQUEST_S_MAX + 5


class Dispatcher:
    """A thread from `start` to `stop`."""

    def __init__(self) -> None:
        self._thread = Periodic(
            "alarm-notices", INTERVAL_MS, lambda _at_ms: self.dispatch(), self._end, stop_s=STOP_S
        )
        self._pool = ThreadPoolExecutor(SENDS_AT_ONCE, thread_name_prefix="alarm-notices")
        self._running: set[Future[None]] = set()

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """End the thread after the running requests."""
        self._thread.stop()

    def dispatch(self) -> int:
        """Claim and start to send the due deliveries; return their number."""
        self._running = {each for each in self._running if not each.done()}
        free = SENDS_AT_ONCE - len(self._running)
        claimed = claim(now_ms(), free) if free > 0 else []
        self._running |= {self._pool.submit(_deliver, number) for number in claimed}
        return len(claimed)

    def wait(self) -> None:
        """Wait for the running requests."""
        for each in self._running:
            each.result(CLAIM_MS / 1000)

    def _end(self) -> None:
        self._pool.shutdown(wait=True)


def claim(at_ms: int, most: int) -> list[int]:
    """Claim at most `most` deliveries: the oldest waiting one of each receiver, when it is due."""
    oldest = (
        Delivery.objects.filter(state=DeliveryState.WAITING)
        .values("receiver")
        .annotate(first=Min("pk"))
        .values_list("first", flat=True)
    )
    is_due = Q(due_ms__lte=at_ms, claimed_until_ms__lte=at_ms)
    numbers = Delivery.objects.filter(is_due, pk__in=list(oldest)).order_by("due_ms")
    claimed = []
    for number, attempts in numbers.values_list("pk", "attempts")[:most]:
        row = Delivery.objects.filter(is_due, pk=number, state=DeliveryState.WAITING)
        if row.update(claimed_until_ms=at_ms + CLAIM_MS, attempts=attempts + 1):
            claimed.append(number)
    return claimed


def _deliver(number: int) -> None:
    try:
        deliver(number)
    except DatabaseError:
        log.exception("the result of delivery %d is not stored; the notice may come again", number)
    except Exception:
        log.exception("delivery %d failed", number)
    finally:
        connection.close()  # of this thread


def deliver(number: int) -> None:
    """Send a claimed delivery and store the result."""
    delivery = Delivery.objects.select_related("receiver", "rule").get(pk=number)
    receiver = delivery.receiver
    if receiver is None or not receiver.enabled:
        _failed(delivery, Result("receiver-off"), is_final=True)
        return
    if delivery.attempts > ATTEMPTS_MAX:
        _failed(delivery, Result("worker-ended"), is_final=True)
        return
    try:
        answer = send(notice_of(delivery, receiver.language), receiver, now_ms())
    except SendFailed as failure:
        _failed(delivery, failure.result, is_final=failure.is_final)
    except Exception as error:
        log.exception("delivery %d cannot be sent", number)
        reason = f"{type(error).__name__}: {error}"
        _failed(delivery, Result("unexpected", {"reason": reason}), is_final=False)
    else:
        _store(delivery, answer, state=DeliveryState.SENT, finished_ms=now_ms())


def _failed(delivery: Delivery, result: Result, *, is_final: bool) -> None:
    """Store a failed attempt: the next attempt, or the end."""
    log.warning("notice %d to %s: %s", delivery.pk, delivery.receiver_name, result.english)
    if is_final or delivery.attempts >= ATTEMPTS_MAX:
        _store(delivery, result, state=DeliveryState.FAILED, finished_ms=now_ms())
    else:
        _store(delivery, result, due_ms=now_ms() + retry_ms(delivery.attempts))


def retry_ms(attempts: int) -> int:
    """Return the time until the next attempt, after `attempts` attempts."""
    return int(min(RETRY_MS * 4 ** (attempts - 1), RETRY_MS_MAX))


def _store(delivery: Delivery, result: Result, **values: object) -> None:
    """Store the result, end the claim, and notify open pages."""
    Delivery.objects.filter(pk=delivery.pk).update(
        result=result.stored, claimed_until_ms=0, **values
    )
    announce(delivery.cluster, "notices")
