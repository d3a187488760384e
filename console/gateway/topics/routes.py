"""The route of a topic for reading, also during an outage.

A name server drops a stopped broker, and answers "no such topic" for a topic without other brokers.
The topic tables of the remembered brokers complete the route: a question then fails with the name
of the down broker, not with "not found".
"""

from console.gateway.brokers.listing import masters
from console.gateway.engine.errors import GatewayError
from console.gateway.engine.session import ClusterSession
from console.gateway.topics.listing import no_such_topic, topic_configs
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import MASTER_ID, BrokerData, QueueData, TopicRouteData
from core_broker.remoting.codes import ResponseCode


async def reading_route(session: ClusterSession, topic: str) -> TopicRouteData:
    """Return the name server's route, with the brokers that left the name server.

    Raises NotFound when no broker is known to have the topic.
    """
    route = TopicRouteData()
    failure: GatewayError | None = None
    try:
        route = await session.admin.topic_route(topic)
    except RequestRefused as refusal:
        if refusal.code != ResponseCode.TOPIC_NOT_EXIST:
            raise
        failure = no_such_topic(topic)
    await masters(session)  # brings the registrations up to date
    listed = {broker.broker_name for broker in route.broker_datas}
    if all(broker.registered for broker in session.known.all()):
        return _found(route, failure)
    try:
        configs = (await session.ask(topic_configs)).value
    except GatewayError:
        if listed:
            return route
        raise
    broker_datas, queue_datas = [*route.broker_datas], [*route.queue_datas]
    for ref, table in configs.items():
        config = table.get(topic)
        if config is None or ref.name in listed:
            continue
        broker_datas.append(BrokerData(broker_name=ref.name, broker_addrs={MASTER_ID: ref.addr}))
        queue_datas.append(
            QueueData(
                broker_name=ref.name,
                read_queue_nums=config.read_queue_nums,
                write_queue_nums=config.write_queue_nums,
                perm=config.perm,
                topic_sys_flag=config.topic_sys_flag,
            )
        )
    return _found(TopicRouteData(broker_datas=broker_datas, queue_datas=queue_datas), failure)


def _found(route: TopicRouteData, failure: GatewayError | None) -> TopicRouteData:
    if not route.broker_datas and failure is not None:
        raise failure
    return route
