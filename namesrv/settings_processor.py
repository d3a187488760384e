"""Request codes of the key-value store and of the name server's settings.

The response to a change is sent after the change is on disk. When the write fails, the change stays
in memory, and the response reports the failed write.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path

from core_broker.config import NamesrvConfig
from core_broker.config.property_files import parse_properties
from core_broker.config.updating import updated_settings
from core_broker.errors import RequestRefused, SettingsError
from core_broker.remoting.bodies import KVTable, encode_body
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers.cluster import (
    DeleteKVConfigRequestHeader,
    GetKVConfigRequestHeader,
    GetKVConfigResponseHeader,
    GetKVListByNamespaceRequestHeader,
    PutKVConfigRequestHeader,
)
from namesrv.kv import AtomicFile, KeyValues
from namesrv.route_processor import Handler

log = logging.getLogger(__name__)


class SettingsProcessor:
    """Owns the current settings; `handlers` maps request codes to methods."""

    def __init__(
        self, config: NamesrvConfig, key_values: KeyValues, on_change: Callable[[], None]
    ) -> None:
        self.config = config
        self._on_change = on_change
        self._key_values = key_values
        self._key_value_file = AtomicFile(Path(config.kv_config_path))
        self._config_file = AtomicFile(Path(config.config_store_path))
        self._saving: set[asyncio.Task[None]] = set()
        self.handlers: dict[int, Handler] = {
            RequestCode.PUT_KV_CONFIG: self.put_key_value,
            RequestCode.GET_KV_CONFIG: self.get_key_value,
            RequestCode.DELETE_KV_CONFIG: self.delete_key_value,
            RequestCode.GET_KVLIST_BY_NAMESPACE: self.list_namespace,
            RequestCode.UPDATE_NAMESRV_CONFIG: self.update_config,
            RequestCode.GET_NAMESRV_CONFIG: self.get_config,
        }

    async def drain(self) -> None:
        """Wait until every accepted change is on disk."""
        await asyncio.gather(*self._saving)

    def put_key_value(self, connection: Connection, request: RemotingCommand) -> None:
        """100: add or overwrite a key."""
        header = request.header(PutKVConfigRequestHeader)
        self._key_values.put(header.namespace, header.key, header.value)
        self._save(connection, request, self._key_value_file, self._key_values.to_json())

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
        self._key_values.delete(header.namespace, header.key)
        self._save(connection, request, self._key_value_file, self._key_values.to_json())

    def list_namespace(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """219: read all keys of a namespace."""
        namespace = request.header(GetKVListByNamespaceRequestHeader).namespace
        table = self._key_values.namespace(namespace)
        if table is None:
            raise RequestRefused(
                ResponseCode.QUERY_NOT_FOUND, f"No config item, Namespace: {namespace}"
            )
        return RemotingCommand.response(body=encode_body(KVTable(table=table)))

    def update_config(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | None:
        """318: update settings of the running name server, all or none, and write the file."""
        text = request.body.decode("utf-8", "replace")
        black_list = self.config.config_black_list.split(";")
        if any(entry.key in black_list for entry in parse_properties(text)):
            raise RequestRefused(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
        try:
            self.config = updated_settings(self.config, text)
        except SettingsError as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
        self._save(connection, request, self._config_file, self.config.to_properties().encode())
        return None

    def get_config(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """319: all settings as `key=value` lines."""
        return RemotingCommand.response(body=self.config.to_properties().encode())

    def _save(
        self, connection: Connection, request: RemotingCommand, file: AtomicFile, content: bytes
    ) -> None:
        self._on_change()
        task = asyncio.get_running_loop().create_task(
            _save_and_answer(connection, request, file, content)
        )
        self._saving.add(task)
        task.add_done_callback(self._saving.discard)


async def _save_and_answer(
    connection: Connection, request: RemotingCommand, file: AtomicFile, content: bytes
) -> None:
    try:
        await file.save(content)
    except OSError as error:
        log.exception("%s cannot be written", file.path)
        remark = f"changed in memory only: {file.path} cannot be written ({error.strerror})"
        connection.answer(request, RemotingCommand.response(ResponseCode.SYSTEM_ERROR, remark))
        return
    connection.answer(request, RemotingCommand.response())
