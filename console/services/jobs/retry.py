"""Retries of cluster queries in jobs."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from console.gateway import GatewayError
from console.services.jobs.control import JobFailed

if TYPE_CHECKING:
    from console.services.jobs.control import Control

#: Attempts per query; the last failure ends the job.
TRIES_MAX: Final = 5
RETRY_DELAY_S: Final = 2.0

T = TypeVar("T")


def with_retries(control: "Control", ask: Callable[[], T]) -> T:
    """The result of `ask` after at most TRIES_MAX attempts; raises JobFailed after the last."""
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            return ask()
        except GatewayError as failure:
            if not tries_left:
                raise JobFailed(str(failure.detail)) from failure
            control.wait(RETRY_DELAY_S)
    raise AssertionError("the last try returns or raises")
