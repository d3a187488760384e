"""A trial of credentials before the console signs with them."""

import asyncio

from console.gateway.changes import BrokerOutcome
from console.gateway.engine.questions import command
from console.gateway.engine.session import FAN_OUT_MAX, REQUEST_TIMEOUT_MS, ClusterSession
from core_broker.client import AdminClient, Credentials
from core_broker.errors import GantryError


@command(changes_cluster=False)
async def try_credentials(
    session: ClusterSession, credentials: Credentials
) -> tuple[BrokerOutcome, ...]:
    """Ask the name server for its brokers, and each broker for its state; one outcome per broker.

    Raises Refused or ClusterUnreachable when the name server does not list its brokers. An account
    that may not read the state of a broker (ACL 2.0: GET on the cluster) is refused here too.
    """
    limit = asyncio.Semaphore(FAN_OUT_MAX)
    async with AdminClient(
        session.namesrv_addr,
        timeout_ms=REQUEST_TIMEOUT_MS,
        rpc_hooks=[credentials.hook()],
        tls=session.tls,
    ) as admin:
        brokers = sorted(
            (data.broker_name, addr)
            for data in (await admin.cluster_info()).broker_addr_table.values()
            for addr in data.broker_addrs.values()
        )

        async def ask(name: str, addr: str) -> BrokerOutcome:
            try:
                async with limit:
                    await admin.runtime_info(addr)
            except GantryError as failure:
                return BrokerOutcome(name, addr, str(failure))
            return BrokerOutcome(name, addr, None)

        return tuple(await asyncio.gather(*(ask(*broker) for broker in brokers)))
