"""A broker's part as a slave: finds the master, copies its log and its tables.

The registration at a name server answers with two addresses of the master (RocketMQ's
BrokerOuterAPI.registerBrokerAll): `masterAddr` for requests, `haServerAddr` for the log.
haMasterAddress takes the place of `haServerAddr`. When the master unregisters, requests to the
master stop, and the connection to its HA address is tried on.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial

from core_broker.ha.client import HaClient
from core_broker.ha.faults import ReplicationRefused
from core_broker.ha.log_comparison import LogComparison, MasterLog
from core_broker.ha.status import SlaveState, SlaveStatus
from core_broker.ha.synchronization import Synchronization
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import HAClientRuntimeInfo
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.tls_client import ClientTls

#: Interval of registrations while no name server knows a master, seconds. A registration has the
#: whole table of topics.
FIND_MASTER_S = 5.0


class Slave:
    """The tasks of a slave. `wake_pulls` answers held pulls after messages arrived."""

    def __init__(
        self,
        ctx: BrokerContext,
        wake_pulls: Callable[[], None],
        tls: ClientTls | None = None,
        rpc_hooks: Sequence[RpcHook] = (),
    ) -> None:
        #: Address of the master for requests; "" while no name server knows a master.
        self.master_addr = ""
        self._ctx = ctx
        self._replica = ctx.store.replica
        self._ha_addr = ctx.config.ha_master_address
        self._client = RemotingClient(name="broker-master", tls=tls, rpc_hooks=rpc_hooks)
        self._comparison = LogComparison(self._client, self._replica, self._read_record)
        self._ha = self._make_client(wake_pulls)
        self._synchronization = Synchronization(
            ctx,
            self._client,
            self._comparison,
            self._source,
            self._note_end,
            self._refuse,
        )
        self._tasks: list[asyncio.Task[None]] = []

    def _make_client(self, wake_pulls: Callable[[], None]) -> HaClient:
        ctx = self._ctx
        return HaClient(
            self._replica,
            lambda: ctx.config,
            lambda: self._ha_addr,
            self._compare,
            wake_pulls,
            ctx.now_ms,
        )

    def _source(self) -> str:
        """Return the address to copy tables from, "" for none."""
        return self.master_addr

    @property
    def status(self) -> SlaveStatus:
        """The progress of replication."""
        return self._ha.status

    @property
    def lag_bytes(self) -> int:
        """Bytes of the master's log that are not in the slave's log yet, as far as is known."""
        return self.status.lag_bytes(self._replica.end)

    @property
    def problem(self) -> str:
        """The reason why the slave is no current copy of its master; "" while bytes are copied."""
        status = self.status
        if status.state is SlaveState.TRANSFERRING:
            return ""
        return f"{status.state.value}: {status.problem}"

    def varz(self) -> dict[str, object]:
        """Return the state for /varz."""
        status = self.status
        return {
            "master_addr": self.master_addr,
            "ha_addr": status.ha_addr,
            "state": status.state.value,
            "problem": status.problem,
            "end": self._replica.end,
            "master_end": status.master_end,
            "lag_bytes": self.lag_bytes,
            "received_bytes": status.received_bytes,
            "connections": status.connections,
            "last_read_ms": status.last_read_ms,
            "last_write_ms": status.last_write_ms,
            "unsynchronized": {k: v for k, v in self._synchronization.problems.items() if v},
        }

    def runtime_info(self) -> HAClientRuntimeInfo:
        """Return the progress in the form of RocketMQ's answer to code 907."""
        status = self.status
        return HAClientRuntimeInfo(
            master_addr=status.ha_addr,
            last_read_timestamp=status.last_read_ms,
            last_write_timestamp=status.last_write_ms,
            max_offset=self._replica.end,
            transferred_byte_in_second=status.bytes_per_second(self._ctx.now_ms()),
        )

    def found_master(self, ha_addr: str, master_addr: str) -> None:
        """Take the answer of a registration; "" for an unknown address."""
        if master_addr == self._ctx.addr:
            return
        self.master_addr = master_addr
        if ha_addr and not self._ctx.config.ha_master_address:
            self._ha_addr = ha_addr

    def start(self) -> None:
        """Start to look for the master."""
        loop = asyncio.get_running_loop()
        for work in (self._ha.run(), self._synchronization.run(), self._find_master()):
            self._tasks.append(loop.create_task(work))

    async def stop(self) -> None:
        """Close the connections to the master."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._client.close()

    async def _find_master(self) -> None:
        while True:
            await asyncio.sleep(FIND_MASTER_S)
            if not self.master_addr:
                self._ctx.registrar.all_changed()

    async def _compare(self) -> None:
        master = await self._comparison.compare(self.master_addr)
        if master is not None:
            self._note_end(master)

    def _note_end(self, master: MasterLog) -> None:
        self.status.master_end = master.max_offset

    def _refuse(self, refusal: ReplicationRefused) -> None:
        self._ha.refuse(refusal)

    async def _read_record(self, offset: int) -> bytes | None:
        store = self._ctx.store
        return await store.cold_reads.when_warm(partial(store.read_at, offset))
