"""Questions about accounts: the list, one account by broker process, the state of each process."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.acl_accounts.processes import (
    AclAccount,
    Processes,
    acl_processes,
)
from console.gateway.engine.answers import BrokerFailure, Partial
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.processes import NoAccessControl, held, leading, spread_of

Configs = tuple[tuple[BrokerRef, AclAccount], ...]


@dataclass(frozen=True, slots=True)
class AclAccountRow:
    """An account over all processes, with the values of the first."""

    name: str
    admin: bool
    default_topic_perm: str
    default_group_perm: str
    permissions: int
    brokers: tuple[str, ...]
    missing_on: tuple[str, ...]
    drift: bool


@dataclass(frozen=True, slots=True)
class AclAccountDetail:
    """An account on all processes. `fields` has the values of each field by process."""

    row: AclAccountRow
    configs: Configs
    fields: tuple[tuple[str, tuple[str | bool | None, ...]], ...]


def tables_of(processes: Processes) -> dict[BrokerRef, Mapping[str, AclAccount]]:
    """The accounts of each process that lists accounts."""
    return {ref: process.accounts for ref, process in processes.items() if process.state == "on"}


def check_on(processes: Processes) -> None:
    """Raise NoAccessControl when no process has ACL 1.0 with a list of accounts."""
    states = {process.state for process in processes.values()}
    if "on" in states:
        return
    if "unlisted" in states:
        raise NoAccessControl(
            _("The brokers do not list accounts."),
            hint=_(
                "RocketMQ 4.9.8 and 5.2 return no accounts, because the answer had all secret "
                "keys. “mqadmin updateAclConfig” changes accounts there."
            ),
        )
    if "off" in states:
        raise NoAccessControl(
            _("ACL 1.0 is off: aclEnable is false on the brokers."),
            hint=_(
                "Set aclEnable=true in the broker's configuration, write an account with admin: "
                "true to conf/plain_acl.yml, and restart the broker."
            ),
        )
    raise NoAccessControl(
        _("The brokers have no accounts in plain_acl.yml (ACL 1.0)."),
        hint=_("RocketMQ 5.3.3 and later have users and access control lists (ACL 2.0) only."),
    )


def fields_of(account: AclAccount) -> dict[str, str | bool]:
    """The settings under RocketMQ's names, and each permission as `Topic:name` or `Group:name`."""
    return {
        "admin": account.admin,
        "whiteRemoteAddress": account.white_remote_address,
        "defaultTopicPerm": account.default_topic_perm,
        "defaultGroupPerm": account.default_group_perm,
        **_permissions("Topic:", account.topic_perms),
        **_permissions("Group:", account.group_perms),
    }


def _permissions(kind: str, items: tuple[str, ...]) -> dict[str, str]:
    parts = (item.rpartition("=") for item in items)
    return {kind + name: word for name, _sign, word in parts}


@question(fresh_for_ms=2_000)
async def account_brokers(session: ClusterSession) -> Partial[tuple[str, ...]]:
    """The names of the brokers on which accounts can be created."""
    answer = await session.ask(acl_processes)
    check_on(answer.value)
    names = dict.fromkeys(ref.name for ref in sorted(tables_of(answer.value)))
    return Partial(tuple(names), answer.failures)


@question(fresh_for_ms=2_000, costly=True)
async def account_rows(session: ClusterSession) -> Partial[tuple[AclAccountRow, ...]]:
    """All accounts in order of name."""
    answer = await session.ask(acl_processes)
    return Partial(session.derived("acl_account_rows", answer.value, _rows), answer.failures)


def _rows(processes: Processes) -> tuple[AclAccountRow, ...]:
    tables = tables_of(processes)
    return tuple(
        _row(name, tables) for name in sorted({key for keys in tables.values() for key in keys})
    )


def _row(name: str, tables: Mapping[BrokerRef, Mapping[str, AclAccount]]) -> AclAccountRow:
    _ref, first = held(tables, name)[0]
    spread = spread_of(tables, name)
    return AclAccountRow(
        name=name,
        admin=first.admin,
        default_topic_perm=first.default_topic_perm,
        default_group_perm=first.default_group_perm,
        permissions=len(first.topic_perms) + len(first.group_perms),
        brokers=spread.brokers,
        missing_on=spread.missing_on,
        drift=spread.drift,
    )


@question(fresh_for_ms=1_000)
async def account_detail(session: ClusterSession, name: str) -> Partial[AclAccountDetail]:
    """An account on all processes; NotFound when no process has the account."""
    answer = await session.ask(acl_processes)
    tables = tables_of(answer.value)
    configs = held(tables, name)
    if not configs:
        raise no_such_account(name, answer.failures)
    by_process = [fields_of(account) for _ref, account in configs]
    keys = dict.fromkeys(key for fields in by_process for key in fields)
    fields = tuple((key, tuple(one.get(key) for one in by_process)) for key in keys)
    return Partial(AclAccountDetail(_row(name, tables), configs, fields), answer.failures)


@question(fresh_for_ms=1_000)
async def account_settings(session: ClusterSession, name: str) -> Partial[Configs]:
    """The account by broker name, from the master where the master has the account."""
    answer = await session.ask(acl_processes)
    configs = leading(tables_of(answer.value), name)
    if not configs:
        raise no_such_account(name, answer.failures)
    return Partial(configs, answer.failures)


def no_such_account(name: str, failures: tuple[BrokerFailure, ...] = ()) -> NotFound:
    hint = _("A broker that did not answer may have the account.") if failures else ""
    return NotFound(
        format_lazy(_("No broker of the cluster lists an account “{name}”."), name=name),
        hint=hint,
        failures=failures,
    )
