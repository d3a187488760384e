"""Administration of accounts and white lists (ACL 1.0): codes 50 to 54, 60004 and 60005.

Compatible with RocketMQ 4.9.8's AdminBrokerProcessor and PlainPermissionManager, with these
differences: only administrators reach 50, 51 and 53 (the rules decide), everything is checked
before a write, a change is in force when the answer is sent, no answer repeats a secret key, and 54
is always refused: the code returned all secret keys (CVE-2024-23321).

With aclEnable=false a Java broker throws a NullPointerException: the answers to 50, 51 and 53 have
codes 209, 210 and 211 and no remark, and 52 and 54 stay unanswered until the tool's timeout. Gantry
adds a remark with the reason, and also answers 52 and 54.

Gantry's private codes 60004 and 60005 list accounts without secret keys, and change accounts
without their secret keys. Only administrators reach the two codes.
"""

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from core_broker.auth.acl1.accounts import KEY_LENGTH_MIN, Account
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.permissions import is_known_permission, permission_text
from core_broker.errors import RequestRefused
from core_broker.processors.context import BrokerContext, Handler
from core_broker.remoting.bodies import (
    AccessEntry,
    AccessFile,
    AccessInventoryBody,
    DataVersion,
    PlainAccessConfig,
    decode_request,
    encode_body,
)
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from core_broker.remoting.connection import Connection
from core_broker.remoting.headers import (
    CreateAccessConfigRequestHeader,
    DeleteAccessConfigRequestHeader,
    GetBrokerAclConfigResponseHeader,
    UpdateAccessAccountRequestHeader,
    UpdateGlobalWhiteAddrsConfigRequestHeader,
)

if TYPE_CHECKING:
    from core_broker.auth.acl1.files import Acl1Files

log = logging.getLogger(__name__)

SWITCHED_OFF = "access control is switched off on this broker (aclEnable=false)"
#: Maximum length of an access key, secret key or name in a command, characters.
NAME_LENGTH_MAX = 1_024
#: Maximum number of list items in a command.
ITEMS_MAX = 10_000

_UPDATE_FAILED = ResponseCode.UPDATE_AND_CREATE_ACL_CONFIG_FAILED
_DELETE_FAILED = ResponseCode.DELETE_ACL_CONFIG_FAILED
_ADDRESSES_FAILED = ResponseCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG_FAILED


