"""kickClient: close the connections of a client to the brokers, with a logged reason."""

from typing import Any

from core_broker.client.admin.inventory import offered_codes
from core_broker.errors import GantryError
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.lookup import masters_and_slaves
from core_broker.mqadmin.session import NotFound, Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.remoting.codes import RequestCode


@command("kickClient", destructive=True)
@broker_or_cluster("kick the client from which broker", "kick the client from which cluster")
@text("-i", "--clientId", required=True, help="the client's id")
@text("-r", "--reason", required=True, help="the reason, for the log of the broker")
@text("-g", "--consumerGroup", help="only connections that consume in this group")
async def kick_client(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    client_id: str,
    reason: str,
    consumer_group: str | None,
) -> None:
    """Works on one broker, or on all masters and slaves of a cluster. Needs Gantry brokers.

    The other members of the groups get the client's queues. The client may reconnect at once.
    """
    document: dict[str, Any] = {"clientId": client_id, "consumerGroup": consumer_group}
    document |= {"reason": reason, "dryRun": session.dry_run}
    brokers: list[dict[str, Any]] = []
    has_failures = False
    for addr in await masters_and_slaves(session.admin, broker_addr, cluster_name):
        try:
            addrs = await _addrs(session, addr, client_id, consumer_group)
            if not addrs:
                continue
            left = 0
            if not session.dry_run:
                done = await session.admin.kick_client(addr, client_id, reason, consumer_group)
                addrs, left = done.addrs, done.left
        except GantryError as error:
            session.failed(error)
            has_failures = True
            continue
        brokers.append({"brokerAddr": addr, "closed": addrs, "left": left})
    if not brokers and not has_failures:
        where = f" in group {consumer_group}" if consumer_group else ""
        raise NotFound(f"No client {client_id} is connected{where}.")
    mark = "[dry run] " if session.dry_run else ""
    lines = [
        f"{mark}close {', '.join(broker['closed'])} at {broker['brokerAddr']} success."
        for broker in brokers
    ]
    session.out.show(document | {"brokers": brokers}, lines)


async def _addrs(session: Session, addr: str, client_id: str, group: str | None) -> list[str]:
    """Return the client's connections to a broker; raises NotFound for a broker without 60006."""
    if RequestCode.KICK_CLIENT not in offered_codes(await session.admin.runtime_info(addr)):
        raise NotFound(f"{addr} cannot kick clients: it is Apache's broker or an older Gantry.")
    clients = (await session.admin.all_clients(addr)).clients
    return [
        client.client_addr
        for client in clients
        if client.client_id == client_id and (group is None or group in client.consumer_groups)
    ]
