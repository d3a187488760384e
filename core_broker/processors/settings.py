"""The settings of the running broker: codes 25 and 26. Secrets are shown as ***.

Only keys that `core_broker.config` declares updatable may change. RocketMQ allows changes of almost
all keys, which led to remote code execution (CVE-2023-33246). As in RocketMQ, a change also
rewrites the settings file of the -c option with all keys; simultaneous changes share a write.
"""

from core_broker.processors.context import BrokerContext
from core_broker.remoting.bodies import DataVersion, encode_body
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import GetBrokerConfigResponseHeader
from core_broker.remoting.settings_update import settings_of_update


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
            body=self._ctx.config.shown_properties().encode(),
        )

    def update(self, connection: Connection, request: RemotingCommand) -> RemotingCommand | None:
        """UPDATE_BROKER_CONFIG (25): all of the request's keys, or none."""
        ctx, file = self._ctx, self._ctx.settings_file
        if file is not None:
            file.check_capacity()
        before = ctx.config
        config = settings_of_update(before, before.config_black_list, request.body)
        ctx.reconfigure(config)
        self._version = self._version.next(ctx.now_ms())
        if config.broker_permission != before.broker_permission:
            ctx.topics.touch(ctx.now_ms())
            ctx.registrar.all_changed()
        elif config.namesrv_addr != before.namesrv_addr:
            ctx.registrar.all_changed()
        if file is None:
            return RemotingCommand.response()
        file.answer_when_saved(connection, request)
        return None
