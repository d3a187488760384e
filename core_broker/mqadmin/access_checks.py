"""checkAccess: whether an account may publish to a topic or consume from it, and why.

Decides with the broker's own code (`core_broker.auth.explanation`) over the answers of the broker
(`core_broker.client.admin.access_rules`).
"""

from collections.abc import Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import click

from core_broker.auth.explanation import Explanation, Question
from core_broker.client.admin.access_rules import AccountsNotReturned, broker_rules
from core_broker.errors import ClientError
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.lookup import masters_and_slaves
from core_broker.mqadmin.output import Column, Table
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.remoting.codes import RequestCode, ResponseCode

#: Bytes read of an ACL file.
ACL_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
_RULES = Table(
    "%-22s  %-9s  %-24s  %s",
    [
        Column("brokerAddr", "#Broker Addr"),
        Column("decision", "#Decision"),
        Column("resource", "#Resource"),
        Column("rule", "#Rule"),
    ],
)


@command("checkAccess")
@broker_or_cluster("explain which broker", "explain all brokers of which cluster")
@text("-u", "--username", required=True, help="the user, or the access key of ACL 1.0")
@text("-t", "--topic", required=True, help="topic name")
@text("-a", "--action", required=True, help="Pub: publish; Sub: consume")
@text("-g", "--groupName", help="the consumer group, with -a Sub")
@text("-i", "--sourceIp", required=True, help="IP address of the client")
@text("--aclFile", help="plain_acl.yml of the broker, if the broker does not return accounts")
async def check_access(
    session: Session,
    *,
    broker_addr: str | None,
    cluster_name: str | None,
    username: str,
    topic: str,
    action: str,
    group_name: str | None,
    source_ip: str,
    acl_file: str | None,
) -> None:
    """Prints the decision of each broker with the deciding rule; code and remark of a refusal.

    The signature counts as right. Brokers do not replicate accounts, so decisions may differ.
    """
    question = _question(username, topic, action, group_name, source_ip)
    content = None if acl_file is None else _file_text(acl_file)
    documents = [
        _document(addr, await _explained(session, addr, question, content))
        for addr in await masters_and_slaves(session.admin, broker_addr, cluster_name)
    ]
    request = {
        "userName": username,
        "topic": topic,
        "action": "Sub" if question.group else "Pub",
        "groupName": group_name,
        "sourceIp": source_ip,
    }
    session.out.show(request | {"brokers": documents}, _lines(documents))


def _question(
    username: str, topic: str, action: str, group: str | None, source_ip: str
) -> Question:
    context = click.get_current_context(silent=True)
    if not topic:
        raise click.UsageError("The topic is empty.", context)
    if action.lower() not in {"pub", "sub"}:
        raise click.UsageError(f"{action!r} is neither Pub nor Sub.", context)
    if (action.lower() == "sub") != bool(group):
        raise click.UsageError(
            "Give -g/--groupName with -a Sub, and only with -a Sub: a consumer needs Sub on its "
            "topic and on its group.",
            context,
        )
    try:
        ip_address(source_ip)
    except ValueError:
        raise click.UsageError(f"{source_ip!r} is no IP address.", context) from None
    code = RequestCode.PULL_MESSAGE if group else RequestCode.SEND_MESSAGE_V2
    return Question(username, source_ip, topic, group or "", code)


async def _explained(
    session: Session, addr: str, question: Question, acl_file: str | None
) -> Explanation:
    try:
        found = await broker_rules(session.admin, addr, question.account, acl_file)
    except AccountsNotReturned as error:
        raise ClientError(f"{error} Give the broker's plain_acl.yml with --aclFile.") from None
    for resource in found.unreadable:
        session.warn(f"{addr}: an entry about {resource!r} cannot be read and is ignored")
    return found.explain(question)


def _file_text(file: str) -> str:
    try:
        with Path(file).open(encoding="utf-8") as stream:
            content = stream.read(ACL_FILE_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{file} cannot be read: {error}.") from None
    if len(content) > ACL_FILE_BYTES_MAX:
        raise ClientError(f"{file} has more than {ACL_FILE_BYTES_MAX} bytes.")
    return content


def _document(addr: str, explanation: Explanation) -> dict[str, Any]:
    return {
        "brokerAddr": addr,
        "allowed": explanation.is_allowed,
        "rules": [rule._asdict() for rule in explanation.rules],
        "code": explanation.code,
        "remark": explanation.remark,
    }


def _lines(documents: list[dict[str, Any]]) -> Iterator[str]:
    yield _RULES.header()
    for document in documents:
        decision = "allowed" if document["allowed"] else "refused"
        for rule in document["rules"]:
            yield _RULES.row(
                {
                    "brokerAddr": document["brokerAddr"],
                    "decision": decision,
                    "resource": rule["resource"] or "-",
                    "rule": rule["rule"],
                }
            )
        if not document["allowed"]:
            code = ResponseCode(document["code"])
            yield f"code {code.value} {code.name}: {document['remark']}"
