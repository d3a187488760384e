"""Access control of a big cluster, as files of its broker: ACL 1.0 and ACL 2.0, both on.

`write_access` writes them before the broker starts, and returns the settings of the broker and the
account that signs the requests of the console and of the benchmark:

    store/config/auth.json     users user-00000 …, each with a list of five entries
    rocketmq/conf/plain_acl.yml  accounts account-00000 …, each with two topics and a group
    signing.yml                the account, a super user of both
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from core_broker.auth.acl2.model import (
    SUBJECT_PREFIX,
    Acl,
    Policy,
    PolicyEntry,
    PolicyType,
    Resource,
    RuleAction,
    RuleDecision,
    User,
    UserType,
)
from core_broker.auth.acl2.source_addresses import SourceAddresses
from core_broker.auth.acl2.stored import encode
from core_broker.auth.acl2.tables import AccessTables
from core_broker.client import Credentials

#: The account of the console and of the clients of the benchmark.
SIGNING: Final = Credentials("benchmark", "secret-of-the-benchmark")
WHITE_ADDRESSES: Final = 200


def write_access(home: Path, users: int) -> tuple[str, Path]:
    """Write users and accounts; return lines for broker.conf, and the file of the account."""
    auth = home / "store" / "config" / "auth.json"
    auth.parent.mkdir(parents=True, exist_ok=True)
    auth.write_bytes(encode(tables(users)))
    rocketmq = home / "rocketmq"
    (rocketmq / "conf").mkdir(parents=True)
    (rocketmq / "conf" / "plain_acl.yml").write_text(json.dumps(accounts(users)))  # JSON is YAML
    signing = home / "signing.yml"
    SIGNING.save(signing)
    switches = ("aclEnable", "authenticationEnabled", "authorizationEnabled")
    return "".join(f"{each}=true\n" for each in switches) + f"rocketmqHome={rocketmq}\n", signing


def tables(users: int) -> AccessTables:
    """The signing super user, and users who consume one topic and publish to others."""
    first = User(SIGNING.access_key, SIGNING.secret_key, UserType.SUPER)
    others = [User(f"user-{number:05d}", f"secret-of-user-{number}") for number in range(users)]
    lists = {
        f"{SUBJECT_PREFIX}{user.username}": Acl(
            (Policy(PolicyType.CUSTOM, tuple(_entries(number))),)
        )
        for number, user in enumerate(others)
    }
    return AccessTables({user.username: user for user in (first, *others)}, lists)


def _entries(number: int) -> Iterator[PolicyEntry]:
    rights = (
        (f"Topic:topic-{number:05d}", (RuleAction.PUB, RuleAction.SUB), "10.0.0.0/8"),
        (f"Group:group-{number:05d}", (RuleAction.SUB,), "10.0.0.0/8"),
        (f"Topic:topic-{number % 100:03d}*", (RuleAction.PUB,), "192.168.0.0/16"),
        ("Topic:RMQ_SYS_TRACE_TOPIC", (RuleAction.PUB,), ""),
        ("Cluster:DefaultCluster", (RuleAction.GET, RuleAction.LIST), ""),
    )
    for name, actions, source in rights:
        resource = Resource.parse(name)
        assert resource is not None
        sources = SourceAddresses([source] if source else [])
        yield PolicyEntry(resource, actions, sources, RuleDecision.ALLOW)


def accounts(count: int) -> dict[str, Any]:
    """The content of plain_acl.yml."""
    signing: dict[str, Any] = {
        "accessKey": SIGNING.access_key,
        "secretKey": SIGNING.secret_key,
        "admin": True,
    }
    return {
        "globalWhiteRemoteAddresses": [f"10.77.{number}.*" for number in range(WHITE_ADDRESSES)],
        "accounts": [signing, *map(_account, range(count))],
    }


def _account(number: int) -> dict[str, Any]:
    return {
        "accessKey": f"account-{number:05d}",
        "secretKey": f"secret-of-account-{number}",
        "whiteRemoteAddress": "",
        "admin": False,
        "defaultTopicPerm": "DENY",
        "defaultGroupPerm": "SUB",
        "topicPerms": [f"topic-{number:05d}=PUB|SUB", f"topic-{number % 100:05d}=PUB"],
        "groupPerms": [f"group-{number:05d}=SUB"],
    }
