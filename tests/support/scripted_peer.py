"""A scripted peer on a real socket, for failures that a real broker does not make on demand."""

from collections import deque
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from core_broker.errors import GantryError
from core_broker.remoting.bodies import (
    BrokerData,
    QueueData,
    TopicRouteData,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.server import RemotingServer

Answer = RemotingCommand | GantryError | None
Handler = Callable[[RemotingCommand], Answer]


class ScriptedPeer:
    """Answers by request code. ``requests`` holds all received requests; a handler returning None
    sends no answer.

    Handlers of ``script`` are used once each, before the handler of ``on``.
    """

    def __init__(self) -> None:
        self.requests: list[RemotingCommand] = []
        self.connections: list[Connection] = []
        self.addr = ""
        self._handlers: dict[int, Handler] = {}
        self._scripts: dict[int, deque[Handler]] = {}
        self._server = RemotingServer(self._dispatch, name="scripted peer")

    async def __aenter__(self) -> Self:
        port = await self._server.listen("127.0.0.1", 0)
        self.addr = f"127.0.0.1:{port}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._server.close()

    def on(self, code: RequestCode, handler: Handler) -> None:
        self._handlers[code] = handler

    def script(self, code: RequestCode, handlers: Iterable[Handler]) -> None:
        self._scripts.setdefault(code, deque()).extend(handlers)

    def received(self, code: RequestCode) -> list[RemotingCommand]:
        return [request for request in self.requests if request.code == code]

    def serve_route(
        self,
        topics: Iterable[str],
        brokers: dict[str, str],
        queues: int = 2,
        *,
        broker_id: int = 0,
    ) -> None:
        """Act as a name server: serve a route to the brokers (name to address) for the topics."""
        known_topics = set(topics)
        data = TopicRouteData(
            queue_datas=[
                QueueData(broker_name=name, read_queue_nums=queues, write_queue_nums=queues, perm=6)
                for name in brokers
            ],
            broker_datas=[
                BrokerData(broker_name=name, broker_addrs={broker_id: addr}, cluster="c")
                for name, addr in brokers.items()
            ],
        )

        def route(request: RemotingCommand) -> RemotingCommand:
            if request.ext_fields["topic"] in known_topics:
                return ok(body=encode_body(data))
            return refuse(ResponseCode.TOPIC_NOT_EXIST, "No topic route info")

        self.on(RequestCode.GET_ROUTEINFO_BY_TOPIC, route)

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        self.requests.append(request)
        if connection not in self.connections:
            self.connections.append(connection)
        script = self._scripts.get(request.code)
        handler = script.popleft() if script else self._handlers.get(request.code)
        if handler is None:
            return ok()
        answer = handler(request)
        if isinstance(answer, GantryError):
            raise answer
        return answer


def ok(fields: dict[str, str] | None = None, body: bytes = b"") -> RemotingCommand:
    return RemotingCommand.response(ResponseCode.SUCCESS, None, fields, body)


def refuse(code: int, remark: str = "") -> RemotingCommand:
    return RemotingCommand.response(code, remark)


def stored(request: RemotingCommand) -> RemotingCommand:
    """The answer to a successful send."""
    fields = request.ext_fields
    queue_id = max(int(fields.get("e", fields.get("queueId", "0"))), 0)
    return ok({"msgId": "0" * 32, "queueId": str(queue_id), "queueOffset": "7"})
