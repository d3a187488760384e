"""Access control of RocketMQ 4 (ACL 1.0): accounts, white list, versions of the files (50-54).

Brokers answer the codes only with aclEnable=true; RocketMQ 5.3.3 and later refuse the codes.
Gantry brokers also answer 60004 and 60005, which need no secret keys.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from core_broker.client.admin.base import AdminBase
from core_broker.remoting.bodies import (
    AccessInventoryBody,
    ClusterAclConfig,
    DataVersion,
    PlainAccessConfig,
    decode_body,
    encode_body,
)
from core_broker.remoting.codes import RequestCode
from core_broker.remoting.headers import (
    CreateAccessConfigRequestHeader,
    DeleteAccessConfigRequestHeader,
    GetBrokerAclConfigResponseHeader,
    UpdateAccessAccountRequestHeader,
    UpdateGlobalWhiteAddrsConfigRequestHeader,
)


@dataclass(frozen=True, slots=True)
class AccessAccount:
    """An account of plain_acl.yml; None keeps the broker's value. Permissions are DENY, PUB, SUB
    and PUB|SUB; permissions of topics and groups are written name=permission."""

    access_key: str
    secret_key: str | None = None
    admin: bool = False
    white_remote_address: str | None = None
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: Sequence[str] | None = None
    group_perms: Sequence[str] | None = None


@dataclass(frozen=True, slots=True)
class AccessVersion:
    """The versions of a broker's access files."""

    cluster: str
    broker_name: str
    broker_addr: str
    #: Versions by file path on the broker's machine.
    versions: dict[str, DataVersion]


class AccessAdmin(AdminBase):
    async def update_access_account(self, addr: str, account: AccessAccount) -> None:
        """Create or change an account on one broker."""
        header = CreateAccessConfigRequestHeader(
            access_key=account.access_key,
            secret_key=account.secret_key,
            white_remote_address=account.white_remote_address,
            admin=account.admin,
            default_topic_perm=account.default_topic_perm,
            default_group_perm=account.default_group_perm,
            topic_perms=_joined(account.topic_perms),
            group_perms=_joined(account.group_perms),
        )
        await self._ask(addr, RequestCode.UPDATE_AND_CREATE_ACL_CONFIG, header)

    async def put_access_account(self, addr: str, account: PlainAccessConfig) -> None:
        """Create or change an account on one Gantry broker; the broker must offer the code.

        Absent fields keep their values, the secret key too; empty lists and texts replace.
        """
        header = UpdateAccessAccountRequestHeader(access_key=account.access_key or "")
        body = encode_body(account)
        await self._ask(addr, RequestCode.UPDATE_ACCESS_ACCOUNT, header, body)

    async def access_inventory(self, addr: str) -> AccessInventoryBody:
        """Accounts without secret keys, and white lists by file, of one Gantry broker; the broker
        must offer the code."""
        code = RequestCode.GET_ACCESS_INVENTORY
        return await self._ask_body(AccessInventoryBody, addr, code)

    async def delete_access_account(self, addr: str, access_key: str) -> None:
        header = DeleteAccessConfigRequestHeader(access_key=access_key)
        await self._ask(addr, RequestCode.DELETE_ACL_CONFIG, header)

    async def update_white_list(
        self, addr: str, addresses: str, acl_file: str | None = None
    ) -> None:
        """Replace globalWhiteRemoteAddresses in the given file, or in the broker's default file."""
        header = UpdateGlobalWhiteAddrsConfigRequestHeader(
            global_white_addrs=addresses, acl_file_full_path=acl_file
        )
        await self._ask(addr, RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG, header)

    async def access_version(self, addr: str) -> AccessVersion:
        """The versions of a broker's access files; brokers before 4.9 have a single file."""
        answer = await self._ask(addr, RequestCode.GET_BROKER_CLUSTER_ACL_INFO)
        header = answer.header(GetBrokerAclConfigResponseHeader)
        if header.all_acl_file_version:
            text = header.all_acl_file_version.encode()
            versions = decode_body(dict[str, DataVersion], text)
        else:
            versions = {"": decode_body(DataVersion, header.version.encode())}
        return AccessVersion(header.cluster_name, header.broker_name, header.broker_addr, versions)

    async def access_accounts(self, addr: str) -> ClusterAclConfig:
        """All accounts, with secret keys, and the global white list.

        Only brokers before 4.9.8 and 5.2 answer the code: any account could read all secret keys
        (CVE-2024-23321).
        """
        code = RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG
        return await self._ask_body(ClusterAclConfig, addr, code)


def _joined(perms: Sequence[str] | None) -> str | None:
    return None if perms is None else ",".join(perms)
