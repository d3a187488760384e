"""What each broker process answers about ACL 1.0: state, files with versions, accounts, white list.

    on           the accounts are listed: Gantry (60004), RocketMQ 4.4 to 4.9.7, 5.0, 5.1 (54)
    unlisted     aclEnable=true, and the broker lists no accounts: RocketMQ 4.9.8 and 5.2
    off          aclEnable=false
    unsupported  no ACL 1.0: RocketMQ 5.3.3 and later

RocketMQ returns accounts with secret keys. The secret keys are dropped in this module, before an
answer is cached.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, Literal

from console.gateway.acl_accounts.permissions import normal_permissions, normal_word
from console.gateway.acl_accounts.refusals import explained
from console.gateway.brokers.listing import broker_refs, cluster_map, no_broker
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.client.admin.inventory import offered_codes
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import AccessEntry, AccessInventoryBody, PlainAccessConfig
from core_broker.remoting.codes import RequestCode, ResponseCode

SWITCH: Final = "aclEnable"
#: Part of the refusal of code 54 by a Gantry broker without code 60004.
_NO_LIST: Final = "CVE-2024-23321"

#: The first version of RocketMQ without ACL 1.0.
_WITHOUT_ACL1: Final = (5, 3, 3)
_VERSION: Final = re.compile(r"V(\d+)_(\d+)_(\d+)")

State = Literal["on", "unlisted", "off", "unsupported"]


@dataclass(frozen=True, slots=True)
class AclAccount:
    """An account on one broker process, without the secret key."""

    access_key: str
    admin: bool = False
    white_remote_address: str = ""
    default_topic_perm: str = "DENY"
    default_group_perm: str = "DENY"
    #: Items `name=permission`.
    topic_perms: tuple[str, ...] = ()
    group_perms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class AclFile:
    """A file with accounts. `path` is on the broker's machine; "" where brokers do not report it.

    `patterns` is the file's part of the white list; None: the broker reports only the whole list.
    """

    path: str
    counter: int
    changed_ms: int
    patterns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class AclProcess:
    """ACL 1.0 on one broker process."""

    state: State
    files: tuple[AclFile, ...] = ()
    accounts: Mapping[str, AclAccount] = field(default_factory=dict)
    #: The patterns of all files.
    white_list: tuple[str, ...] = ()
    #: Path of the file that commands change; "" where the broker does not report the path.
    default_file: str = ""
    #: Whether the broker takes Gantry's codes, which need no secret keys.
    is_gantry: bool = False
    #: Why changed files are not in force.
    problem: str | None = None

    @property
    def editable_patterns(self) -> tuple[str, ...]:
        """The part of the white list that commands replace."""
        for file in self.files:
            if file.path == self.default_file and file.patterns is not None:
                return file.patterns
        return () if self.is_gantry else self.white_list


Processes = Mapping[BrokerRef, AclProcess]


@question(fresh_for_ms=2_000, costly=True)
async def acl_processes(session: ClusterSession) -> Partial[Processes]:
    """ACL 1.0 on each process."""
    processes, failures = await read_processes(session)
    return Partial(processes, failures)


async def read_processes(
    session: ClusterSession,
) -> tuple[dict[BrokerRef, AclProcess], tuple[BrokerFailure, ...]]:
    """Ask all processes, not from the cache."""
    listed = await session.ask(cluster_map)
    refs = await broker_refs(session)
    if not refs:
        raise no_broker(session)
    with explained():
        processes, failures = await session.fan_out(
            refs, lambda ref: _ask(session, ref.addr), keep=("acl_accounts",)
        )
    return processes, merge_failures(listed.failures, failures)


async def _ask(session: ClusterSession, addr: str) -> AclProcess:
    switch = (await session.admin.broker_config(addr)).get(SWITCH)
    table = await session.admin.runtime_info(addr)
    if switch != "true":
        return AclProcess("unsupported" if switch is None or _is_without(table) else "off")
    if RequestCode.GET_ACCESS_INVENTORY in offered_codes(table):
        return _of_gantry(await session.admin.access_inventory(addr))
    return await _ask_rocketmq(session, addr)


def _is_without(table: Mapping[str, str]) -> bool:
    """Whether the broker's RocketMQ has no ACL 1.0; its configuration still has aclEnable."""
    found = _VERSION.match(table.get("brokerVersionDesc", ""))
    return found is not None and tuple(map(int, found.groups())) >= _WITHOUT_ACL1


def _of_gantry(body: AccessInventoryBody) -> AclProcess:
    files = tuple(
        AclFile(
            file.path,
            file.version.counter,
            file.version.timestamp,
            tuple(file.global_white_remote_addresses),
        )
        for file in body.files
    )
    return AclProcess(
        "on",
        files=files,
        accounts={each.access_key: _account(each.access_key, each) for each in body.accounts},
        white_list=tuple(pattern for file in files for pattern in file.patterns or ()),
        default_file=body.default_file,
        is_gantry=True,
        problem=body.problem,
    )


async def _ask_rocketmq(session: ClusterSession, addr: str) -> AclProcess:
    try:
        versions = (await session.admin.access_version(addr)).versions
    except RequestRefused as refusal:
        if refusal.code != ResponseCode.REQUEST_CODE_NOT_SUPPORTED:
            raise
        return AclProcess("unsupported")
    files = tuple(
        AclFile(path, version.counter, version.timestamp)
        for path, version in sorted(versions.items())
    )
    try:
        config = await session.admin.access_accounts(addr)
    except RequestRefused as refusal:
        is_unknown = refusal.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
        if not is_unknown and _NO_LIST not in (refusal.remark or ""):
            raise
        return AclProcess("unlisted", files=files)
    accounts = {
        each.access_key: _account(each.access_key, each)
        for each in config.plain_access_configs or ()
        if each.access_key
    }
    patterns = tuple(pattern for pattern in config.global_white_addrs or () if pattern)
    return AclProcess("on", files=files, accounts=accounts, white_list=patterns)


def _account(access_key: str, body: AccessEntry | PlainAccessConfig) -> AclAccount:
    return AclAccount(
        access_key,
        admin=body.admin,
        white_remote_address=body.white_remote_address or "",
        default_topic_perm=normal_word(body.default_topic_perm or ""),
        default_group_perm=normal_word(body.default_group_perm or ""),
        topic_perms=normal_permissions(body.topic_perms or ()),
        group_perms=normal_permissions(body.group_perms or ()),
    )
