"""Topics that a broker has just created.

A broker answers the request that creates a topic (a send, a message sent back, a heartbeat) before
the name server knows the topic. Only the answer to the creation of a topic by a tool waits.
"""

from core_broker.client import AdminClient
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import TopicRouteData
from core_broker.remoting.codes import ResponseCode


async def route_of(admin: AdminClient, topic: str) -> TopicRouteData | None:
    """The route of a topic; None while the name server does not know the topic."""
    try:
        return await admin.topic_route(topic)
    except RequestRefused as refused:
        if refused.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        return None
