"""Before a master serves: newer consumer offsets from its slaves.

While the master was down, consumers committed to a slave. The name server names the slaves, each
slave is asked for its offsets (code 43), and the larger offset wins, so that consumers repeat
nothing after the return of the master. RocketMQ's plain master goes on with its own file. Left out
are offsets of missing topics, and offsets behind the end of a queue, which a topic that was created
again may have. A reset on the master survives a restart of the master once the slaves have adopted
the reset, within SYNCHRONIZE_S of synchronization.py.
"""

import asyncio
import logging
from collections.abc import Sequence

from core_broker.errors import GantryError, RequestRefused
from core_broker.ha.offset_table import PAIRS_PER_SLICE, OffsetTable, decode_offset_table
from core_broker.processors.context import BrokerContext, ConfigTable
from core_broker.remoting.bodies import TopicRouteData, decode_body
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.headers import GetRouteInfoRequestHeader
from core_broker.remoting.tls_client import ClientTls
from core_broker.state.consumer_offsets import SEPARATOR

#: Maximum delay of a start by all requests together, seconds.
ADOPT_S = 5.0
#: Maximum wait for one answer, ms.
ANSWER_MS = 2_000
#: Maximum number of slaves that are asked, lowest broker id first.
SLAVES_MAX = 8
MASTER_ID = 0

log = logging.getLogger(__name__)


class NewestOffsets:
    """Asks the slaves once, at the start of a master."""

    def __init__(
        self, ctx: BrokerContext, tls: ClientTls | None = None, rpc_hooks: Sequence[RpcHook] = ()
    ) -> None:
        self._ctx = ctx
        self._tls = tls
        self._rpc_hooks = rpc_hooks

    async def adopt(self) -> None:
        """Adopt newer offsets; name servers and slaves that do not answer are skipped."""
        client = RemotingClient(name="broker-slaves", tls=self._tls, rpc_hooks=self._rpc_hooks)
        try:
            async with asyncio.timeout(ADOPT_S):
                for addr in await self._slaves(client):
                    await self._adopt_from(client, addr)
        except TimeoutError:
            log.warning("not all slaves were asked for newer consumer offsets in %.0f s", ADOPT_S)
        finally:
            await client.close()

    async def _slaves(self, client: RemotingClient) -> list[str]:
        """Return the registered slaves; each broker registers a topic with its own name."""
        config = self._ctx.config
        header = GetRouteInfoRequestHeader(topic=config.broker_name, accept_standard_json_only=True)
        for addr in filter(None, map(str.strip, config.namesrv_addr.split(";"))):
            command = RemotingCommand.request(RequestCode.GET_ROUTEINFO_BY_TOPIC, header)
            try:
                answer = await client.invoke(addr, command, ANSWER_MS)
                if answer.code != ResponseCode.SUCCESS:
                    continue
                route = decode_body(TopicRouteData, answer.body)
            except (GantryError, OSError):
                continue  # the registration reports an unreachable name server
            slaves = {
                broker_id: slave
                for each in route.broker_datas
                if (each.cluster, each.broker_name)
                == (config.broker_cluster_name, config.broker_name)
                for broker_id, slave in each.broker_addrs.items()
                if broker_id != MASTER_ID and slave != self._ctx.addr
            }
            if slaves:
                return [slaves[broker_id] for broker_id in sorted(slaves)[:SLAVES_MAX]]
        return []

    async def _adopt_from(self, client: RemotingClient, addr: str) -> None:
        command = RemotingCommand.request(RequestCode.GET_ALL_CONSUMER_OFFSET)
        try:
            answer = await client.invoke(addr, command, ANSWER_MS)
            if answer.code != ResponseCode.SUCCESS:
                raise RequestRefused(answer.code, f"{addr}: {answer.remark or ''}")
            adopted = await self._merge(await decode_offset_table(bytes(answer.body)))
        except (GantryError, OSError) as error:
            log.warning("the slave %s was not asked for newer consumer offsets: %s", addr, error)
            return
        if adopted:
            log.info("%d newer consumer offsets were adopted from the slave %s", adopted, addr)
            self._ctx.saver.save(ConfigTable.OFFSETS)

    async def _merge(self, table: OffsetTable) -> int:
        """Take the larger offsets; return their number."""
        ctx, adopted = self._ctx, 0
        for count, (key, queues) in enumerate(table.items(), start=1):
            topic, _, group = key.rpartition(SEPARATOR)
            is_known = ctx.topics.get(topic) is not None
            for queue_id, offset in queues.items() if is_known else ():
                own = ctx.offsets.committed(group, topic, queue_id)
                is_newer = own is None or offset > own
                if is_newer and 0 <= offset <= ctx.store.queue_range(topic, queue_id)[1]:
                    adopted += ctx.offsets.commit(group, topic, queue_id, offset)
            if count % PAIRS_PER_SLICE == 0:
                await asyncio.sleep(0)
        return adopted
