"""The users and access control lists of a broker, and their changes.

Tables are immutable: a change returns new tables, or raises RequestRefused with RocketMQ's code and
remark and changes nothing. Compatible with AuthenticationMetadataManagerImpl and
AuthorizationMetadataManagerImpl of RocketMQ 5.3.3. Stricter: tables and names have limits, unknown
words for types and status are refused, and resources that could never match.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NoReturn, TypeVar

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
    UserStatus,
    UserType,
    named,
    username_of,
)
from core_broker.auth.acl2.source_addresses import SourceAddresses
from core_broker.errors import RequestRefused
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, UserInfo
from core_broker.remoting.codes import ResponseCode

#: Maximum users of a broker.
USERS_MAX: Final = 10_000
#: Maximum entries of a user's list.
ENTRIES_MAX: Final = 1_000
#: Maximum source addresses of an entry.
SOURCES_MAX: Final = 256
#: Maximum length of names and passwords, characters.
NAME_LENGTH_MAX: Final = 255
PASSWORD_LENGTH_MAX: Final = 1_024

E = TypeVar("E", bound=IntEnum)

_SUPER_ONLY_CREATE: Final = "The super user can only be create by super user"
_SUPER_ONLY_UPDATE: Final = "The super user can only be update by super user"
_NO_SUBJECT: Final = "The subject is not exist."


def _refuse(remark: str, code: ResponseCode = ResponseCode.NO_PERMISSION) -> NoReturn:
    raise RequestRefused(code, remark)


@dataclass(frozen=True, slots=True)
class AccessTables:
    """Users by name, and lists by subject `User:name`, in the order of creation."""

    users: Mapping[str, User] = field(default_factory=lambda: MappingProxyType({}))
    acls: Mapping[str, Acl] = field(default_factory=lambda: MappingProxyType({}))

    def with_user(self, user: User) -> "AccessTables":
        """Return tables in which the user is new or replaced."""
        return replace(self, users={**self.users, user.username: user})

    def with_acl(self, subject: str, acl: Acl) -> "AccessTables":
        """Return tables with the list of a subject; a list without entries is removed."""
        acls = {**self.acls, subject: acl}
        if not acl.policies:
            del acls[subject]
        return replace(self, acls=acls)


def create_user(
    tables: AccessTables, username: str, info: UserInfo, *, by_super: bool
) -> AccessTables:
    """AUTH_CREATE_USER (3001); the name of the header takes precedence over the body's."""
    kind = _member(UserType, info.user_type) or UserType.NORMAL
    status = _member(UserStatus, info.user_status) or UserStatus.ENABLE
    if kind is UserType.SUPER and not by_super:
        _refuse(_SUPER_ONLY_CREATE, ResponseCode.SYSTEM_ERROR)
    _check_name(username)
    password = _checked_password(info.password)
    if username in tables.users:
        _refuse("The user is existed")
    if len(tables.users) >= USERS_MAX:
        _refuse(f"There are {USERS_MAX} users already, the maximum of a broker; delete unused ones")
    return tables.with_user(User(username, password, kind, status))


def update_user(
    tables: AccessTables, username: str, info: UserInfo, *, by_super: bool
) -> AccessTables:
    """AUTH_UPDATE_USER (3002): replace the given members; an empty password keeps the old one."""
    kind = _member(UserType, info.user_type)
    status = _member(UserStatus, info.user_status)
    if kind is UserType.SUPER and not by_super:
        _refuse(_SUPER_ONLY_UPDATE, ResponseCode.SYSTEM_ERROR)
    user = tables.users.get(username)
    if user is None:
        _refuse("The user is not exist")
    if user.is_super and not by_super:
        _refuse(_SUPER_ONLY_UPDATE)
    password = _checked_password(info.password) if info.password else user.password
    return tables.with_user(User(username, password, kind or user.type, status or user.status))


def delete_user(tables: AccessTables, username: str, *, by_super: bool) -> AccessTables:
    """AUTH_DELETE_USER (3003): also the user's list; an unknown user is no error."""
    if not username.strip():
        _refuse("username can not be blank")
    user = tables.users.get(username)
    if user is not None and user.is_super and not by_super:
        _refuse(_SUPER_ONLY_UPDATE)
    users, acls = dict(tables.users), dict(tables.acls)
    users.pop(username, None)
    acls.pop(SUBJECT_PREFIX + username, None)
    return AccessTables(users, acls)


def put_acl(tables: AccessTables, subject: str, info: AclInfo) -> AccessTables:
    """AUTH_CREATE_ACL (3006) and AUTH_UPDATE_ACL (3007): merge the entries into the list.

    An entry with the resource of a present entry of the policy replaces the present entry in
    place; other entries are appended. The body's subject takes precedence over the header's.
    """
    subject = subject_of(info.subject or subject)
    if not info.policies:
        _refuse("The body of acl is null", ResponseCode.SYSTEM_ERROR)
    given: list[tuple[PolicyType, list[PolicyEntry]]] = []
    for policy in info.policies:
        kind = _member(PolicyType, policy.policy_type) or PolicyType.CUSTOM
        if not policy.entries:
            _refuse("The policies is empty.")
        given.append((kind, [read_entry(entry) for entry in policy.entries]))
    if subject.removeprefix(SUBJECT_PREFIX) not in tables.users:
        _refuse(f"The subject of {subject} is not exist.")
    present = tables.acls.get(subject, Acl(()))
    policies = {policy.type: policy.entries for policy in present.policies}
    for kind, entries in given:
        policies[kind] = _merged(policies.get(kind, ()), entries)
    if sum(map(len, policies.values())) > ENTRIES_MAX:
        _refuse(f"The list of a subject may have {ENTRIES_MAX} entries; use prefixes: Topic:pre*")
    return tables.with_acl(subject, Acl(tuple(Policy(*each) for each in policies.items())))


