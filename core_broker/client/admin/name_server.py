"""Name servers: key-value configuration, settings, write permissions of brokers."""

from collections.abc import Mapping

from core_broker.client.admin.base import AdminBase
from core_broker.client.admin.settings_text import read_settings, write_settings
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import KVTable, decode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.ext_fields import Header
from core_broker.remoting.headers import (
    AddWritePermOfBrokerRequestHeader,
    AddWritePermOfBrokerResponseHeader,
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
    WipeWritePermOfBrokerRequestHeader,
    WipeWritePermOfBrokerResponseHeader,
)


class NameServerAdmin(AdminBase):
    """Reads are sent to one name server, changes to all name servers."""

    async def kv_get(self, namespace: str, key: str) -> str | None:
        """The value of a key; None for a missing key."""
        header = GetKVConfigRequestHeader(namespace=namespace, key=key)
        try:
            answer = await self._ask_name_server(RequestCode.GET_KV_CONFIG, header)
        except RequestRefused as refused:
            if refused.code == ResponseCode.QUERY_NOT_FOUND:
                return None
            raise
        return answer.header(GetKVConfigResponseHeader).value

    async def kv_list(self, namespace: str, addr: str | None = None) -> dict[str, str]:
        """All keys and values of a namespace, of the given name server or of the first answering
        one; empty for an unknown namespace."""
        header = GetKVListByNamespaceRequestHeader(namespace=namespace)
        try:
            answer = (
                await self._ask_name_server(RequestCode.GET_KVLIST_BY_NAMESPACE, header)
                if addr is None
                else await self._ask(addr, RequestCode.GET_KVLIST_BY_NAMESPACE, header)
            )
        except RequestRefused as refused:
            if refused.code == ResponseCode.QUERY_NOT_FOUND:
                return {}
            raise
        return decode_body(KVTable, answer.body).table

    async def kv_put(self, namespace: str, key: str, value: str, addr: str | None = None) -> None:
        """Set a key on the given name server, or on all name servers."""
        header = PutKVConfigRequestHeader(namespace=namespace, key=key, value=value)
        await self._change_kv(RequestCode.PUT_KV_CONFIG, header, addr)

    async def kv_delete(self, namespace: str, key: str, addr: str | None = None) -> None:
        """Delete a key on the given name server, or on all name servers."""
        header = DeleteKVConfigRequestHeader(namespace=namespace, key=key)
        await self._change_kv(RequestCode.DELETE_KV_CONFIG, header, addr)

    async def _change_kv(self, code: RequestCode, header: Header, addr: str | None) -> None:
        if addr is None:
            await self._ask_all_name_servers(code, header)
        else:
            await self._ask(addr, code, header)

    async def namesrv_config(self, addr: str | None = None) -> dict[str, str]:
        """All settings of the given name server, or of the first answering name server."""
        code = RequestCode.GET_NAMESRV_CONFIG
        if addr is None:
            return read_settings((await self._ask_name_server(code)).body)
        return read_settings((await self._ask(addr, code)).body)

    async def update_namesrv_config(
        self, settings: Mapping[str, str], addr: str | None = None
    ) -> None:
        """Change settings of the given name server, or of all name servers."""
        code, body = RequestCode.UPDATE_NAMESRV_CONFIG, write_settings(settings)
        if addr is None:
            await self._ask_all_name_servers(code, body=body)
        else:
            await self._ask(addr, code, body=body)

    async def wipe_write_perm(self, broker_name: str, addr: str | None = None) -> int:
        """Remove a broker's write permission before maintenance, on one name server or on all.
        Returns the number of the broker's topics."""
        header = WipeWritePermOfBrokerRequestHeader(broker_name=broker_name)
        answer = await self._change_perm(RequestCode.WIPE_WRITE_PERM_OF_BROKER, header, addr)
        return answer.header(WipeWritePermOfBrokerResponseHeader).wipe_topic_count

    async def add_write_perm(self, broker_name: str, addr: str | None = None) -> int:
        """Undo ``wipe_write_perm``. Returns the number of the broker's topics."""
        header = AddWritePermOfBrokerRequestHeader(broker_name=broker_name)
        answer = await self._change_perm(RequestCode.ADD_WRITE_PERM_OF_BROKER, header, addr)
        return answer.header(AddWritePermOfBrokerResponseHeader).add_topic_count

    async def _change_perm(
        self, code: RequestCode, header: Header, addr: str | None
    ) -> RemotingCommand:
        if addr is not None:
            return await self._ask(addr, code, header)
        return (await self._ask_all_name_servers(code, header))[0]
