"""Brokers: settings, runtime information, statistics and clean-ups."""

from collections.abc import Mapping

from core_broker.client.admin.base import AdminBase
from core_broker.client.admin.settings_text import read_settings, write_settings
from core_broker.remoting.bodies import (
    BrokerStatsData,
    ClusterInfo,
    HARuntimeInfo,
    KVTable,
    decode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import ViewBrokerStatsDataRequestHeader


class BrokerAdmin(AdminBase):
    async def cluster_info(self, addr: str | None = None) -> ClusterInfo:
        """Clusters, broker sets and broker addresses, as registered at the given name server, or
        at the first answering name server."""
        code = RequestCode.GET_BROKER_CLUSTER_INFO
        if addr is None:
            return decode_body(ClusterInfo, (await self._ask_name_server(code)).body)
        return decode_body(ClusterInfo, (await self._ask(addr, code)).body)

    async def runtime_info(self, addr: str) -> dict[str, str]:
        """Runtime information of a broker under RocketMQ's names; all values are text."""
        return (await self._ask_body(KVTable, addr, RequestCode.GET_BROKER_RUNTIME_INFO)).table

    async def ha_status(self, addr: str) -> HARuntimeInfo:
        """The slaves of a master with their progress, or the progress of a slave."""
        return await self._ask_body(HARuntimeInfo, addr, RequestCode.GET_BROKER_HA_STATUS)

    async def broker_config(self, addr: str) -> dict[str, str]:
        """All settings of a broker."""
        return read_settings((await self._ask(addr, RequestCode.GET_BROKER_CONFIG)).body)

    async def update_broker_config(self, addr: str, settings: Mapping[str, str]) -> None:
        """Change settings of a running broker. RocketMQ ignores unknown keys."""
        await self._ask(addr, RequestCode.UPDATE_BROKER_CONFIG, body=write_settings(settings))

    async def broker_stats(self, addr: str, stats_name: str, key: str) -> BrokerStatsData:
        """One statistic, for example TOPIC_PUT_NUMS of a topic; refused with SYSTEM_ERROR before
        the first count under the key."""
        header = ViewBrokerStatsDataRequestHeader(stats_name=stats_name, stats_key=key)
        code = RequestCode.VIEW_BROKER_STATS_DATA
        return await self._ask_body(BrokerStatsData, addr, code, header)

    async def clean_expired_consume_queue(self, addr: str) -> None:
        """Delete consume-queue files with entries before the start of the commit log only."""
        await self._ask(addr, RequestCode.CLEAN_EXPIRED_CONSUMEQUEUE)

    async def clean_unused_topic(self, addr: str) -> None:
        """Delete the consume queues of deleted topics."""
        await self._ask(addr, RequestCode.CLEAN_UNUSED_TOPIC)

    async def delete_expired_commit_log(self, addr: str) -> None:
        """Delete commit-log files older than fileReservedTime."""
        await self._ask(addr, RequestCode.DELETE_EXPIRED_COMMITLOG)
