"""Request codes of the key-value store and of the name server's settings.

The response to a change is sent after the change is on disk. When the write fails, the change stays
in memory, and the response reports the failed write. A change above a limit is refused before any
work on it.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from core_broker.config import NamesrvConfig
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import KVTable, encode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch
from core_broker.remoting.headers.cluster import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)
from core_broker.remoting.saved_file import SavedFile
from core_broker.remoting.settings_owner import SettingsOwner
from namesrv.kv import ORDER_TOPIC_NAMESPACE, KeyValues


class SettingsProcessor:
    """Changes key-value settings; `handlers` maps request codes to methods."""

    def __init__(self, owner: SettingsOwner[NamesrvConfig], key_values: KeyValues) -> None:
        self._owner = owner
        self._key_values = key_values
        self._key_value_file = SavedFile(Path(owner.config.kv_config_path), key_values.to_json)
        #: Refused changes by request code.
        self.refused: Counter[int] = Counter()
        self.handlers: dict[int, Dispatch] = {
            RequestCode.PUT_KV_CONFIG: self.put_key_value,
            RequestCode.GET_KV_CONFIG: self.get_key_value,
            RequestCode.DELETE_KV_CONFIG: self.delete_key_value,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self.list_namespace,
            RequestCode.UPDATE_NAMESRV_CONFIG: self.update_config,
            RequestCode.GET_NAMESRV_CONFIG: owner.show,
        }

    async def drain(self) -> None:
        """Wait until every accepted change is on disk."""
        await self._key_value_file.drain()
        await self._owner.drain()

    def put_key_value(self, connection: Connection, request: RemotingCommand) -> None:
        """100: add or overwrite a key."""
        header = request.header(PutKVConfigRequestHeader)
        with self._counted_refusal(request.code):
            self._key_value_file.check_capacity()
            self._key_values.put(header.namespace, header.key, header.value)
        self._key_values_changed(connection, request, header.namespace)

    def get_key_value(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """101: read a key."""
        header = request.header(GetKVConfigRequestHeader)
        value = self._key_values.get(header.namespace, header.key)
        if value is None:
            raise RequestRefused(
                ResponseCode.QUERY_NOT_FOUND,
                f"No config item, Namespace: {header.namespace} Key: {header.key}",
            )
        return RemotingCommand.response(header=GetKVConfigResponseHeader(value=value))

    def delete_key_value(self, connection: Connection, request: RemotingCommand) -> None:
        """102: remove a key if present."""
        header = request.header(DeleteKVConfigRequestHeader)
        with self._counted_refusal(request.code):
            self._key_value_file.check_capacity()
        self._key_values.delete(header.namespace, header.key)
        self._key_values_changed(connection, request, header.namespace)

    def list_namespace(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """219: read all keys of a namespace."""
        namespace = request.header(GetKVListByNamespaceRequestHeader).namespace
        table = self._key_values.namespace(namespace)
        if table is None:
            raise RequestRefused(
                ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace}"
            )
        return RemotingCommand.response(body=encode_body(KVTable(table=table)))

    def update_config(self, connection: Connection, request: RemotingCommand) -> None:
        """318: update settings of the running name server, all or none, and write the file."""
        with self._counted_refusal(request.code):
            self._owner.update(connection, request)

    def _key_values_changed(
        self, connection: Connection, request: RemotingCommand, namespace: str
    ) -> None:
        if namespace == ORDER_TOPIC_NAMESPACE:  # routes contain no other namespace
            self._owner.on_change()
        self._key_value_file.answer_when_saved(connection, request)

    @contextmanager
    def _counted_refusal(self, code: int) -> Iterator[None]:
        try:
            yield
        except RequestRefused:
            self.refused[code] += 1
            raise
