"""The access rules of a broker, made from the answers of the broker.

Settings (26) say which generations are in force; users and lists (3004, 3009) make the rules of
ACL 2.0, accounts (54) those of ACL 1.0. A broker without the setting authorizationMode is
Apache's, and gets the decisions of RocketMQ 5.3.3.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from core_broker.auth.acl2.bodies import tables_of
from core_broker.auth.acl2.demands import Mode
from core_broker.auth.acl2.model import SUBJECT_PREFIX
from core_broker.auth.acl2.rules import Acl2Rules, RuleSettings
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.explanation import (
    DecidingRule,
    ExplainableRules,
    Explanation,
    Generation,
    Question,
    explain,
)
from core_broker.client.admin import AdminClient
from core_broker.errors import ClientError, RequestRefused
from core_broker.remoting.bodies import AccessEntry, PlainAccessConfig, encode_body

SWITCHED_OFF = DecidingRule(
    "", "aclEnable, authenticationEnabled and authorizationEnabled are false"
)


#: Stands for a secret key that the broker does not return; never leaves the process.
_NO_SECRET: Final = "not returned"  # noqa: S105


class AccountsNotReturned(ClientError):
    """A broker with ACL 1.0 does not return its accounts; `addr` and the broker's `remark`."""

    def __init__(self, addr: str, remark: str) -> None:
        super().__init__(f"The broker at {addr} does not return its accounts ({remark}).")
        self.addr = addr
        self.remark = remark


class BrokerRules(NamedTuple):
    """The rules in force on a broker, about one account."""

    #: ACL 1.0 before ACL 2.0; empty: the broker admits everybody.
    rules: tuple[ExplainableRules, ...]
    #: The generation of each of the rules.
    generations: tuple[Generation, ...]
    #: Resources of entries that no request could match, and that have no effect.
    unreadable: tuple[str, ...] = ()

    def explain(self, question: Question) -> Explanation:
        """Return the broker's decision about a question about the account."""
        if not self.rules:
            return Explanation(True, (SWITCHED_OFF,))
        return explain(self.rules, question)


async def broker_rules(
    admin: AdminClient, addr: str, account: str, acl_file: str | None = None
) -> BrokerRules:
    """Ask a broker for the rules about an account; five requests at most.

    `acl_file` is the text of the broker's plain_acl.yml, in place of the broker's accounts. Raises
    AccountsNotReturned, ClientError for accounts that cannot be read, and RequestRefused.
    """
    settings = await admin.broker_config(addr)
    rules: list[tuple[Generation, ExplainableRules]] = []
    unreadable: tuple[str, ...] = ()
    if _is_on(settings, "aclEnable"):
        text = acl_file
        if text is None:
            text = await _account_file(admin, addr, settings, account)
        rules.append((Generation.ACL1, _acl1(addr, settings, text)))
    if _is_on(settings, "authenticationEnabled") or _is_on(settings, "authorizationEnabled"):
        tables = AccessTables()
        user = await admin.user(addr, account) if account else None
        if user is not None:
            acl = await admin.acl(addr, SUBJECT_PREFIX + account)
            tables, resources = tables_of(user, acl)
            unreadable = tuple(resources)
        rules.append((Generation.ACL2, Acl2Rules(tables, _rule_settings(settings), 0)))
    return BrokerRules(
        tuple(each for _, each in rules), tuple(generation for generation, _ in rules), unreadable
    )


def _acl1(addr: str, settings: Mapping[str, str], text: str) -> ExplainableRules:
    # The YAML library is imported only where it is used.
    from core_broker.auth.acl1.demands import Mode as Acl1Mode
    from core_broker.auth.acl1.faults import RulesError
    from core_broker.auth.acl1.reading import read_acl_file
    from core_broker.auth.acl1.rules import Acl1Rules

    try:
        file = read_acl_file(addr, text, 0)
    except RulesError as error:
        raise ClientError(f"The accounts cannot be read: {error}") from None
    is_strict = settings.get("aclJavaChecks") == "false"
    mode = Acl1Mode.STRICT if is_strict else Acl1Mode.JAVA
    accounts = {account.access_key: account for account in file.accounts}
    return Acl1Rules(0, mode, accounts, file.white_list)


async def _account_file(
    admin: AdminClient, addr: str, settings: Mapping[str, str], account: str
) -> str:
    """Return the account and the white lists of a broker as plain_acl.yml; JSON is YAML."""
    accounts: Sequence[AccessEntry | PlainAccessConfig]
    try:
        if "aclJavaChecks" in settings:  # a Gantry broker
            inventory = await admin.access_inventory(addr)
            accounts = inventory.accounts
            patterns = [
                pattern
                for file in inventory.files
                for pattern in file.global_white_remote_addresses
            ]
        else:
            config = await admin.access_accounts(addr)
            accounts = config.plain_access_configs or []
            patterns = config.global_white_addrs or []
    except RequestRefused as error:
        raise AccountsNotReturned(addr, error.remark) from None
    asked = [each for each in accounts if each.access_key == account]
    documents = [
        {"secretKey": _NO_SECRET}
        | {key: value for key, value in json.loads(encode_body(each)).items() if value is not None}
        for each in asked
    ]
    return json.dumps(
        {"globalWhiteRemoteAddresses": patterns, "accounts": documents}, ensure_ascii=False
    )


def _rule_settings(settings: Mapping[str, str]) -> RuleSettings:
    return RuleSettings(
        cluster=settings.get("brokerClusterName", ""),
        is_authorizing=_is_on(settings, "authorizationEnabled"),
        authentication_whitelist=_codes(settings.get("authenticationWhitelist", "")),
        authorization_whitelist=_codes(settings.get("authorizationWhitelist", "")),
        mode=Mode.STRICT if settings.get("authorizationMode") == "STRICT" else Mode.JAVA,
    )


def _is_on(settings: Mapping[str, str], key: str) -> bool:
    return settings.get(key, "").lower() == "true"


def _codes(words: str) -> frozenset[int]:
    return frozenset(int(word) for word in words.split(",") if word.strip().isdecimal())
