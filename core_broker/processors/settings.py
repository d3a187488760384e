"""The settings of the running broker: codes 25 and 26.

Only keys that `core_broker.config` declares updatable may change. RocketMQ allows changes of almost
all keys, which led to remote code execution (CVE-2023-33246). As in RocketMQ, a change also
rewrites the settings file of the -c option with all keys.
"""

from core_broker.config.property_files import parse_properties
from core_broker.config.updating import updated_settings
from core_broker.errors import RequestRefused, SettingsError
from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import DataVersion, encode_body
from core_broker.remoting.codes import ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import GetBrokerConfigResponseHeader


class SettingsProcessor:
    """Shows and changes settings."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx
        self._version = DataVersion(timestamp=ctx.boot_ms)

    def show(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_CONFIG (26)."""
        version = encode_body(self._version).decode()
        return RemotingCommand.response(
            header=GetBrokerConfigResponseHeader(version=version),
            body=self._ctx.config.to_properties().encode(),
        )

    def update(self, connection: Connection, request: RemotingCommand) -> None:
        """UPDATE_BROKER_CONFIG (25): all of the request's keys, or none."""
        ctx = self._ctx
        text = request.body.decode("utf-8", "replace")
        self._check_black_list(text)
        try:
            config = updated_settings(ctx.config, text)
        except SettingsError as error:
            raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
        before = ctx.config
        ctx.reconfigure(config)
        self._version = self._version.next(ctx.now_ms())
        if config.broker_permission != before.broker_permission:
            ctx.topics.touch(ctx.now_ms())
            ctx.registrar.all_changed()
        elif config.namesrv_addr != before.namesrv_addr:
            ctx.registrar.all_changed()
        ctx.answer_later(connection, request, self._written())

    async def _written(self) -> RemotingCommand:
        await self._ctx.saver.save_settings(self._ctx.config.to_properties().encode())
        return RemotingCommand.response()

    def _check_black_list(self, text: str) -> None:
        forbidden = set(self._ctx.config.config_black_list.split(";"))
        if any(entry.key in forbidden for entry in parse_properties(text)):
            raise RequestRefused(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