class AccessProcessor:
    """Changes accounts and white lists, and reports the versions of the files."""

    def __init__(self, ctx: BrokerContext) -> None:
        self._ctx = ctx

    def handlers(self) -> dict[int, Handler]:
        """The handlers by request code."""
        return {
            RequestCode.UPDATE_AND_CREATE_ACL_CONFIG: self.update_account,
            RequestCode.DELETE_ACL_CONFIG: self.delete_account,
            RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG: self.update_white_list,
            RequestCode.GET_BROKER_CLUSTER_ACL_INFO: self.versions,
            RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG: self.accounts,
            RequestCode.GET_ACCESS_INVENTORY: self.inventory,
            RequestCode.UPDATE_ACCESS_ACCOUNT: self.put_account,
        }

    def update_account(self, connection: Connection, request: RemotingCommand) -> None:
        """UPDATE_AND_CREATE_ACL_CONFIG (50): given fields replace, an absent admin is false."""
        files = self._files(_UPDATE_FAILED)
        header = request.header(CreateAccessConfigRequestHeader)
        account = PlainAccessConfig(
            access_key=header.access_key,
            secret_key=header.secret_key,
            white_remote_address=header.white_remote_address,
            admin=header.admin,
            default_topic_perm=header.default_topic_perm,
            default_group_perm=header.default_group_perm,
            topic_perms=_split(header.topic_perms),
            group_perms=_split(header.group_perms),
        )
        values = _account_values(account, keeps_secret=False)
        self._change(
            connection, request, _UPDATE_FAILED, lambda now: files.put_account(values, now)
        )

    def put_account(self, connection: Connection, request: RemotingCommand) -> None:
        """UPDATE_ACCESS_ACCOUNT (60005): as 50, with the fields as the body.

        An account without a secret key in the body keeps its secret key. Empty lists and texts
        replace, too.
        """
        files = self._files(_UPDATE_FAILED)
        account = decode_request(PlainAccessConfig, request.body)
        account.access_key = request.header(UpdateAccessAccountRequestHeader).access_key
        keeps_secret = account.secret_key is None and account.access_key in files.rules.accounts
        values = _account_values(account, keeps_secret=keeps_secret)
        self._change(
            connection, request, _UPDATE_FAILED, lambda now: files.put_account(values, now)
        )

    def delete_account(self, connection: Connection, request: RemotingCommand) -> None:
        """DELETE_ACL_CONFIG (51)."""
        files = self._files(_DELETE_FAILED)
        access_key = request.header(DeleteAccessConfigRequestHeader).access_key
        if access_key not in files.rules.accounts:
            raise RequestRefused(
                _DELETE_FAILED,
                f"The accesskey[{access_key}] corresponding to accessConfig has been deleted "
                "failed.",
            )
        self._change(
            connection, request, _DELETE_FAILED, lambda now: files.drop_account(access_key, now)
        )

    def update_white_list(self, connection: Connection, request: RemotingCommand) -> None:
        """UPDATE_GLOBAL_WHITE_ADDRS_CONFIG (53), only in a file of access control."""
        files = self._files(_ADDRESSES_FAILED)
        header = request.header(UpdateGlobalWhiteAddrsConfigRequestHeader)
        patterns = _patterns(header.global_white_addrs)
        path = header.acl_file_full_path or ""
        self._change(
            connection,
            request,
            _ADDRESSES_FAILED,
            lambda now: files.put_white_list(patterns, path, now),
        )

    def versions(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_BROKER_CLUSTER_ACL_INFO (52)."""
        files = self._files(ResponseCode.SYSTEM_ERROR)
        versions = files.versions
        config = self._ctx.config
        header = GetBrokerAclConfigResponseHeader(
            version=_version_text(versions.get(files.default_path, DataVersion())),
            broker_name=config.broker_name,
            broker_addr=self._ctx.addr,
            cluster_name=config.broker_cluster_name,
            all_acl_file_version=encode_body(versions).decode(),
        )
        return RemotingCommand.response(ResponseCode.SUCCESS, header=header)

    def accounts(self, connection: Connection, request: RemotingCommand) -> NoReturn:
        """GET_BROKER_CLUSTER_ACL_CONFIG (54): refused."""
        self._files(ResponseCode.SYSTEM_ERROR)
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            "no request returns accounts, because the answer has all secret keys (CVE-2024-23321)",
        )

    def inventory(self, connection: Connection, request: RemotingCommand) -> RemotingCommand:
        """GET_ACCESS_INVENTORY (60004): accounts and white lists in force, without secrets."""
        files = self._files(ResponseCode.SYSTEM_ERROR)
        body = AccessInventoryBody(
            default_file=files.default_path,
            files=[
                AccessFile(
                    path=file.path,
                    version=file.version or DataVersion(),
                    global_white_remote_addresses=[each.text for each in file.white_list],
                )
                for file in files.contents
            ],
            accounts=[_entry(account) for account in files.rules.accounts.values()],
            problem=files.problem or None,
        )
        return RemotingCommand.response(body=encode_body(body))

    def _files(self, code: ResponseCode) -> "Acl1Files":
        if self._ctx.acl1 is None:
            raise RequestRefused(code, SWITCHED_OFF)
        return self._ctx.acl1

    def _change(
        self,
        connection: Connection,
        request: RemotingCommand,
        code: ResponseCode,
        change: Callable[[int], Any],
    ) -> None:
        """Change a file in a thread, put the new rules in force, then answer."""
        files = self._files(code)

        async def work() -> RemotingCommand:
            try:
                await asyncio.to_thread(change, self._ctx.now_ms())
            except RulesError as error:
                raise RequestRefused(code, str(error)) from None
            except OSError as error:
                log.warning("access control: a command could not write: %s", error)
                raise RequestRefused(code, f"the file could not be written: {error}") from None
            # A later change may be complete already; its rules contain this change.
            if self._ctx.gate is not None:
                self._ctx.gate.use_acl1(files.rules)
            return RemotingCommand.response(ResponseCode.SUCCESS)

        self._ctx.answer_later(connection, request, work())


def _account_values(account: PlainAccessConfig, *, keeps_secret: bool) -> dict[str, Any]:
    """The given fields of an account, checked. Raises RequestRefused with RocketMQ's texts."""
    values: dict[str, Any] = {"accessKey": account.access_key, "admin": account.admin}
    keys = [account.access_key]
    if not keeps_secret:
        keys.append(account.secret_key)
        values["secretKey"] = account.secret_key
    for key in keys:
        if key is None or len(key) < KEY_LENGTH_MIN:
            _refuse(
                f"The accessKey={account.access_key} and secretKey=*** cannot be null and length "
                "should longer than 6"
            )
        if len(key) > NAME_LENGTH_MAX or not key.isprintable() or key != key.strip():
            _refuse("accessKey and secretKey have printable characters, no blanks at the ends")
    if account.white_remote_address is not None:
        values["whiteRemoteAddress"] = account.white_remote_address
    for name, word in (
        ("defaultTopicPerm", account.default_topic_perm),
        ("defaultGroupPerm", account.default_group_perm),
    ):
        if word is not None:
            _check_word(word, word)
            values[name] = word.strip()
    for name, items in (("topicPerms", account.topic_perms), ("groupPerms", account.group_perms)):
        if items is not None:
            values[name] = _permissions(items)
    return values


def _split(text: str | None) -> list[str] | None:
    return None if text is None else text.split(",")


def _entry(account: Account) -> AccessEntry:
    return AccessEntry(
        access_key=account.access_key,
        file=account.file,
        white_remote_address=account.white_address.text,
        admin=account.is_admin,
        default_topic_perm=permission_text(account.default_topic_perm),
        default_group_perm=permission_text(account.default_group_perm),
        topic_perms=account.topic_perms,
        group_perms=account.group_perms,
    )


def _permissions(texts: list[str]) -> list[str]:
    """The items `name=permission`, checked."""
    items = [text.strip() for text in texts]
    if len(items) > ITEMS_MAX:
        _refuse(f"more than {ITEMS_MAX} permissions in one list")
    if not all(text.isprintable() for text in texts):
        _refuse("topicPerms and groupPerms have printable characters only")
    for item in items:
        name, _, word = (part.strip() for part in item.partition("="))
        if not (name and word) or "=" in word:
            _refuse(
                f"Parse Resource format error for {item}.\n"
                "The expected resource format is 'Res=Perm'. For example: topicA=SUB"
            )
        _check_word(word, item)
    return items


def _check_word(word: str, item: str) -> None:
    if not is_known_permission(word):
        _refuse(
            f"Parse resource permission error for {item}.\n"
            "The expected permissions are 'SUB' or 'PUB' or 'SUB|PUB' or 'PUB|SUB'."
        )


def _patterns(text: str) -> list[str]:
    """The patterns of a comma list; commas in braces belong to a pattern, as in 10.0.0.{1,2}."""
    patterns = [""]
    depth = 0
    for char in text:
        depth += (char == "{") - (char == "}")
        if char == "," and depth <= 0:
            patterns.append("")
        else:
            patterns[-1] += char
    return [pattern.strip() for pattern in patterns if pattern.strip()]


def _version_text(version: DataVersion) -> str:
    return encode_body(version).decode()


def _refuse(reason: str) -> NoReturn:
    raise RequestRefused(_UPDATE_FAILED, reason)
