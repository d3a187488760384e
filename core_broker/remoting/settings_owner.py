"""The settings of a running program, changed by requests and kept in the settings file.

The answer to a change is sent after the change is on disk; when the write fails, the change stays
in memory, and the answer reports the failed write. A change above a limit is refused before any
work on it.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from core_broker.durable_files import replace_file
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.saved_file import SavedFile
from core_broker.remoting.settings_update import check_update_size, settings_of_update

if TYPE_CHECKING:
    from core_broker.config import ControllerConfig, NamesrvConfig

C_co = TypeVar("C_co", bound="NamesrvConfig | ControllerConfig", covariant=True)


class SettingsOwner(Generic[C_co]):
    """Holds the settings in force; `update` and `show` are handlers of requests."""

    def __init__(
        self,
        config: C_co,
        *,
        forbidden_keys: tuple[str, ...] = (),
        is_private: bool = False,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        """No request may change `forbidden_keys` and the keys of configBlackList.

        A private file can be read by its owner only.
        """
        self._config = config
        self._forbidden = forbidden_keys
        #: Called after a change.
        self.on_change = on_change
        self._file = SavedFile(
            Path(config.config_store_path),
            lambda: self._config.to_properties().encode(),
            partial(replace_file, is_private=is_private),
        )

    @property
    def config(self) -> C_co:
        """The settings in force."""
        return self._config

    async def drain(self) -> None:
        """Wait until every accepted change is on disk."""
        await self._file.drain()

    def update(self, connection: Connection, request: RemotingCommand) -> None:
        """Update settings, all or none, and write the file; raises RequestRefused."""
        self._file.check_capacity()
        check_update_size(request.body)
        black_list = ";".join((self._config.config_black_list, *self._forbidden))
        self._config = settings_of_update(self._config, black_list, request.body)
        self.on_change()
        self._file.answer_when_saved(connection, request)

    def show(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """All settings as `key=value` lines, without secrets."""
        return RemotingCommand.response(body=self._config.shown_properties().encode())
