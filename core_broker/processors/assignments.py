"""The queues of a consumer, assigned by the broker: code 400.

Consumers of RocketMQ 5 with clientRebalance=false ask a broker of the topic, instead of computing
the assignment. The answer is the assignment that the members compute by themselves: the readable
queues on all brokers, by the topic's route at a name server, divided by the member list of this
broker. Every queue has the mode PULL. Compatible with RocketMQ's QueryAssignmentProcessor.
"""

from core_broker.allocation import (
    AllocateStrategy,
    averagely,
    averagely_by_circle,
    sorted_client_ids,
    sorted_queues,
    subscribe_queues,
)
from core_broker.errors import RequestRefused, TransportError
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import (
    PERM_READ,
    MessageModel,
    MessageQueue,
    MessageQueueAssignment,
    QueryAssignmentRequestBody,
    QueryAssignmentResponseBody,
    decode_request,
    encode_body,
)
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection

#: Age of a route at its next query at a name server, ms. Consumers rebalance every 20 s.
ROUTE_AGE_MS = 5_000
#: Maximum routes in memory; all are dropped when one more is needed.
ROUTES_MAX = 10_000

_STRATEGIES: dict[str, AllocateStrategy] = {
    "AVG": averagely,
    "AVG_BY_CIRCLE": averagely_by_circle,
}


class AssignmentProcessor:
    """Computes assignments; queries the routes of topics and keeps the routes for ROUTE_AGE_MS."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx
        #: topic -> time of the query and sorted queues; None for a topic without queues
        self._routes: dict[str, tuple[int, list[MessageQueue] | None]] = {}

    def query(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """QUERY_ASSIGNMENT (400)."""
        wanted = decode_request(QueryAssignmentRequestBody, request.body)
        if wanted.strategy_name not in _STRATEGIES:
            raise RequestRefused(
                ResponseCode.INVALID_PARAMETER,
                f"the broker has no allocation strategy {wanted.strategy_name!r}, only "
                f"{' and '.join(_STRATEGIES)}; set clientRebalance=true in the consumer",
            )
        asked_ms, queues = self._routes.get(wanted.topic, (0, None))
        if self._ctx.now_ms() - asked_ms < ROUTE_AGE_MS:
            return self._response(wanted, queues)
        self._ctx.answer_later(connection, request, self._after_query(wanted))
        return None

    async def _after_query(self, wanted: QueryAssignmentRequestBody) -> RemotingCommand:
        try:
            route = await self._ctx.registrar.route(wanted.topic)
        except TransportError as error:
            # Queues of this broker alone would make the consumer drop its other queues.
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"no name server answers for the route of {wanted.topic}: {error}",
            ) from None
        queues = self._own_queues(wanted.topic)
        if route is not None:
            queues = sorted_queues(subscribe_queues(wanted.topic, route))
        if len(self._routes) >= ROUTES_MAX:
            self._routes.clear()
        self._routes[wanted.topic] = self._ctx.now_ms(), queues
        return self._response(wanted, queues)

    def _own_queues(self, name: str) -> list[MessageQueue] | None:
        """The queues of a topic without a route: unregistered, or a broker without name servers."""
        topic = self._ctx.topics.get(name)
        if topic is None or not topic.perm & PERM_READ:
            return None
        broker = self._ctx.config.broker_name
        return [MessageQueue(name, broker, queue_id) for queue_id in range(topic.read_queue_nums)]

    def _response(
        self, wanted: QueryAssignmentRequestBody, queues: list[MessageQueue] | None
    ) -> RemotingCommand:
        own = None if queues is None else self._assigned(wanted, queues)
        body = QueryAssignmentResponseBody()
        if own is not None:
            body.message_queue_assignments = [
                MessageQueueAssignment(message_queue=queue) for queue in own
            ]
        return RemotingCommand.response(body=encode_body(body))

    def _assigned(
        self, wanted: QueryAssignmentRequestBody, queues: list[MessageQueue]
    ) -> list[MessageQueue] | None:
        """The queues of the client; None before its first heartbeat, which makes it a member."""
        if wanted.message_model == MessageModel.BROADCASTING:
            return queues
        group = self._ctx.consumers.group(wanted.consumer_group)
        members = sorted_client_ids(group.client_ids() if group is not None else ())
        if wanted.client_id not in members:
            return None
        return _STRATEGIES[wanted.strategy_name](wanted.client_id, queues, members)
