"""The queues of a consumer, assigned by the broker: code 400.

Consumers of RocketMQ 5 with clientRebalance=false send the request to a broker of the topic instead
of computing the assignment. The answer is the result of a member's own computation: the readable
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
#: Maximum routes in memory; a further route replaces all.
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
        query = decode_request(QueryAssignmentRequestBody, request.body)
        if query.strategy_name not in _STRATEGIES:
            raise RequestRefused(
                ResponseCode.INVALID_PARAMETER,
                f"the broker has no allocation strategy {query.strategy_name!r}, only "
                f"{' and '.join(_STRATEGIES)}; set clientRebalance=true in the consumer",
            )
        queried_ms, queues = self._routes.get(query.topic, (0, None))
        if self._ctx.now_ms() - queried_ms < ROUTE_AGE_MS:
            return self._response(query, queues)
        self._ctx.answer_later(connection, request, self._after_query(query))
        return None

    def request_modes(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ALL_MESSAGE_REQUEST_MODE (402), of slaves of RocketMQ 5: every group pulls."""
        return RemotingCommand.response(body=b'{"messageRequestModeMap":{}}')

    async def _after_query(self, query: QueryAssignmentRequestBody) -> RemotingCommand:
        try:
            route = await self._ctx.registrar.route(query.topic)
        except TransportError as error:
            # With the queues of this broker alone, the consumer drops the queues of other brokers.
            raise RequestRefused(
                ResponseCode.SYSTEM_ERROR,
                f"no name server answers for the route of {query.topic}: {error}",
            ) from None
        queues = self._own_queues(query.topic)
        if route is not None:
            queues = sorted_queues(subscribe_queues(query.topic, route))
        if len(self._routes) >= ROUTES_MAX:
            self._routes.clear()
        self._routes[query.topic] = self._ctx.now_ms(), queues
        return self._response(query, queues)

    def _own_queues(self, name: str) -> list[MessageQueue] | None:
        """The queues of a topic without a route: unregistered, or a broker without name servers."""
        topic = self._ctx.topics.get(name)
        if topic is None or not topic.perm & PERM_READ:
            return None
        broker = self._ctx.config.broker_name
        return [MessageQueue(name, broker, queue_id) for queue_id in range(topic.read_queue_nums)]

    def _response(
        self, query: QueryAssignmentRequestBody, queues: list[MessageQueue] | None
    ) -> RemotingCommand:
        assigned = None if queues is None else self._assigned(query, queues)
        body = QueryAssignmentResponseBody()
        if assigned is not None:
            body.message_queue_assignments = [
                MessageQueueAssignment(message_queue=queue) for queue in assigned
            ]
        return RemotingCommand.response(body=encode_body(body))

    def _assigned(
        self, query: QueryAssignmentRequestBody, queues: list[MessageQueue]
    ) -> list[MessageQueue] | None:
        """The queues of the client; None before its first heartbeat: a heartbeat adds a member."""
        if query.message_model == MessageModel.BROADCASTING:
            return queues
        group = self._ctx.consumers.group(query.consumer_group)
        members = sorted_client_ids(group.client_ids() if group is not None else ())
        if query.client_id not in members:
            return None
        return _STRATEGIES[query.strategy_name](query.client_id, queues, members)
