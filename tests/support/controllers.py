"""Controllers on free ports of this machine, and brokers that speak their protocol."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from core_broker.config import ControllerConfig
from core_broker.controller.server import Controller
from core_broker.remoting.client import RemotingClient, RpcHook
from core_broker.remoting.codes import RequestCode as Code
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.server import RemotingServer
from tests.support.cluster import free_broker_port
from tests.support.eventually import eventually

REQUEST_TIMEOUT_MS = 30_000


def controller_configs(folder: Path, count: int, **settings: Any) -> list[ControllerConfig]:
    """Return the settings of the members of one group, each with a folder of its own."""
    peers = ";".join(f"n{n}-127.0.0.1:{free_broker_port()}" for n in range(count))
    defaults: dict[str, Any] = {
        "http_port": -1,
        "tls_server_mode": "disabled",
        "scan_not_active_broker_interval": 100,
        "scan_inactive_master_interval": 100,
    }
    return [
        ControllerConfig(
            controller_d_leger_peers=peers,
            controller_d_leger_self_id=f"n{n}",
            controller_store_path=str(folder / f"n{n}"),
            config_store_path=str(folder / f"n{n}.properties"),
            **(defaults | settings),
        )
        for n in range(count)
    ]


async def leader_of(controllers: Sequence[Controller]) -> Controller:
    """Wait for a leader that the other controllers know."""

    def found() -> Iterator[Controller]:
        for one in controllers:
            known = {other.member.leader_id for other in controllers}
            if one.member.is_leader and known == {one.peers.self_number}:
                yield one

    leader = await eventually(lambda: next(found(), None), 60)
    assert leader is not None
    return leader


class ControllerClient:
    """Sends requests to one controller; `rpc_hooks` may sign them."""

    def __init__(self, addr: str, rpc_hooks: Sequence[RpcHook] = ()) -> None:
        self.addr = addr
        self.remoting = RemotingClient(name="test", rpc_hooks=rpc_hooks)

    async def ask(self, code: int, body: Any = None, /, **fields: object) -> RemotingCommand:
        """Send a request with fields under their Java names; True is written as Java does."""
        texts = {
            key: str(value).lower() if isinstance(value, bool) else str(value)
            for key, value in fields.items()
        }
        if not isinstance(body, bytes):
            body = b"" if body is None else msgspec.json.encode(body)
        request = RemotingCommand.request(code, texts, body)
        return await self.remoting.invoke(self.addr, request, REQUEST_TIMEOUT_MS)

    async def close(self) -> None:
        """Close the connection."""
        await self.remoting.close()


class ScriptedBroker:
    """One broker of a set, as far as controllers see it."""

    def __init__(
        self, client: ControllerClient, name: str, address: str, cluster: str = "c"
    ) -> None:
        self.client = client
        self.name = name
        self.address = address
        self.cluster = cluster
        self.check_code = f"{address};1700000000000"
        self.broker_id = 0

    async def join(self) -> None:
        """Take the next id, and register, as a broker does at its first start."""
        place = {"clusterName": self.cluster, "brokerName": self.name}
        answer = await self.client.ask(Code.CONTROLLER_GET_NEXT_BROKER_ID, **place)
        assert answer.code == 0, answer.remark
        self.broker_id = int(answer.ext_fields["nextBrokerId"])
        answer = await self.client.ask(
            Code.CONTROLLER_APPLY_BROKER_ID,
            **place,
            appliedBrokerId=self.broker_id,
            registerCheckCode=self.check_code,
        )
        assert answer.code == 0, answer.remark
        answer = await self.register()
        assert answer.code == 0, answer.remark

    async def register(self) -> RemotingCommand:
        """Tell the address, and hear the master."""
        return await self.client.ask(
            Code.CONTROLLER_REGISTER_BROKER,
            clusterName=self.cluster,
            brokerName=self.name,
            brokerId=self.broker_id,
            brokerAddress=self.address,
        )

    async def beat(self, **fields: object) -> RemotingCommand:
        """Send one heartbeat."""
        values = {
            "clusterName": self.cluster,
            "brokerName": self.name,
            "brokerAddr": self.address,
            "brokerId": self.broker_id,
            "epoch": 1,
            "maxOffset": 100,
            "confirmOffset": 100,
            "heartbeatTimeoutMills": 600_000,
            "electionPriority": 1,
        }
        return await self.client.ask(Code.BROKER_HEARTBEAT, **(values | fields))

    async def elect(self, **fields: object) -> RemotingCommand:
        """Ask for a master."""
        values = {
            "clusterName": self.cluster,
            "brokerName": self.name,
            "brokerId": self.broker_id,
            "designateElect": False,
        }
        return await self.client.ask(Code.CONTROLLER_ELECT_MASTER, **(values | fields))

    async def info(self) -> tuple[dict[str, str], dict[str, Any]]:
        """Return the fields and the body of 1004."""
        answer = await self.client.ask(Code.CONTROLLER_GET_REPLICA_INFO, brokerName=self.name)
        assert answer.code == 0, answer.remark
        return answer.ext_fields, msgspec.json.decode(answer.body)

    async def alter(self, *members: int, **fields: object) -> RemotingCommand:
        """Report a sync-state set with the present epochs."""
        present, body = await self.info()
        values = {
            "brokerName": self.name,
            "masterBrokerId": self.broker_id,
            "masterEpoch": present["masterEpoch"],
        }
        report = {"syncStateSet": members, "syncStateSetEpoch": body["syncStateSetEpoch"]}
        return await self.client.ask(
            Code.CONTROLLER_ALTER_SYNC_STATE_SET, report, **(values | fields)
        )


class Listener:
    """A listening broker that records the notices 1008."""

    def __init__(self) -> None:
        self.notices: list[RemotingCommand] = []
        self.address = ""
        self._server = RemotingServer(self._dispatch, name="listener")

    async def start(self) -> "Listener":
        """Listen on a free port."""
        port = await self._server.listen("127.0.0.1", 0)
        self.address = f"127.0.0.1:{port}"
        return self

    def received(self) -> bool:
        """Whether a notice has come."""
        return bool(self.notices)

    async def stop(self) -> None:
        """Close the port."""
        await self._server.close()

    def _dispatch(self, connection: Connection, request: RemotingCommand) -> None:
        self.notices.append(request)
