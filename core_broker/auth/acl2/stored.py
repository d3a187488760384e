"""The content of `config/auth.json`: users and access control lists of a broker.

    {"acls": {"User:alice": {"policies": [{"policyType": 1, "entries": [
       {"resource": {"resourceType": 4, "resourcePattern": 2, "resourceName": "t"},
        "actions": [3, 4], "environment": {"sourceIps": ["10.0.0.0/8"]}, "decision": 1}]}]}},
     "users": {"alice": {"username": "alice", "password": "…", "userType": 2, "userStatus": 1}}}

The values have the shape of the values in the stores `users` and `acls` of RocketMQ 5.3.3, with the
numbers of `model`. With a cipher a user has `encryptedPassword` instead of `password`; both forms
are read.
"""

from collections.abc import Iterator
from typing import Protocol

import msgspec

from core_broker.auth.acl2.model import (
    SUBJECT_PREFIX,
    Acl,
    Policy,
    PolicyEntry,
    PolicyType,
    Resource,
    ResourcePattern,
    ResourceType,
    RuleAction,
    RuleDecision,
    User,
    UserStatus,
    UserType,
)
from core_broker.auth.acl2.source_addresses import SourceAddresses
from core_broker.auth.acl2.tables import AccessTables
from core_broker.errors import ProtocolError


class PasswordCipher(Protocol):
    """Encrypts passwords; `username` is authenticated with the text."""

    def encrypt(self, username: str, password: str) -> str:
        """Return the encrypted password as text."""

    def decrypt(self, username: str, text: str) -> str:
        """Return the password; raises ValueError for a wrong key or a changed text."""

    def is_current(self, text: str) -> bool:
        """Whether `encrypt` uses the key that encrypted the text."""


class _User(msgspec.Struct, rename="camel", omit_defaults=True):
    username: str
    password: str | None = None
    encrypted_password: str | None = None
    subject_type: int | None = None
    user_type: UserType = UserType.NORMAL
    user_status: UserStatus = UserStatus.ENABLE


class _Resource(msgspec.Struct, rename="camel", omit_defaults=True):
    resource_type: ResourceType
    resource_pattern: ResourcePattern
    resource_name: str = ""


class _Environment(msgspec.Struct, rename="camel", omit_defaults=True):
    source_ips: list[str] = []


class _Entry(msgspec.Struct, rename="camel"):
    resource: _Resource
    actions: list[RuleAction]
    decision: RuleDecision
    environment: _Environment = msgspec.field(default_factory=_Environment)


class _Policy(msgspec.Struct, rename="camel"):
    policy_type: PolicyType
    entries: list[_Entry]


class _Acl(msgspec.Struct, rename="camel"):
    policies: list[_Policy]


class _File(msgspec.Struct):
    acls: dict[str, _Acl] = {}
    users: dict[str, _User] = {}


_decode = msgspec.json.Decoder(_File).decode
_encode = msgspec.json.Encoder().encode


def encode(tables: AccessTables, cipher: PasswordCipher | None = None) -> bytes:
    """Return the content of the file."""
    users = {name: _stored_user(user, cipher) for name, user in tables.users.items()}
    acls = {subject: _stored_acl(acl) for subject, acl in tables.acls.items()}
    return _encode(_File(acls, users))


def decode(content: bytes, cipher: PasswordCipher | None = None) -> AccessTables:
    """Return the tables of the file's content.

    Raises ProtocolError with the place of the damage, also for an encrypted password without its
    key: a broker must not start with other users than the operator's.
    """
    try:
        file = _decode(content)
        users = {name: _user(name, stored, cipher) for name, stored in file.users.items()}
        acls = {subject: _acl(acl) for subject, acl in file.acls.items()}
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise ProtocolError(f"users and access control lists are unreadable: {error}") from None
    for subject in acls:
        if subject.removeprefix(SUBJECT_PREFIX) not in users:
            raise ProtocolError(f"the list of {subject} has no user")
    return AccessTables(users, acls)


def is_encrypted(content: bytes, cipher: PasswordCipher) -> bool:
    """Whether the present key encrypted every password of a readable file."""
    texts = (user.encrypted_password for user in _decode(content).users.values())
    return all(text is not None and cipher.is_current(text) for text in texts)


def _stored_user(user: User, cipher: PasswordCipher | None) -> _User:
    stored = _User(user.username, subject_type=1, user_type=user.type, user_status=user.status)
    if cipher is None:
        stored.password = user.password
    else:
        stored.encrypted_password = cipher.encrypt(user.username, user.password)
    return stored


def _user(name: str, stored: _User, cipher: PasswordCipher | None) -> User:
    password = stored.password
    if stored.encrypted_password is not None:
        if cipher is None:
            raise ValueError(
                f"the password of {name} is encrypted; set authEncryptionKeyFile, or "
                "ROCKETMQ_AUTH_ENCRYPTION_KEY in the environment"
            )
        password = cipher.decrypt(name, stored.encrypted_password)
    if not password or name != stored.username:
        raise ValueError(f"the user {name} has no password, or another name inside")
    return User(name, password, stored.user_type, stored.user_status)


def _stored_acl(acl: Acl) -> _Acl:
    return _Acl(
        [_Policy(policy.type, list(map(_stored_entry, policy.entries))) for policy in acl.policies]
    )


def _stored_entry(entry: PolicyEntry) -> _Entry:
    return _Entry(
        _Resource(*entry.resource),
        list(entry.actions),
        entry.decision,
        _Environment(list(entry.sources.texts)),
    )


def _acl(stored: _Acl) -> Acl:
    return Acl(
        tuple(
            Policy(policy.policy_type, tuple(_entries(policy.entries)))
            for policy in stored.policies
        )
    )


def _entries(stored: list[_Entry]) -> Iterator[PolicyEntry]:
    for entry in stored:
        resource = entry.resource
        yield PolicyEntry(
            Resource(resource.resource_type, resource.resource_pattern, resource.resource_name),
            tuple(entry.actions),
            SourceAddresses(entry.environment.source_ips),
            entry.decision,
        )
