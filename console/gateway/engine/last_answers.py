"""The last answer of each broker to a request, for pages during an outage.

`fan_out(…, keep=("topic_configs",))` stores each broker's answer under the request's name and
arguments. While the broker is down, the stored answer takes the place of the missing one, and the
BrokerFailure carries the time of the stored answer.
"""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

#: Maximum number of stored answers of one cluster; the answers unused for longest are dropped.
LAST_ANSWERS_MAX = 8_192

Key = tuple[Hashable, ...]


class LastAnswers:
    """Answers by request and broker address; belongs to the event loop of the gateway."""

    def __init__(self, answers_max: int = LAST_ANSWERS_MAX) -> None:
        self._answers_max = answers_max
        self._answers: OrderedDict[tuple[Key, str], tuple[Any, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._answers)

    def store(self, key: Key, addr: str, value: Any, at_ms: int) -> None:
        self._answers[key, addr] = value, at_ms
        self._answers.move_to_end((key, addr))
        while len(self._answers) > self._answers_max:
            self._answers.popitem(last=False)

    def find(self, key: Key, addr: str) -> tuple[Any, int] | None:
        """Return the last answer and its time; None when nothing is stored."""
        return self._answers.get((key, addr))

    def forget(self, addr: str) -> None:
        """Drop all answers of a broker."""
        for key in [key for key in self._answers if key[1] == addr]:
            del self._answers[key]
