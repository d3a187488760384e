"""Controllers: leader, replicas of broker sets, elections, settings; the epochs of a broker.

Only the leader answers about broker sets. Methods with ``controllers`` take the addresses of some
controllers and ask the leader that the first answering one names.
"""

from collections.abc import Mapping, Sequence

from core_broker.client.admin.base import AdminBase
from core_broker.client.admin.settings_text import read_settings, write_settings
from core_broker.errors import RequestRefused, TransportError
from core_broker.remoting.bodies import decode_body, encode_body
from core_broker.remoting.bodies.replicas import (
    BrokerReplicasInfo,
    ElectMasterResponseBody,
    EpochEntryCache,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.headers.controller import (
    CleanControllerBrokerDataRequestHeader,
    ElectMasterRequestHeader,
    ElectMasterResponseHeader,
    GetMetaDataResponseHeader,
    ResetMasterFlushOffsetHeader,
)


class ControllerAdmin(AdminBase):
    async def controller_metadata(self, controllers: Sequence[str]) -> GetMetaDataResponseHeader:
        """Group, leader and members, as the first answering controller knows them."""
        *others, last = controllers
        for addr in others:
            try:
                return await self._controller_metadata(addr)
            except TransportError:
                continue
        return await self._controller_metadata(last)

    async def _controller_metadata(self, addr: str) -> GetMetaDataResponseHeader:
        answer = await self._ask(addr, RequestCode.CONTROLLER_GET_METADATA_INFO)
        return answer.header(GetMetaDataResponseHeader)

    async def controller_leader(self, controllers: Sequence[str]) -> str:
        """The leader's address; raises RequestRefused while the controllers have no leader."""
        metadata = await self.controller_metadata(controllers)
        if not metadata.controller_leader_address:
            raise RequestRefused(
                ResponseCode.CONTROLLER_NOT_LEADER,
                "The controllers have no leader: a majority of them must run.",
                controllers[0],
            )
        return metadata.controller_leader_address

    async def sync_state_sets(
        self, controllers: Sequence[str], broker_names: Sequence[str]
    ) -> BrokerReplicasInfo:
        """Master, epochs and replicas of broker sets; unknown names are left out."""
        answer = await self._ask(
            await self.controller_leader(controllers),
            RequestCode.CONTROLLER_GET_SYNC_STATE_DATA,
            body=encode_body(list(broker_names)),
        )
        return decode_body(BrokerReplicasInfo, answer.body)

    async def elect_master(
        self, controllers: Sequence[str], cluster: str, broker_name: str, broker_id: int
    ) -> tuple[ElectMasterResponseHeader, ElectMasterResponseBody]:
        """Make a replica the master of its set; refused unless the replica is alive and in sync."""
        answer = await self._ask(
            await self.controller_leader(controllers),
            RequestCode.CONTROLLER_ELECT_MASTER,
            ElectMasterRequestHeader(
                cluster_name=cluster,
                broker_name=broker_name,
                broker_id=broker_id,
                designate_elect=True,
            ),
        )
        body = decode_body(ElectMasterResponseBody, answer.body)
        return answer.header(ElectMasterResponseHeader), body

    async def clean_broker_data(
        self,
        controllers: Sequence[str],
        broker_name: str,
        *,
        cluster: str | None = None,
        broker_ids: str | None = None,
        cleans_living: bool = False,
    ) -> None:
        """Remove replicas that will not return, `1;2`, or without ids the whole broker set."""
        header = CleanControllerBrokerDataRequestHeader(
            broker_name=broker_name,
            cluster_name=cluster,
            broker_controller_ids_to_clean=broker_ids,
            is_clean_living_broker=cleans_living,
        )
        leader = await self.controller_leader(controllers)
        await self._ask(leader, RequestCode.CLEAN_BROKER_DATA, header)

    async def controller_config(self, addr: str) -> dict[str, str]:
        """All settings of one controller."""
        return read_settings((await self._ask(addr, RequestCode.GET_CONTROLLER_CONFIG)).body)

    async def update_controller_config(self, addr: str, settings: Mapping[str, str]) -> None:
        """Change settings of one running controller."""
        code = RequestCode.UPDATE_CONTROLLER_CONFIG
        await self._ask(addr, code, body=write_settings(settings))

    async def epochs(self, addr: str) -> EpochEntryCache:
        """The epochs of a broker's commit log; refused outside the controller mode."""
        return await self._ask_body(EpochEntryCache, addr, RequestCode.GET_BROKER_EPOCH_CACHE)

    async def reset_master_flush_offset(self, addr: str, offset: int) -> None:
        """Set the flushed offset that a slave shows for its master; nothing depends on it."""
        header = ResetMasterFlushOffsetHeader(master_flush_offset=offset)
        await self._ask(addr, RequestCode.RESET_MASTER_FLUSH_OFFSET, header)
