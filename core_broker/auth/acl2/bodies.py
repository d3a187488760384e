"""Users and lists as the bodies of the codes 3004, 3005, 3009 and 3010, and back.

Compatible with UserConverter and AclConverter of RocketMQ 5.3.3, but for passwords, which RocketMQ
returns to everybody with Get on the cluster.
"""

from collections.abc import Iterator
from typing import Final

from core_broker.auth.acl2.model import (
    SUBJECT_PREFIX,
    Acl,
    Policy,
    PolicyEntry,
    PolicyType,
    User,
    UserStatus,
    UserType,
    named,
    title,
)
from core_broker.auth.acl2.tables import AccessTables, read_entry
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo, UserInfo


def user_info(user: User, *, with_password: bool) -> UserInfo:
    """Return the body of a user. Tools copy a user only with the password."""
    return UserInfo(
        username=user.username,
        password=user.password if with_password else None,
        user_type=title(user.type),
        user_status=title(user.status),
    )


def user_infos(tables: AccessTables, part: str, *, with_password: bool) -> list[UserInfo]:
    """Return the users whose name contains a text, sorted by name."""
    return [
        user_info(user, with_password=with_password)
        for name, user in sorted(tables.users.items())
        if part in name
    ]


def acl_info(subject: str, acl: Acl, resource_part: str = "") -> AclInfo:
    """Return the body of a list, with the entries whose resource contains a text."""
    policies = [
        PolicyInfo(policy_type=title(policy.type), entries=entries)
        for policy in acl.policies
        if (entries := list(_entries(policy, resource_part)))
    ]
    return AclInfo(subject=subject, policies=policies)


def acl_infos(tables: AccessTables, subject_part: str, resource_part: str) -> list[AclInfo]:
    """Return the lists whose subject and resources contain the texts, sorted by subject."""
    infos = (
        acl_info(subject, acl, resource_part)
        for subject, acl in sorted(tables.acls.items())
        if subject_part in subject
    )
    return [info for info in infos if info.policies]


#: Stands for a password that the broker does not return; never leaves the process.
_NO_PASSWORD: Final = "not returned"  # noqa: S105


def tables_of(user: UserInfo, acl: AclInfo | None) -> tuple[AccessTables, list[str]]:
    """Return tables with one user of a broker's answers, and the resources of unreadable entries.

    Apache's brokers keep entries that match nothing, as `Topic:a*b`, and that Gantry refuses.
    """
    name = user.username or ""
    user_type = named(UserType, user.user_type) or UserType.NORMAL
    status = named(UserStatus, user.user_status) or UserStatus.ENABLE
    entries: dict[PolicyType, list[PolicyEntry]] = {kind: [] for kind in PolicyType}
    unreadable = []
    for policy in (acl and acl.policies) or ():
        kind = named(PolicyType, policy.policy_type) or PolicyType.CUSTOM
        for entry in policy.entries or ():
            try:
                entries[kind].append(read_entry(entry))
            except RequestRefused:
                unreadable.append(entry.resource or "")
    policies = tuple(Policy(kind, tuple(each)) for kind, each in entries.items() if each)
    known = User(name, user.password or _NO_PASSWORD, user_type, status)
    return AccessTables({name: known}, {SUBJECT_PREFIX + name: Acl(policies)}), unreadable


def _entries(policy: Policy, resource_part: str) -> Iterator[PolicyEntryInfo]:
    for entry in policy.entries:
        resource = str(entry.resource)
        if resource_part in resource:
            yield PolicyEntryInfo(
                resource=resource,
                actions=list(map(title, entry.actions)),
                source_ips=list(entry.sources.texts) or None,
                decision=title(entry.decision),
            )
