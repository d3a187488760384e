"""The number of unconsumed messages in queues that no consumer reads."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from console.gateway.engine.errors import ClusterUnreachable, GatewayError, NotFound
from console.gateway.engine.session import ClusterSession
from console.gateway.topics import queue_safety
from console.gateway.topics.metrics import topic_metrics


class Session:
    """Answers with two groups, and with the lag of each group or an error."""

    def __init__(self, lags: dict[str, int | GatewayError | None]) -> None:
        self._lags = lags

    async def ask(self, asked: Any, name: str) -> Any:
        if asked is topic_metrics:
            return SimpleNamespace(value=SimpleNamespace(groups=tuple(self._lags)))
        lag = self._lags[name]
        if isinstance(lag, GatewayError):
            raise lag
        queue = SimpleNamespace(topic="T", broker="b", queue_id=3, lag=lag)
        return SimpleNamespace(value=[queue, SimpleNamespace(**{**vars(queue), "queue_id": 0})])


@pytest.mark.parametrize(
    ("second", "expected"),
    [(9, 9), (2, 5), (None, None), (NotFound("gone"), 5), (ClusterUnreachable("away"), None)],
)
async def test_an_unknown_lag_makes_the_number_unknown(
    second: int | GatewayError | None, expected: int | None
) -> None:
    session = cast("ClusterSession", Session({"first": 5, "second": second}))
    assert await queue_safety._unconsumed(session, "T", "b", 3) == expected
