"""checkAccess: whether an account may publish to a topic or consume from it, and why.

Decides with the broker's own code (`core_broker.auth.explanation`) over the answers of the broker:
settings (26), user and list (3004, 3009) for ACL 2.0, accounts (54) for ACL 1.0. A broker without
the setting authorizationMode is Apache's, and is explained with the decisions of RocketMQ 5.3.3.
"""

import json
from collections.abc import Iterator, Mapping
from ipaddress import ip_address
from pathlib import Path
from typing import Any, Final

import click

from core_broker.auth.acl2.bodies import tables_of
from core_broker.auth.acl2.demands import Mode
from core_broker.auth.acl2.model import SUBJECT_PREFIX
from core_broker.auth.acl2.rules import Acl2Rules, RuleSettings
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.explanation import (
    DecidingRule,
    ExplainableRules,
    Explanation,
    Question,
    explain,
)
from core_broker.errors import ClientError, RequestRefused
from core_broker.mqadmin.command import command, text
from core_broker.mqadmin.lookup import masters_and_slaves
from core_broker.mqadmin.output import Column, Table
from core_broker.mqadmin.session import Session
from core_broker.mqadmin.targets import broker_or_cluster
from core_broker.remoting.bodies import encode_body
from core_broker.remoting.codes import ResponseCode

#: Bytes read of an ACL file.
ACL_FILE_BYTES_MAX: Final = 16 * 1024 * 1024
_OFF: Final = DecidingRule(
    "", "aclEnable, authenticationEnabled and authorizationEnabled are false"
)

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
    documents = []
    for addr in await masters_and_slaves(session.admin, broker_addr, cluster_name):
        rules = await _rules(session, addr, username, content)
        explanation = explain(rules, question) if rules else Explanation(True, (_OFF,))
        documents.append(_document(addr, explanation))
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
    if action.lower() not in {"pub", "sub"}:
        raise click.UsageError(f"{action!r} is neither Pub nor Sub.", context)
    if (action.lower() == "sub") != (group is not None):
        raise click.UsageError(
            "Give -g/--groupName with -a Sub, and only with -a Sub: a consumer needs Sub on its "
            "topic and on its group.",
            context,
        )
    try:
        ip_address(source_ip)
    except ValueError:
        raise click.UsageError(f"{source_ip!r} is no IP address.", context) from None
    return Question(username, source_ip, topic, group or "")


def _file_text(file: str) -> str:
    try:
        with Path(file).open(encoding="utf-8") as stream:
            content = stream.read(ACL_FILE_BYTES_MAX + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ClientError(f"{file} cannot be read: {error}.") from None
    if len(content) > ACL_FILE_BYTES_MAX:
        raise ClientError(f"{file} has more than {ACL_FILE_BYTES_MAX} bytes.")
    return content


async def _rules(
    session: Session, addr: str, username: str, content: str | None
) -> list[ExplainableRules]:
    """Return the rules of a broker that are in force, 1.0 before 2.0."""
    settings = await session.admin.broker_config(addr)
    rules: list[ExplainableRules] = []
    if _is_on(settings, "aclEnable"):
        rules.append(await _acl1(session, addr, settings, content))
    if _is_on(settings, "authenticationEnabled") or _is_on(settings, "authorizationEnabled"):
        rules.append(await _acl2(session, addr, settings, username))
    return rules


async def _acl1(
    session: Session, addr: str, settings: Mapping[str, str], content: str | None
) -> ExplainableRules:
    # The YAML library is imported only where it is used.
    from core_broker.auth.acl1.demands import Mode as Acl1Mode
    from core_broker.auth.acl1.faults import RulesError
    from core_broker.auth.acl1.reading import read_acl_file
    from core_broker.auth.acl1.rules import Acl1Rules

    if content is None:
        content = await _accounts(session, addr)
    try:
        file = read_acl_file(addr, content, 0)
    except RulesError as error:
        raise ClientError(f"The accounts cannot be read: {error}") from None
    is_strict = settings.get("aclJavaChecks") == "false"
    mode = Acl1Mode.STRICT if is_strict else Acl1Mode.JAVA
    accounts = {account.access_key: account for account in file.accounts}
    return Acl1Rules(0, mode, accounts, file.white_list)


async def _accounts(session: Session, addr: str) -> str:
    """Return the accounts of a broker in the form of plain_acl.yml; JSON is YAML."""
    try:
        config = await session.admin.access_accounts(addr)
    except RequestRefused as error:
        raise ClientError(
            f"The broker at {addr} does not return its accounts ({error.remark}). Give the "
            "broker's plain_acl.yml with --aclFile."
        ) from None
    accounts = json.loads(encode_body(config.plain_access_configs or []))
    return json.dumps(
        {
            "globalWhiteRemoteAddresses": config.global_white_addrs or [],
            "accounts": [
                {key: value for key, value in account.items() if value is not None}
                for account in accounts
            ],
        },
        ensure_ascii=False,
    )


async def _acl2(
    session: Session, addr: str, settings: Mapping[str, str], username: str
) -> ExplainableRules:
    tables = AccessTables()
    user = await session.admin.user(addr, username)
    if user is not None:
        acl = await session.admin.acl(addr, SUBJECT_PREFIX + username)
        tables, unreadable = tables_of(user, acl)
        for resource in unreadable:
            session.warn(f"{addr}: an entry about {resource!r} cannot be read and is ignored")
    return Acl2Rules(
        tables,
        RuleSettings(
            cluster=settings.get("brokerClusterName", ""),
            is_authorizing=_is_on(settings, "authorizationEnabled"),
            authentication_whitelist=_codes(settings.get("authenticationWhitelist", "")),
            authorization_whitelist=_codes(settings.get("authorizationWhitelist", "")),
            mode=Mode.STRICT if settings.get("authorizationMode") == "STRICT" else Mode.JAVA,
        ),
        0,
    )


def _is_on(settings: Mapping[str, str], key: str) -> bool:
    return settings.get(key, "").lower() == "true"


def _codes(words: str) -> frozenset[int]:
    return frozenset(int(word) for word in words.split(",") if word.strip().isdecimal())


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
