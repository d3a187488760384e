"""Reading of `plain_acl.yml` and the files below `conf/acl`.

    globalWhiteRemoteAddresses: [pattern]
    accounts:
    - {accessKey, secretKey, whiteRemoteAddress, admin, defaultTopicPerm, defaultGroupPerm,
       topicPerms: [topic=permission], groupPerms: [group=permission]}
    dataVersion: [{counter, timestamp}]

Compatible with RocketMQ's PlainPermissionManager and AclUtils, and stricter: an error names file,
line and account, and the whole file is refused. Unknown keys and unknown permission words, which
RocketMQ 4.9 ignores and reads as DENY, are reported as warnings. Pure.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from ruamel.yaml.nodes import Node

from core_broker.auth.acl1.accounts import (
    EXAMPLE_SECRETS,
    SECRET_LENGTH_SAFE,
    Account,
    AclFile,
    check_key,
    parse_permissions,
    split_permission,
)
from core_broker.auth.acl1.addresses import AddressPattern, parse_pattern
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.permissions import Perm, is_known_permission, parse_permission
from core_broker.auth.signature import SigningKey
from core_broker.remoting.bodies import DataVersion
from core_broker.yaml_nodes import (
    YamlError,
    boolean,
    compose,
    integer,
    is_null,
    items,
    key_text,
    line_of,
    members,
    raw_text,
)

#: Maximum accounts of one file.
ACCOUNTS_MAX: Final = 10_000
#: Maximum warnings of one file.
WARNINGS_MAX: Final = 100

WHITE_LIST: Final = "globalWhiteRemoteAddresses"
ACCOUNTS: Final = "accounts"
DATA_VERSION: Final = "dataVersion"
_NOWHERE: Final = parse_pattern("")
#: Keys of an account, in the order of RocketMQ's own files.
ACCOUNT_KEYS: Final = (
    "accessKey",
    "secretKey",
    "whiteRemoteAddress",
    "admin",
    "defaultTopicPerm",
    "defaultGroupPerm",
    "topicPerms",
    "groupPerms",
)


def read_acl_file(path: str, text: str, loaded_ms: int) -> AclFile:
    """Read one file. Raises RulesError with path, line and account.

    `loaded_ms` is the timestamp of a file without dataVersion.
    """
    reader = _Reader(path, loaded_ms)
    try:
        return reader.read(text)
    except (RulesError, YamlError) as error:
        raise RulesError(f"{path}: {error}") from None


def secret_keys(text: str) -> dict[str, str]:
    """The secret key of each account in the text of a readable file. Raises RulesError."""
    try:
        return _secret_keys(text)
    except YamlError as error:
        raise RulesError(str(error)) from None


def _secret_keys(text: str) -> dict[str, str]:
    root = compose(text)
    parts = {} if root is None else dict(members(root, "the file"))
    keys: dict[str, str] = {}
    for node in items(parts[ACCOUNTS], ACCOUNTS) if ACCOUNTS in parts else ():
        values = dict(members(node, "an account"))
        access_key, secret_key = (
            check_key(name, key_text(values[name], name)[0] if name in values else None)
            for name in ("accessKey", "secretKey")
        )
        keys.setdefault(access_key, secret_key)
    return keys


@dataclass(slots=True)
class _Reader:
    path: str
    loaded_ms: int
    warnings: list[str] = field(default_factory=list)

    def read(self, text: str) -> AclFile:
        root = compose(text)
        if root is None:
            return AclFile(self.path)
        parts = dict(members(root, "the file"))
        for unknown in parts.keys() - {WHITE_LIST, ACCOUNTS, DATA_VERSION}:
            self._warn(f"{line_of(parts[unknown])}unknown key {unknown!r} is ignored.")
        return AclFile(
            self.path,
            self._accounts(parts[ACCOUNTS]) if ACCOUNTS in parts else (),
            self._white_list(parts[WHITE_LIST]) if WHITE_LIST in parts else (),
            self._version(parts.get(DATA_VERSION)),
            tuple(self.warnings),
        )

    def _white_list(self, node: Node) -> tuple[AddressPattern, ...]:
        return tuple(self._pattern(item, WHITE_LIST) for item in items(node, WHITE_LIST))

    def _accounts(self, node: Node) -> tuple[Account, ...]:
        nodes = items(node, ACCOUNTS)
        if len(nodes) > ACCOUNTS_MAX:
            raise RulesError(f"{line_of(node)}more than {ACCOUNTS_MAX} accounts in one file.")
        accounts: dict[str, Account] = {}
        for each in nodes:
            account = self._account(each)
            if account.access_key in accounts:
                twice = f"account {account.access_key} is listed twice; the first counts."
                self._warn(line_of(each) + twice)
            accounts.setdefault(account.access_key, account)
        return tuple(accounts.values())

    def _account(self, node: Node) -> Account:
        values = dict(members(node, "an account"))
        name = values.get("accessKey")
        title = f"account {raw_text(name, 'accessKey')}" if name is not None else "an account"
        try:
            return self._account_of(values, node, title)
        except (RulesError, YamlError) as error:
            raise RulesError(f"{title}: {error}") from None

    def _account_of(self, values: dict[str, Node], node: Node, title: str) -> Account:
        for unknown in values.keys() - set(ACCOUNT_KEYS):
            self._warn(f"{line_of(values[unknown])}{title}: unknown key {unknown!r} is ignored.")
        access_key = self._key(values, "accessKey", node)
        secret_key = self._key(values, "secretKey", node)
        self._judge_secret(secret_key, title)
        white = values.get("whiteRemoteAddress")
        topic_perms, group_perms = (
            self._permissions(values[key], key, title) if key in values else []
            for key in ("topicPerms", "groupPerms")
        )
        return Account(
            access_key=access_key,
            signing_key=SigningKey(secret_key),
            white_address=_NOWHERE if white is None else self._pattern(white, "whiteRemoteAddress"),
            is_admin="admin" in values and boolean(values["admin"], "admin"),
            default_topic_perm=self._default(values, "defaultTopicPerm", title),
            default_group_perm=self._default(values, "defaultGroupPerm", title),
            perms=parse_permissions(topic_perms, group_perms),
            file=self.path,
        )

    def _key(self, values: dict[str, Node], name: str, account: Node) -> str:
        node = values.get(name, account)
        text, warning = key_text(node, name) if name in values else (None, "")
        self._warn(warning)
        with located(node):
            return check_key(name, text)

    def _judge_secret(self, secret_key: str, title: str) -> None:
        if secret_key in EXAMPLE_SECRETS:
            self._warn(f"{title} uses the secret key of RocketMQ's example file; change the key.")
        elif len(secret_key) < SECRET_LENGTH_SAFE:
            self._warn(f"{title}: the secret key has less than {SECRET_LENGTH_SAFE} characters.")

    def _pattern(self, node: Node, name: str) -> AddressPattern:
        text = "" if is_null(node) else raw_text(node, name)
        with located(node):
            pattern = parse_pattern(text)
        if pattern.is_wide:
            self._warn(
                f"{line_of(node)}{name} {pattern.text!r} admits more than 65,536 addresses without "
                "a key."
            )
        return pattern

    def _default(self, values: dict[str, Node], name: str, title: str) -> Perm:
        if name not in values or is_null(values[name]):
            return Perm.DENY
        text = raw_text(values[name], name)
        self._judge_word(text, values[name], title)
        return parse_permission(text)

    def _permissions(self, node: Node, name: str, title: str) -> list[str]:
        texts = []
        for item in items(node, name):
            text = raw_text(item, name)
            with located(item):
                _, word = split_permission(text)
            self._judge_word(word, item, title)
            texts.append(text)
        return texts

    def _judge_word(self, word: str, node: Node, title: str) -> None:
        if not is_known_permission(word):
            self._warn(f"{line_of(node)}{title}: unknown permission {word!r} counts as DENY.")

    def _version(self, node: Node | None) -> DataVersion:
        versions = [] if node is None else items(node, DATA_VERSION)
        if not versions:
            return DataVersion(self.loaded_ms, 0)
        numbers = {
            name: integer(value, name)
            for name, value in members(versions[0], DATA_VERSION)
            if name in {"counter", "timestamp"}
        }
        return DataVersion(numbers.get("timestamp", self.loaded_ms), numbers.get("counter", 0))

    def _warn(self, warning: str) -> None:
        if warning and len(self.warnings) < WARNINGS_MAX:
            self.warnings.append(warning)


@contextmanager
def located(node: Node) -> Iterator[None]:
    """Put the line of a node before the text of a RulesError."""
    try:
        yield
    except RulesError as error:
        raise RulesError(f"{line_of(node)}{error}") from None
