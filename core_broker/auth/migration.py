"""Users and lists of ACL 2.0 from the accounts of ACL 1.0 (migrateAuthFromV1Enabled).

    admin                    super user
    topicPerms, groupPerms   entries of the Custom policy, with literal names
    default permissions      entries of the Default policy, on Topic:* and Group:*
    white lists              have no counterpart and are dropped

Compatible with AuthMigrator of RocketMQ 5.3.3, with two differences in text and none in decisions:
an absent default becomes an entry, as DENY does, and a super user has no Default entries. Pure.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from core_broker.auth.acl1.accounts import RETRY_PREFIX, Account
from core_broker.auth.acl1.addresses import AddressPattern
from core_broker.auth.acl1.permissions import Perm
from core_broker.auth.acl2.tables import AccessTables, create_user, put_acl
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo

_ACTIONS: Final = {Perm.PUB: "Pub", Perm.SUB: "Sub"}


class Migrated(NamedTuple):
    """The tables with the new users, and what the operator should know, without secrets."""

    tables: AccessTables
    created: tuple[str, ...]
    warnings: tuple[str, ...]


def migrated(
    tables: AccessTables,
    accounts: Iterable[Account],
    white_list: Iterable[AddressPattern],
    secret_keys: Mapping[str, str],
) -> Migrated:
    """Return tables with a user for each account; present users stay as they are, with lists."""
    created, warnings = [], []
    for account in accounts:
        name = account.access_key
        if name in tables.users:
            continue
        kind = "Super" if account.is_admin else "Normal"
        info = UserInfo(username=name, password=secret_keys.get(name), user_type=kind)
        try:
            with_user = create_user(tables, name, info, by_super=True)
            if policies := list(_policies(account)):
                acl = AclInfo(subject=f"User:{name}", policies=policies)
                with_user = put_acl(with_user, "", acl)
        except RequestRefused as refusal:
            warnings.append(f"account {name} becomes no user: {refusal.remark}")
            continue
        tables = with_user
        created.append(name)
        if account.white_address.text:
            warnings.append(
                f"account {name}: whiteRemoteAddress is dropped; clients at "
                f"{account.white_address.text} must sign"
            )
    if created and (patterns := ", ".join(pattern.text for pattern in white_list)):
        warnings.append(f"the white list is dropped; clients at {patterns} must sign")
    return Migrated(tables, tuple(created), tuple(warnings))


def _policies(account: Account) -> Iterator[PolicyInfo]:
    if account.perms:
        entries = [_entry(_resource(name), perm) for name, perm in account.perms.items()]
        yield PolicyInfo(policy_type="Custom", entries=entries)
    if not account.is_admin:
        defaults = (account.default_topic_perm, account.default_group_perm)
        entries = list(map(_entry, ("Topic:*", "Group:*"), defaults))
        yield PolicyInfo(policy_type="Default", entries=entries)


def _resource(name: str) -> str:
    if name.startswith(RETRY_PREFIX):
        return f"Group:{name.removeprefix(RETRY_PREFIX)}"
    return f"Topic:{name}"


def _entry(resource: str, perm: Perm) -> PolicyEntryInfo:
    actions = [action for bit, action in _ACTIONS.items() if perm & bit]
    if perm & Perm.DENY:
        actions = []
    decision = "Allow" if actions else "Deny"
    return PolicyEntryInfo(resource=resource, actions=actions or ["All"], decision=decision)
