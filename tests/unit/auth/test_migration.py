"""Users of ACL 2.0 from accounts of ACL 1.0."""

from core_broker.auth.acl1.reading import read_acl_file, secret_keys
from core_broker.auth.acl2.bodies import acl_info
from core_broker.auth.acl2.model import User
from core_broker.auth.acl2.rules import Acl2Rules, RuleSettings
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.contracts import Action, Established, Identity, ResourceKind
from core_broker.auth.migration import Migrated, migrated

#: Accounts with every kind of permission.
ACCOUNTS = """
globalWhiteRemoteAddresses: [10.10.103.*]
accounts:
- accessKey: producers
  secretKey: secret-of-producers
  defaultTopicPerm: PUB
  defaultGroupPerm: DENY
  topicPerms: [topicA=DENY, topicB=PUB|SUB, topicC=SUB, topicC=PUB]
  groupPerms: [groupA=DENY, groupB=SUB]
- accessKey: operators
  secretKey: 1234567890
  admin: true
  whiteRemoteAddress: 192.168.1.*
- accessKey: silent-one
  secretKey: secret-of-silent
- accessKey: "colon\\tname"
  secretKey: secret-of-colon
"""


def migrate(tables: AccessTables, text: str = ACCOUNTS) -> Migrated:
    file = read_acl_file("plain_acl.yml", text, 0)
    return migrated(tables, file.accounts, file.white_list, secret_keys(text))


def entries(tables: AccessTables, name: str) -> list[str]:
    subject = f"User:{name}"
    return [
        f"{policy.policy_type} {entry.resource} {','.join(entry.actions or [])} {entry.decision}"
        for policy in acl_info(subject, tables.acls[subject]).policies or []
        for entry in policy.entries or []
    ]


def test_permissions_become_entries() -> None:
    tables = migrate(AccessTables()).tables
    assert entries(tables, "producers") == [
        "Custom Topic:topicA All Deny",
        "Custom Topic:topicB Pub,Sub Allow",
        "Custom Topic:topicC Pub Allow",
        "Custom Group:groupA All Deny",
        "Custom Group:groupB Sub Allow",
        "Default Topic:* Pub Allow",
        "Default Group:* All Deny",
    ]
    assert entries(tables, "silent-one") == ["Default Topic:* All Deny", "Default Group:* All Deny"]
    operators = tables.users["operators"]
    assert operators.is_super
    assert operators.password == "1234567890", "a number in YAML is its text"
    assert "User:operators" not in tables.acls


def test_the_decisions_are_those_of_the_accounts() -> None:
    rules = Acl2Rules(migrate(AccessTables()).tables, RuleSettings("C"), 1)
    producers = Identity("producers", is_admin=False, how=Established.SIGNATURE)

    def may(kind: ResourceKind, name: str, action: Action) -> bool:
        return rules.may(producers, "10.0.0.1", kind, name, action).is_allowed

    assert may(ResourceKind.TOPIC, "other", Action.PUB)
    assert not may(ResourceKind.TOPIC, "other", Action.SUB)
    assert not may(ResourceKind.TOPIC, "topicA", Action.PUB)
    assert may(ResourceKind.TOPIC, "topicB", Action.SUB)
    assert may(ResourceKind.GROUP, "groupB", Action.SUB)
    assert not may(ResourceKind.GROUP, "other", Action.SUB)


def test_what_is_dropped_is_reported_without_secrets() -> None:
    result = migrate(AccessTables())
    assert result.created == ("producers", "operators", "silent-one")
    text = "\n".join(result.warnings)
    assert "operators: whiteRemoteAddress is dropped" in text
    assert "10.10.103.*" in text
    assert "becomes no user" in text
    assert "secret-of" not in text
    assert "1234567890" not in text


def test_present_users_stay_as_they_are() -> None:
    present = AccessTables({"producers": User("producers", "changed since")}, {})
    result = migrate(present)
    assert result.tables.users["producers"] == present.users["producers"]
    assert "User:producers" not in result.tables.acls
    assert migrate(result.tables) == Migrated(result.tables, (), result.warnings[1:2])


def test_an_account_without_its_secret_is_left_out() -> None:
    file = read_acl_file("plain_acl.yml", ACCOUNTS, 0)
    result = migrated(AccessTables(), file.accounts, (), {})
    assert (result.created, dict(result.tables.users)) == ((), {})
    assert len(result.warnings) == len(file.accounts)
