"""Brokers with access control for signed loads: settings, and the account of the requests.

Gantry and RocketMQ 5 have users and lists (ACL 2.0), created after the start; RocketMQ 4 has the
file plain_acl.yml. The account may send to one topic and nothing else.
"""

import asyncio
import json
from pathlib import Path
from statistics import median
from typing import Any, Final

from benchmarks.load import SCENARIOS, SIGNED, Scenario, run
from benchmarks.measuring import measure
from benchmarks.processes import Cluster, alone, running
from benchmarks.requests import ACCOUNT, SECRET, TOPIC, send_template
from core_broker.client import AclRpcHook, AdminClient
from core_broker.config import java_key, property_text
from core_broker.remoting.bodies.auth import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo

ADMIN: Final = "bench-admin"
ADMIN_SECRET: Final = "bench-admin-key"
_AUTH: Final = "org.apache.rocketmq.auth"
#: Settings of Gantry and RocketMQ 5.
ACL_2: Final[dict[str, Any]] = {
    "authentication_enabled": True,
    "authentication_provider": f"{_AUTH}.authentication.provider.DefaultAuthenticationProvider",
    "authentication_metadata_provider": (
        f"{_AUTH}.authentication.provider.LocalAuthenticationMetadataProvider"
    ),
    "authorization_enabled": True,
    "authorization_provider": f"{_AUTH}.authorization.provider.DefaultAuthorizationProvider",
    "authorization_metadata_provider": (
        f"{_AUTH}.authorization.provider.LocalAuthorizationMetadataProvider"
    ),
    "init_authentication_user": json.dumps({"username": ADMIN, "password": ADMIN_SECRET}),
}
#: The same as lines of Gantry's settings file.
ACL_2_LINES: Final = "".join(
    f"{java_key(name)}={property_text(value)}\n" for name, value in ACL_2.items()
)
#: Settings and file of RocketMQ 4.
ACL_1: Final[dict[str, Any]] = {"acl_enable": True}
PLAIN_ACL: Final = f"""accounts:
- accessKey: {ADMIN}
  secretKey: {ADMIN_SECRET}
  admin: true
- accessKey: {ACCOUNT}
  secretKey: {SECRET}
  admin: false
  defaultTopicPerm: DENY
  defaultGroupPerm: DENY
  topicPerms:
  - {TOPIC}=PUB
"""
#: Unsigned scenario → signed scenario.
_PAIRS: Final = {"send-64x1": "signed-64x1", "send-1x64": "signed-1x64"}
_ROUNDS: Final = 3


def sign_as_admin(cluster: Cluster) -> None:
    """Let the benchmark's questions to the brokers be those of the administrator."""
    cluster.rpc_hooks = [AclRpcHook(ADMIN, ADMIN_SECRET)]


async def create_account(cluster: Cluster) -> None:
    """Create the account on a broker with ACL 2.0."""
    sign_as_admin(cluster)
    entry = PolicyEntryInfo(actions=["Pub"], decision="Allow", resource=f"Topic:{TOPIC}")
    policy = PolicyInfo(entries=[entry], policy_type="Custom")
    async with AdminClient(cluster.namesrv_addr, rpc_hooks=cluster.rpc_hooks) as admin:
        user = UserInfo(username=ACCOUNT, password=SECRET, user_type="Normal")
        await admin.create_user(cluster.broker_addr, user)
        acl = AclInfo(subject=f"User:{ACCOUNT}", policies=[policy])
        await admin.create_acl(cluster.broker_addr, acl)


def check_access_control(cluster: Cluster) -> None:
    """Exit when the broker accepts an unsigned send: signed loads would measure nothing."""
    try:
        run(Scenario(1, 1, send_template), cluster.broker_addr, seconds=1, messages_max=1)
    except SystemExit as refusal:
        if "refused" not in str(refusal):
            raise
    else:
        raise SystemExit(f"{cluster.broker_addr} accepts unsigned sends")


def signed_sends(folder: Path, seconds: float) -> dict[str, Any]:
    """Compare unsigned sends with signed sends to a broker with access control, in turn.

    Returns messages per second and CPU time per message, the medians of all rounds but the first.
    """
    (folder / "unsigned").mkdir()
    (folder / "signed").mkdir()
    with (
        running(folder / "unsigned") as unsigned,
        running(folder / "signed", ACL_2_LINES) as signed,
    ):
        asyncio.run(create_account(signed))
        check_access_control(signed)
        runs: dict[str, list[dict[str, Any]]] = {}
        for number in range(1 + _ROUNDS):
            for pair in _PAIRS.items():
                for name, cluster in zip(pair, (unsigned, signed), strict=True):
                    with alone(cluster, [unsigned, signed]):
                        figures = measure(cluster, (SCENARIOS | SIGNED)[name], seconds=seconds / 4)
                    if number:
                        runs.setdefault(name, []).append(figures)
    found: dict[str, Any] = {}
    for name, each in runs.items():
        found[f"{name} msg/s"] = int(median(run["rate"] for run in each))
        found[f"{name} us/msg"] = median(run["broker_cpu_us_per_message"] for run in each)
    for plain, other in _PAIRS.items():
        found[f"{other} : {plain}"] = round(found[f"{other} msg/s"] / found[f"{plain} msg/s"], 2)
    return found