def delete_acl(tables: AccessTables, subject: str, policy_type: str, resource: str) -> AccessTables:
    """AUTH_DELETE_ACL (3008): one entry, of the Custom policy without a type; or the whole list.

    RocketMQ deletes the whole list for a resource that it cannot read; here the request fails.
    """
    if not subject:
        _refuse("The subject is null.")
    subject = subject_of(subject)
    if subject.removeprefix(SUBJECT_PREFIX) not in tables.users:
        _refuse(_NO_SUBJECT)
    acl = tables.acls.get(subject)
    if acl is None:
        _refuse("The acl is not exist.")
    if not resource:
        return tables.with_acl(subject, Acl(()))
    kind = _member(PolicyType, policy_type) or PolicyType.CUSTOM
    pattern = Resource.parse(resource)
    if pattern is None:
        _refuse(f"The resource {resource[:NAME_LENGTH_MAX]!r} is invalid.")
    policies = []
    for policy in acl.policies:
        kept = policy.entries
        if policy.type is kind:
            kept = tuple(entry for entry in kept if entry.resource != pattern)
        if kept:
            policies.append(Policy(policy.type, kept))
    return tables.with_acl(subject, Acl(tuple(policies)))


def subject_of(text: str) -> str:
    """Return the subject in the spelling of the tables; raises RequestRefused."""
    name = username_of(text)
    if name is None:
        _refuse(f"{text[:NAME_LENGTH_MAX]!r} is no User:name", ResponseCode.SYSTEM_ERROR)
    return SUBJECT_PREFIX + name


def known_subject(tables: AccessTables, text: str) -> str:
    """Return the subject of a known user; raises RequestRefused."""
    subject = subject_of(text)
    if subject.removeprefix(SUBJECT_PREFIX) not in tables.users:
        _refuse(_NO_SUBJECT)
    return subject


def _member(kind: type[E], text: str | None) -> E | None:
    """The member of a name, None without a text; RocketMQ ignores unknown names."""
    member = named(kind, text)
    if text and member is None:
        words = ", ".join(kind.__members__).lower()
        _refuse(f"{text[:NAME_LENGTH_MAX]!r} is none of: {words}", ResponseCode.INVALID_PARAMETER)
    return member


def _check_name(username: str) -> None:
    if not username.strip():
        _refuse("username can not be blank")
    if (
        len(username) > NAME_LENGTH_MAX
        or username != username.strip()
        or not username.isprintable()
    ):
        _refuse(
            f"username can have {NAME_LENGTH_MAX} printable characters, no blank at begin or end",
            ResponseCode.INVALID_PARAMETER,
        )


def _checked_password(password: str | None) -> str:
    if not password or not password.strip():
        _refuse("password can not be blank")
    if len(password) > PASSWORD_LENGTH_MAX:
        _refuse(
            f"password can have {PASSWORD_LENGTH_MAX} characters", ResponseCode.INVALID_PARAMETER
        )
    return password


def _merged(present: tuple[PolicyEntry, ...], given: list[PolicyEntry]) -> tuple[PolicyEntry, ...]:
    entries = {entry.resource: entry for entry in present}
    entries.update((entry.resource, entry) for entry in given)
    return tuple(entries.values())


def read_entry(info: PolicyEntryInfo) -> PolicyEntry:
    """Return the entry of a body; raises RequestRefused in RocketMQ's order of checks."""
    resource = Resource.parse(info.resource or "")
    if resource is None or len(resource.name) > NAME_LENGTH_MAX:
        _refuse("The resource is null.")
    actions = tuple(info.actions or ())
    if any(action.upper() == "ANY" for action in actions):
        _refuse("The actions can not be Any.")
    known = tuple(dict.fromkeys(named(RuleAction, action) for action in actions))
    if not known:
        _refuse("The actions is empty.")
    rule_actions = tuple(action for action in known if action is not None)
    if len(rule_actions) != len(known):
        _refuse("The actions is empty." if not rule_actions else "An action is unknown.")
    decision = named(RuleDecision, info.decision)
    sources = _sources(info.source_ips or [])
    if decision is None:
        _refuse("The decision is null or illegal.")
    return PolicyEntry(resource, rule_actions, sources, decision)


def _sources(texts: list[str]) -> SourceAddresses:
    if len(texts) > SOURCES_MAX:
        _refuse(f"An entry may have {SOURCES_MAX} source addresses; use CIDR blocks")
    if not all(texts):
        _refuse("The source ip is empty.")
    try:
        return SourceAddresses(texts)
    except ValueError:
        _refuse("The source ip is invalid.")
