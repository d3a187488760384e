"""Request codes of the controller's settings: 1009 and 1010.

Each controller has settings of its own. The answer to a change is sent after the change is on disk;
when the write fails, the change stays in memory, and the answer reports the failed write.
"""

from pathlib import Path

from core_broker.config.controller import ControllerConfig
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.endpoint import Dispatch
from core_broker.remoting.saved_file import SavedFile
from core_broker.remoting.settings_update import check_update_size, settings_of_update

#: Keys that no request may change, beside those of configBlackList.
FORBIDDEN_KEYS = ("configBlackList", "configStorePath", "rocketmqHome")


class SettingsProcessor:
    """Owns the current settings; `handlers` maps request codes to methods."""

    def __init__(self, config: ControllerConfig) -> None:
        self.config = config
        self._file = SavedFile(
            Path(config.config_store_path), lambda: self.config.to_properties().encode()
        )
        self.handlers: dict[int, Dispatch] = {
            RequestCode.UPDATE_CONTROLLER_CONFIG: self.update_config,
            RequestCode.GET_CONTROLLER_CONFIG: self.get_config,
        }

    async def drain(self) -> None:
        """Wait until every accepted change is on disk."""
        await self._file.drain()

    def update_config(
        self, connection: Connection, request: RemotingCommand
    ) -> RemotingCommand | None:
        """1009: update settings of the running controller, all or none, and write the file."""
        self._file.check_capacity()
        check_update_size(request.body)
        black_list = ";".join((self.config.config_black_list, *FORBIDDEN_KEYS))
        self.config = settings_of_update(self.config, black_list, request.body)
        self._file.answer_when_saved(connection, request)
        return None

    def get_config(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """1010: all settings as `key=value` lines, without secrets."""
        return RemotingCommand.response(body=self.config.shown_properties().encode())
