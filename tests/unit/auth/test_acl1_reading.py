"""Reading of access control files: the schema, YAML 1.1 traps, errors with line and account."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.permissions import Perm
from core_broker.auth.acl1.reading import read_acl_file
from core_broker.auth.signature import SIGNATURE, SigningKey, signed_fields
from core_broker.remoting.bodies import DataVersion

SHIPPED = """\
globalWhiteRemoteAddresses:
  - 10.10.103.*
  - 192.168.0.*

accounts:
  - accessKey: RocketMQ
    secretKey: 12345678
    whiteRemoteAddress:
    admin: false
    defaultTopicPerm: DENY
    defaultGroupPerm: SUB
    topicPerms:
      - topicA=DENY
      - topicB=PUB|SUB
      - topicC=SUB
    groupPerms:
      # the group should convert to retry topic
      - groupA=DENY
      - groupB=PUB|SUB
      - groupC=SUB

  - accessKey: rocketmq2
    secretKey: 12345678
    whiteRemoteAddress: 192.168.1.*
    # if it is admin, it could access all resources
    admin: true
dataVersion:
- counter: 3
  timestamp: 1700000000000
"""
LONG = "a-secret-of-many-characters"


def one(account: str) -> str:
    """A file with one account, given as flow members."""
    return f"accounts:\n- {{accessKey: account1, secretKey: {LONG}, {account}}}\n"


def accepts(text: str, secret: str) -> bool:
    """Whether the first account of a file accepts signatures of the secret."""
    key = read_acl_file("f", text, 0).accounts[0].signing_key
    fields = {"a": "1"}
    signature = SigningKey(secret).sign(signed_fields(fields))
    return key.accepts(fields | {SIGNATURE: signature}, b"")


def test_the_shipped_file() -> None:
    file = read_acl_file("conf/plain_acl.yml", SHIPPED, 7)
    assert [pattern.text for pattern in file.white_list] == ["10.10.103.*", "192.168.0.*"]
    assert file.version == DataVersion(1700000000000, 3)
    plain, admin = file.accounts
    assert (plain.access_key, plain.is_admin, admin.is_admin) == ("RocketMQ", False, True)
    assert plain.perms == {
        "topicA": Perm.DENY,
        "topicB": Perm.PUB | Perm.SUB,
        "topicC": Perm.SUB,
        "%RETRY%groupA": Perm.DENY,
        "%RETRY%groupB": Perm.PUB | Perm.SUB,
        "%RETRY%groupC": Perm.SUB,
    }
    assert (plain.default_topic_perm, plain.default_group_perm) == (Perm.DENY, Perm.SUB)
    assert (plain.white_address.text, admin.white_address.text) == ("", "192.168.1.*")
    assert [warning for warning in file.warnings if "example file" in warning] == [
        "account RocketMQ uses the secret key of RocketMQ's example file; change the key.",
        "account rocketmq2 uses the secret key of RocketMQ's example file; change the key.",
    ]
    assert accepts(SHIPPED, "12345678")


@pytest.mark.parametrize("text", ["", "\n", "# only a comment\n", "---\n", "~", "null"])
def test_a_file_without_content_has_no_version(text: str) -> None:
    file = read_acl_file("f", text, 7)
    assert (file.accounts, file.white_list, file.version) == ((), (), None)


def test_missing_parts_are_empty() -> None:
    file = read_acl_file("f", "accounts:\nglobalWhiteRemoteAddresses: []\ndataVersion:\n", 7)
    assert (file.accounts, file.white_list, file.version) == ((), (), DataVersion(7, 0))


@pytest.mark.parametrize(
    ("written", "secret"),
    [
        ("12345678", "12345678"),
        ("'01234567'", "01234567"),
        ('"12:30:00"', "12:30:00"),
        ("1234567e", "1234567e"),
        ("09876543", "09876543"),  # no octal number
    ],
)
def test_a_secret_is_read_as_written(written: str, secret: str) -> None:
    assert accepts(f"accounts: [{{accessKey: account1, secretKey: {written}}}]", secret)


@pytest.mark.parametrize(
    "written",
    ["01234567", "0x1234567", "1_000_000_0", "12345:30:00", "1234567.0", "2001-01-01", "+1234567"],
)
def test_a_secret_that_rocketmq_4_and_5_read_differently_must_be_quoted(written: str) -> None:
    with pytest.raises(RulesError) as refused:
        read_acl_file("f.yml", f"accounts:\n- accessKey: account1\n  secretKey: {written}\n", 0)
    text = str(refused.value)
    assert text.startswith("f.yml: account account1: line 3: secretKey is read differently")
    assert "quote the value" in text
    assert written not in text


@pytest.mark.parametrize(
    ("written", "is_admin"),
    [
        *[("true", True), ("'true'", True), ("TRUE", True), ("yes", True), ("on", True)],
        *[("false", False), ("no", False), ("'False'", False), ("~", False), ("", False)],
    ],
)
def test_admin_is_a_boolean_also_in_quotes(written: str, is_admin: bool) -> None:
    (account,) = read_acl_file("f", one(f"admin: {written}"), 0).accounts
    assert account.is_admin is is_admin


def test_accounts_of_rocketmq_5_have_a_tag() -> None:
    text = f"""accounts:
