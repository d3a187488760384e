"""Access control (ACL 1.0): accounts, white list, versions of the ACL files (codes 50-53)."""

from core_broker.client.admin import AccessAccount
from core_broker.mqadmin.command import command, flag, text
from core_broker.mqadmin.java_texts import account_text
from core_broker.mqadmin.lookup import masters, masters_and_slaves
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.mqadmin.times import date_time

_VERSIONS = Table(
    "%-16s  %-22s  %-22s  %-20s  %-22s  %-22s",
    [
        Column("clusterName", "#Cluster Name"),
        Column("brokerName", "#Broker Name"),
        Column("brokerAddr", "#Broker Addr"),
        Column("aclFile", "#AclFilePath"),
        Column("counter", "#AclConfigVersionNum"),
        Column("timestamp", "#AclLastUpdateTime", date_time),
    ],
)


@command("updateAclConfig")
@broker_or_cluster(
    "update acl config file to which broker", "update acl config file to which cluster"
)
@text("-a", "--accessKey", required=True, help="set accessKey in acl config file")
@text("-s", "--secretKey", required=True, help="set secretKey in acl config file")
@flag("-m", "--admin", default=False, help="set admin flag in acl config file")
@text("-w", "--whiteRemoteAddress", help="set white ip Address for account in acl config file")
@text("-i", "--defaultTopicPerm", help="set default topicPerm in acl config file")
@text("-u", "--defaultGroupPerm", help="set default GroupPerm in acl config file")
@text("-t", "--topicPerms", help="set topicPerms list,eg: topicA=DENY,topicD=SUB")
@text("-g", "--groupPerms", help="set groupPerms list,eg: groupD=DENY,groupD=SUB")
async def update_acl_config(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    access_key: str,
    secret_key: str,
    admin: bool,
    white_remote_address: str | None,
    default_topic_perm: str | None,
    default_group_perm: str | None,
    topic_perms: str | None,
    group_perms: str | None,
) -> None:
    """Works on one broker, or on all masters and slaves of a cluster.

    -a and -s are the keys of the account. The key that signs the request comes from conf/tools.yml
    or from MQADMIN_ACCESS_KEY and MQADMIN_SECRET_KEY.
    """
    account = AccessAccount(
        access_key,
        secret_key,
        admin=admin,
        white_remote_address=white_remote_address,
        default_topic_perm=default_topic_perm,
        default_group_perm=default_group_perm,
        topic_perms=_list(topic_perms),
        group_perms=_list(group_perms),
    )
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:
        await session.admin.update_access_account(addr, account)
        session.out.show_text(f"create or update plain access config to {addr} success.")
    session.out.show({"accessKey": access_key, "updated": addrs}, [account_text(account)])


@command("deleteAclConfig", destructive=True)
@broker_or_cluster(
    "delete acl config account from which broker", "delete acl config account from which cluster"
)
@text(
    "-a",
    "--accessKey",
    required=True,
    help="set accessKey in acl config file for deleting which account",
)
async def delete_acl_config(
    session: Session, broker_addr: str | None, cluster_name: str | None, access_key: str
) -> None:
    """Deletes the account from one broker, or from all masters and slaves of a cluster."""
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:

        async def delete(addr: str = addr) -> None:
            await session.admin.delete_access_account(addr, access_key)

        await session.change(f"delete plain access config account from {addr} success.", delete)
    document = {"accessKey": access_key, "deleted": addrs, "dryRun": session.dry_run}
    session.out.show(document, [f"account's accesskey is:{access_key}"])


@command("updateGlobalWhiteAddr")
@broker_or_cluster(
    "update global white address to which broker", "update global white address to which cluster"
)
@text(
    "-g",
    "--globalWhiteRemoteAddresses",
    required=True,
    help="set globalWhiteRemoteAddress list,eg: 10.10.103.*,192.168.0.*",
)
@text(
    "-p",
    "--aclFileFullPath",
    help="update global white address of specified acl file,eg: /xxx/plain_test.yml",
)
async def update_global_white_addr(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    global_white_remote_addresses: str,
    acl_file_full_path: str | None,
) -> None:
    """Clients at white-listed addresses need no key."""
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:
        await session.admin.update_white_list(
            addr, global_white_remote_addresses, acl_file_full_path
        )
        session.out.show_text(f"update global white remote addresses to {addr} success.")
    addresses = global_white_remote_addresses.split(",")
    session.out.show_json({"globalWhiteRemoteAddresses": addresses, "updated": addrs})


@command("clusterAclConfigVersion")
@broker_or_cluster(
    "query acl config version for which broker", "query acl config version for specified cluster"
)
async def cluster_acl_config_version(
    session: Session, broker_addr: str | None, cluster_name: str | None
) -> None:
    """Lists each ACL file of one broker, or of each master of a cluster."""
    records: list[Record] = []
    for addr in await masters(session.admin, broker_addr, cluster_name):
        reply = await session.admin.access_version(addr)
        broker = {
            "clusterName": reply.cluster,
            "brokerName": reply.broker_name,
            "brokerAddr": reply.broker_addr,
        }
        for file, version in sorted(reply.versions.items()):
            state = {"counter": version.counter, "timestamp": version.timestamp}
            records.append(broker | {"aclFile": file} | state)
    # Java prints no header for one broker.
    header = [] if broker_addr else [_VERSIONS.header()]
    owner = "broker's" if broker_addr else "cluster's"
    result = f"get {owner} plain access config version success."
    lines = [*header, *map(_VERSIONS.row, records), result]
    session.out.show({"aclFiles": records}, lines)


def _list(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]
