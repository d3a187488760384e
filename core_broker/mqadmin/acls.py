"""Access control lists of RocketMQ 5.3 (ACL 2.0): codes 3006 to 3010.

Compatible with CreateAclSubCommand to CopyAclsSubCommand of RocketMQ 5.3.3.
"""

from collections.abc import Callable, Iterable
from typing import Any

from core_broker.mqadmin.command import F, command, split_list, text
from core_broker.mqadmin.lookup import masters, masters_and_slaves
from core_broker.mqadmin.output import Column, Record, Table
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.remoting.bodies import AclInfo, PolicyEntryInfo, PolicyInfo


def _java_list(values: Iterable[str] | None) -> str:
    return "null" if values is None else f"[{', '.join(values)}]"


_ACLS = Table(
    "%-16s  %-10s  %-22s  %-20s  %-24s  %-10s",
    [
        Column("subject", "#Subject"),
        Column("policyType", "#PolicyType"),
        Column("resource", "#Resource"),
        Column("actions", "#Actions", _java_list),
        Column("sourceIps", "#SourceIp", _java_list),
        Column("decision", "#Decision"),
    ],
)


def _entries(verb: str) -> Callable[[F], F]:
    """Add the options of createAcl and updateAcl: the targets, the subject and its entries."""
    options = (
        broker_or_cluster(f"{verb} acl to which broker", f"{verb} acl to which cluster"),
        text(
            "-s",
            "--subject",
            required=True,
            help=f"the subject of acl to {verb}, eg: User:alice",
        ),
        text(
            "-r",
            "--resources",
            required=True,
            help=f"resources of acl to {verb}, eg: Topic:a,Group:b*",
        ),
        text("-a", "--actions", required=True, help=f"the actions of acl to {verb}, eg: Pub,Sub"),
        text(
            "-d", "--decision", required=True, help=f"the decision of acl to {verb}: Allow or Deny"
        ),
        text(
            "-i", "--sourceIp", help=f"the sourceIps of acl to {verb}, eg: 10.0.0.1,192.168.0.0/16"
        ),
    )

    def add(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return add


@command("createAcl")
@_entries("create")
async def create_acl(
    session: Session, *, broker_addr: str | None, cluster_name: str | None, **entries: Any
) -> None:
    """Adds Custom entries on one broker, or on all masters and slaves of a cluster."""
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:
        await session.admin.create_acl(addr, _acl(**entries))
        session.out.show_text(f"create acl to {addr} success.")
    session.out.show_json({"subject": entries["subject"], "created": addrs})


@command("updateAcl")
@_entries("update")
async def update_acl(
    session: Session, *, broker_addr: str | None, cluster_name: str | None, **entries: Any
) -> None:
    """Replaces the Custom entries of the resources; adds missing entries, like createAcl."""
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:
        await session.admin.update_acl(addr, _acl(**entries))
        session.out.show_text(f"update acl to {addr} success.")
    session.out.show_json({"subject": entries["subject"], "updated": addrs})


@command("deleteAcl", destructive=True)
@broker_or_cluster("delete acl from which broker", "delete acl from which cluster")
@text("-s", "--subject", required=True, help="the subject of acl to delete, eg: User:alice")
@text("-r", "--resources", help="the resource of acl to delete | default: the subject's whole list")
@text("--policyType", help="the policy with the resource: Custom or Default | default Custom")
async def delete_acl(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    subject: str,
    resources: str | None,
    policy_type: str | None,
) -> None:
    """Deletes one entry, or without -r the whole list of the subject."""
    addrs = await masters_and_slaves(session.admin, broker_addr, cluster_name)
    for addr in addrs:

        async def delete(addr: str = addr) -> None:
            await session.admin.delete_acl(addr, subject, resources or "", policy_type or "")

        await session.change(f"delete acl to {addr} success.", delete)
    session.out.show_json({"subject": subject, "deleted": addrs, "dryRun": session.dry_run})


@command("getAcl")
@broker_or_cluster("get acl for which broker", "get acl for specified cluster")
@text("-s", "--subject", required=True, help="the subject of acl to get, eg: User:alice")
async def get_acl(
    session: Session, broker_addr: str | None, cluster_name: str | None, subject: str
) -> None:
    """Asks one broker, or the first master of a cluster that has the list."""
    for addr in await masters(session.admin, broker_addr, cluster_name):
        acl = await session.admin.acl(addr, subject)
        if acl is not None:
            _show(session, addr, [acl])
            return
    _show(session, None, [])


@command("listAcl")
@broker_or_cluster("list acl for which broker.", "list acl for specified cluster.")
@text("-s", "--subject", help="the subject of acl to filter: a part of the name")
@text("-r", "--resource", help="the resource of acl to filter: a part of the name")
async def list_acl(
    session: Session,
    broker_addr: str | None,
    cluster_name: str | None,
    subject: str | None,
    resource: str | None,
) -> None:
    """Asks one broker, or the first master of a cluster that has matching lists."""
    for addr in await masters(session.admin, broker_addr, cluster_name):
        acls = await session.admin.acls(addr, subject or "", resource or "")
        if acls:
            _show(session, addr, acls)
            return
    _show(session, None, [])


@command("copyAcl")
@text("-f", "--fromBroker", required=True, help="the source broker that the acls copy from")
@text("-t", "--toBroker", required=True, help="the target broker that the acls copy to")
@text("-s", "--subjects", help="the subject list of acl to copy.")
async def copy_acl(
    session: Session, from_broker: str, to_broker: str, subjects: str | None
) -> None:
    """Copies the lists of the named subjects, or all lists; the users must exist at the target."""
    admin = session.admin
    if subjects:
        named = [await admin.acl(from_broker, subject) for subject in split_list(subjects)]
        acls = [acl for acl in named if acl is not None]
    else:
        acls = await admin.acls(from_broker)
    copied = []
    for acl in acls:
        known = await admin.acl(to_broker, acl.subject or "")
        await (admin.create_acl if known is None else admin.update_acl)(to_broker, acl)
        copied.append(acl.subject)
        session.out.show_text(
            f"copy acl of {acl.subject} from {from_broker} to {to_broker} success."
        )
    session.out.show_json({"from": from_broker, "to": to_broker, "copied": copied})


def _acl(
    subject: str, resources: str, actions: str, decision: str, source_ip: str | None
) -> AclInfo:
    entries = [
        PolicyEntryInfo(
            resource=resource,
            actions=split_list(actions),
            decision=decision,
            source_ips=split_list(source_ip) or None,
        )
        for resource in split_list(resources)
    ]
    return AclInfo(subject=subject, policies=[PolicyInfo(policy_type="Custom", entries=entries)])


def _show(session: Session, addr: str | None, acls: Iterable[AclInfo]) -> None:
    records: list[Record] = [
        {
            "subject": acl.subject,
            "policyType": policy.policy_type,
            "resource": entry.resource,
            "actions": entry.actions,
            "sourceIps": entry.source_ips,
            "decision": entry.decision,
        }
        for acl in acls
        for policy in acl.policies or ()
        for entry in policy.entries or ()
    ]
    # Java prints no header without entries.
    session.out.show({"brokerAddr": addr, "acls": records}, _ACLS.lines(records) if records else [])