- !!org.apache.rocketmq.common.PlainAccessConfig
  accessKey: account1
  admin: false
  defaultGroupPerm: null
  groupPerms: []
  secretKey: {LONG}
  topicPerms: [T=PUB]
  whiteRemoteAddress: null
"""
    (account,) = read_acl_file("f", text, 0).accounts
    assert account.perms == {"T": Perm.PUB}
    assert account.default_group_perm is Perm.DENY


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "line 1: the file is no map"),
        ("accounts: {a: 1}", "line 1: accounts is no list"),
        ("accounts: x", "line 1: accounts is no list"),
        ("accounts:\n- x\n", "line 2: an account is no map"),
        ("accounts:\n- secretKey: abcdefgh\n", "an account: line 2: accessKey needs at least 7"),
        ("accounts:\n- accessKey: abcdefgh\n", "account abcdefgh: line 2: secretKey needs at"),
        ("accounts:\n- accessKey: admin\n  secretKey: s\n", "account admin: line 2: accessKey"),
        (one("whiteRemoteAddress: localhost"), "line 2: Address pattern 'localhost' is not valid"),
        (one("whiteRemoteAddress: [10.0.0.1]"), "line 2: whiteRemoteAddress is no text"),
        (one("admin: maybe"), "line 2: admin is neither true nor false"),
        (one("topicPerms: T=PUB"), "line 2: topicPerms is no list"),
        (one("topicPerms: [T]"), "line 2: Permission 'T' is not written name=permission"),
        (one("topicPerms: [T=PUB=SUB]"), "Permission 'T=PUB=SUB' is not written"),
        (one("topicPerms: [=PUB]"), "Permission '=PUB' is not written"),
        (one("groupPerms: [{T: PUB}]"), "groupPerms is no text"),
        (one("admin: true, admin: false"), "line 2: an account has the key 'admin' twice"),
        ("globalWhiteRemoteAddresses: 10.0.0.1", "globalWhiteRemoteAddresses is no list"),
        ("globalWhiteRemoteAddresses:\n- 10.0.0.1\n- '*.1.2.3'", "line 3: Address pattern"),
        ("globalWhiteRemoteAddresses:\n- *\n", "line 2: no YAML"),
        ("dataVersion: [{counter: x}]", "line 1: counter is no number"),
        ("accounts: &a []\nb: *a", "anchors and aliases are not supported"),
        ("a: &a [*a]", "anchors and aliases are not supported"),
        ("a: !!python/object:os.system {}", "the tag tag:yaml.org,2002:python/object:os.system"),
        ("a: !!org.apache.rocketmq.common.PlainAccessConfig x", "is not supported"),
        ("a: !x y", "the tag !x is not supported"),
        ("<<: {accounts: []}", "a key of the file is no text"),
        ("? [a]\n: b", "a key of the file is no text"),
        ("a: 1\n---\nb: 2\n", "no YAML"),
        ("a: [", "no YAML"),
        ("\0", "no YAML"),
        ("[" * 3_000, "no YAML"),
        ("a: " + "[" * 40 + "]" * 40, "no YAML"),
        ("secretKey: *very-secret-value", "a value begins with *; quote the value"),
    ],
)
def test_errors_name_file_line_and_account(text: str, message: str) -> None:
    with pytest.raises(RulesError) as refused:
        read_acl_file("f.yml", text, 0)
    assert str(refused.value).startswith("f.yml: ")
    assert message in str(refused.value)
    assert "very-secret-value" not in str(refused.value)
    assert LONG not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        (one("topicPerm: []"), "account account1: unknown key 'topicPerm' is ignored"),
        ("account: []", "unknown key 'account' is ignored"),
        (one("topicPerms: [T=ANY]"), "account account1: unknown permission 'ANY' counts as DENY"),
        (one("defaultTopicPerm: pub"), "unknown permission 'pub' counts as DENY"),
        (one("whiteRemoteAddress: '*'"), "admits more than 65,536 addresses without a key"),
        (one("") + "- {accessKey: account1, secretKey: abcdefgh}", "listed twice; the first"),
        (one("").replace(LONG, "short-12"), "the secret key has less than 16 characters"),
        ("accounts: [{accessKey: account1, secretKey: true}]".replace("true", "'1234567'"), "less"),
    ],
)
def test_doubtful_values_are_reported(text: str, warning: str) -> None:
    file = read_acl_file("f", text, 0)
    assert any(warning in each for each in file.warnings), file.warnings


def test_of_equal_permission_names_the_last_counts() -> None:
    (account,) = read_acl_file("f", one("topicPerms: [T=PUB, T=DENY, ' U = SUB ']"), 0).accounts
    assert account.perms == {"T": Perm.DENY, "U": Perm.SUB}


VALUES = st.recursive(
    st.sampled_from(
        [
            *("accounts", "accessKey: account1", "secretKey: abcdefgh1", "admin: true", "x", "~"),
            *("topicPerms:", "- T=PUB", "!!python/name:os", "&a", "*a", "'", '"', "|", ">", "%"),
            *("globalWhiteRemoteAddresses:", "- '*'", "{", "}", "[", "]", ",", ":", "-", "?", "#"),
            *("0123", "1e3", "\t", "\n", "\n  ", "---", "...", "\ufeff", "\x85", "<<: ", "=PUB"),
        ]
    ),
    lambda parts: st.lists(parts, max_size=6).map("".join),
    max_leaves=40,
)


@given(st.one_of(VALUES, st.text(max_size=60), VALUES.map(lambda text: SHIPPED + text)))
def test_no_text_crashes_the_reader(text: str) -> None:
    try:
        file = read_acl_file("f", text, 0)
    except RulesError:
        return
    assert all(len(account.access_key) >= 7 for account in file.accounts)


@given(st.integers(0, len(SHIPPED)), st.integers(0, len(SHIPPED)), st.text(max_size=3))
def test_no_damage_gives_an_account_more_rights(begin: int, end: int, inserted: str) -> None:
    text = SHIPPED[: min(begin, end)] + inserted + SHIPPED[max(begin, end) :]
    try:
        file = read_acl_file("f", text, 0)
    except RulesError:
        return
    # The administrator of the file is the only one, as long as the word true stands there once.
    admins = [account for account in file.accounts if account.is_admin]
    assert len(admins) <= 1
