"""Questions of a job to a cluster that may be away for a moment."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeVar

from console.gateway import GatewayError
from console.services.jobs.control import JobFailed

if TYPE_CHECKING:
    from console.services.jobs.control import Control

#: How often in a row the cluster may fail to answer before the job gives up.
TRIES_MAX: Final = 5
RETRY_DELAY_S: Final = 2.0

T = TypeVar("T")


def with_retries(control: "Control", ask: Callable[[], T]) -> T:
    """What `ask` answers, at one of TRIES_MAX tries; raises JobFailed with the last reason."""
    for tries_left in reversed(range(TRIES_MAX)):
        try:
            return ask()
        except GatewayError as failure:
            if not tries_left:
                raise JobFailed(str(failure.detail)) from failure
            control.wait(RETRY_DELAY_S)
    raise AssertionError("the last try returns or raises")
