"""processors/access.py: administration of ACL 1.0, and the answers with aclEnable=false."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core_broker.auth.acl1.demands import Mode
from core_broker.auth.acl1.files import Acl1Files
from core_broker.auth.acl1.permissions import Perm
from core_broker.auth.gate import Gate
from core_broker.processors.access import SWITCHED_OFF
from core_broker.remoting.codes import RequestCode, ResponseCode
from core_broker.remoting.command import RemotingCommand
from tests.support.broker_harness import BrokerHarness

UPDATE = RequestCode.UPDATE_AND_CREATE_ACL_CONFIG
DELETE = RequestCode.DELETE_ACL_CONFIG
ADDRESSES = RequestCode.UPDATE_GLOBAL_WHITE_ADDRS_CONFIG
VERSIONS = RequestCode.GET_BROKER_CLUSTER_ACL_INFO
ACCOUNTS = RequestCode.GET_BROKER_CLUSTER_ACL_CONFIG
INVENTORY = RequestCode.GET_ACCESS_INVENTORY
PUT = RequestCode.UPDATE_ACCESS_ACCOUNT
SECRET = "a-very-secret-key"
FILE = f"""\
# The harness has a white address: the tests change accounts without a signature.
globalWhiteRemoteAddresses: [127.0.0.1]
accounts:
- accessKey: account1
  secretKey: {SECRET}
  whiteRemoteAddress: 10.0.0.1
  admin: true
  topicPerms: [A=PUB, B=SUB]
"""


@pytest.mark.parametrize(
    ("code", "fields", "answer"),
    [
        (UPDATE, {"accessKey": "rocketmq", "secretKey": "12345678"}, 209),
        (DELETE, {"accessKey": "rocketmq"}, 210),
        (ADDRESSES, {"globalWhiteAddrs": "10.0.0.*"}, 211),
        (VERSIONS, {}, ResponseCode.SYSTEM_ERROR),
        (ACCOUNTS, {}, ResponseCode.SYSTEM_ERROR),
        (INVENTORY, {}, ResponseCode.SYSTEM_ERROR),
        (PUT, {"accessKey": "rocketmq"}, 209),
    ],
)
async def test_without_access_control_every_code_has_a_remark(
    broker: BrokerHarness, code: RequestCode, fields: dict[str, str], answer: int
) -> None:
    response = await broker.ask(code, fields)
    assert (response.code, response.remark) == (answer, SWITCHED_OFF)
    assert not broker.saver.saved


class Secured:
    """A broker with the file above."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "conf/plain_acl.yml"
        self.path.parent.mkdir(parents=True)
        self.path.write_text(FILE)
        self.files = Acl1Files(folder, Mode.STRICT)
        self.gate = Gate()
        self.gate.use_acl1(self.files.start(1_000))
        self.broker = BrokerHarness(folder, gate=self.gate)
        self.broker.ctx.acl1 = self.files

    async def ask(self, code: int, **fields: str) -> RemotingCommand:
        return await self.broker.ask(code, fields)

    async def put(self, access_key: str, **members: Any) -> RemotingCommand:
        """UPDATE_ACCESS_ACCOUNT with the members as body."""
        body = json.dumps(members).encode()
        return await self.broker.ask(PUT, {"accessKey": access_key}, body=body)

    async def inventory(self) -> dict[str, Any]:
        """The answer of GET_ACCESS_INVENTORY; no answer has a secret key."""
        body = bytes((await self.accepted(INVENTORY)).body)
        assert SECRET.encode() not in body
        found: dict[str, Any] = json.loads(body)
        return found

    async def accepted(self, code: int, **fields: str) -> RemotingCommand:
        response = await self.ask(code, **fields)
        assert response.code == ResponseCode.SUCCESS, response.remark
        # The answer comes after the new rules.
        assert self.gate.generations == (self.files.rules.generation,)
        return response


@pytest.fixture
async def secured(tmp_path: Path) -> Secured:
    return Secured(tmp_path)


async def test_an_account_is_created_in_the_default_file(secured: Secured) -> None:
    await secured.accepted(
        UPDATE,
        accessKey="new-account",
        secretKey=SECRET,
        admin="false",
        defaultTopicPerm="DENY",
        defaultGroupPerm="SUB",
        topicPerms="T=PUB|SUB, U = DENY",
        groupPerms="G=SUB",
        whiteRemoteAddress="10.0.0.{1,2}",
    )
    account = secured.files.rules.accounts["new-account"]
    assert account.perms == {
        "T": Perm.PUB | Perm.SUB,
        "U": Perm.DENY,
        "%RETRY%G": Perm.SUB,
    }
    assert account.default_group_perm is Perm.SUB
    assert account.white_address.text == "10.0.0.{1,2}"
    assert not account.is_admin
    assert "new-account" in secured.path.read_text()


async def test_given_fields_replace_and_others_stay_but_admin(secured: Secured) -> None:
    await secured.accepted(UPDATE, accessKey="account1", secretKey=SECRET, topicPerms="A=SUB")
    account = secured.files.rules.accounts["account1"]
    assert account.perms == {"A": Perm.SUB}
    assert account.white_address.text == "10.0.0.1"
    assert not account.is_admin  # an absent admin is false, as in Java


async def test_an_account_is_deleted_at_once(secured: Secured) -> None:
    await secured.accepted(DELETE, accessKey="account1")
    assert secured.files.rules.accounts == {}
    assert "account1" not in secured.path.read_text()
    response = await secured.ask(DELETE, accessKey="account1")
    assert (response.code, response.remark) == (
        210,
        "The accesskey[account1] corresponding to accessConfig has been deleted failed.",
    )


async def test_the_white_list_keeps_patterns_in_braces_together(secured: Secured) -> None:
    await secured.accepted(ADDRESSES, globalWhiteAddrs="10.0.0.{1,2},127.0.0.*")
    patterns = [each.text for each in secured.files.rules.white_list]
    assert patterns == ["10.0.0.{1,2}", "127.0.0.*"]
    await secured.accepted(
        ADDRESSES, globalWhiteAddrs="127.0.0.1", aclFileFullPath=str(secured.path)
    )
    assert [each.text for each in secured.files.rules.white_list] == ["127.0.0.1"]


async def test_the_inventory_has_accounts_and_white_lists_without_secrets(secured: Secured) -> None:
    more = secured.path.parent / "acl/more.yml"
    more.parent.mkdir()
    more.write_text(
        f"globalWhiteRemoteAddresses: ['10.1.*.*']\naccounts:\n- accessKey: account2\n"
        f"  secretKey: {SECRET}\n  defaultGroupPerm: SUB\n  groupPerms: [G=SUB|PUB]\n"
    )
    secured.gate.use_acl1(secured.files.start(2_000))
    found = await secured.inventory()
    assert found["defaultFile"] == str(secured.path)
    assert "problem" not in found or found["problem"] is None
    lists = [(each["path"], each["globalWhiteRemoteAddresses"]) for each in found["files"]]
    assert lists == [(str(more), ["10.1.*.*"]), (str(secured.path), ["127.0.0.1"])]
    assert found["accounts"] == [
        {
            "accessKey": "account2",
            "file": str(more),
            "whiteRemoteAddress": "",
            "admin": False,
            "defaultTopicPerm": "DENY",
            "defaultGroupPerm": "SUB",
            "topicPerms": [],
            "groupPerms": ["G=PUB|SUB"],
        },
        {
            "accessKey": "account1",
            "file": str(secured.path),
            "whiteRemoteAddress": "10.0.0.1",
            "admin": True,
            "defaultTopicPerm": "DENY",
            "defaultGroupPerm": "DENY",
            "topicPerms": ["A=PUB", "B=SUB"],
            "groupPerms": [],
        },
    ]
    more.write_text("accounts: [")
    for _poll in range(2):
        secured.files.poll(3_000)
    assert str(more) in (await secured.inventory())["problem"]


async def test_an_account_is_changed_without_its_secret_key(secured: Secured) -> None:
    signed = secured.files.rules.accounts["account1"].signing_key.sign(b"content")
    answer = await secured.put("account1", admin=True, topicPerms=[], whiteRemoteAddress="")
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    (account,) = (await secured.inventory())["accounts"]
    assert (account["topicPerms"], account["whiteRemoteAddress"]) == ([], "")
    assert account["admin"] is True
    assert secured.files.rules.accounts["account1"].signing_key.sign(b"content") == signed
    assert secured.gate.generations == (secured.files.rules.generation,)

    answer = await secured.put("account1", secretKey="another-secret-key")
    assert answer.code == ResponseCode.SUCCESS, answer.remark
    assert secured.files.rules.accounts["account1"].signing_key.sign(b"content") != signed


@pytest.mark.parametrize(
    ("access_key", "members", "text"),
    [
        ("account2", {}, "secretKey=*** cannot be null"),
        ("account1", {"secretKey": "short1"}, "secretKey=*** cannot be"),
        ("account1", {"secretKey": ""}, "secretKey=*** cannot be"),
        ("account1", {"topicPerms": ["T"]}, "Parse Resource format error for T."),
        ("account1", {"topicPerms": [""]}, "Parse Resource format error for ."),
        ("account1", {"groupPerms": ["G=ANY"]}, "Parse resource permission error for G=ANY."),
        ("account1", {"groupPerms": ["G\n=SUB"]}, "printable characters only"),
        ("account1", {"topicPerms": ["T=SUB"] * 10_001}, "more than 10000 permissions"),
        ("account1", {"defaultGroupPerm": "sub"}, "Parse resource permission error for sub."),
        ("account1", {"whiteRemoteAddress": "localhost"}, "'localhost' is not valid"),
        ("account1", {"topicPerms": "T=SUB"}, ""),
        ("account1", {"admin": []}, ""),
    ],
)
async def test_a_bad_account_changes_nothing(
    secured: Secured, access_key: str, members: dict[str, Any], text: str
) -> None:
    answer = await secured.put(access_key, **members)
    assert answer.code != ResponseCode.SUCCESS
    assert text in (answer.remark or "")
    assert secured.path.read_text() == FILE


async def test_versions_go_up_with_every_command(secured: Secured) -> None:
    async def versions() -> tuple[dict[str, int], dict[str, dict[str, int]]]:
        fields = (await secured.accepted(VERSIONS)).ext_fields
        assert fields["brokerName"] == "b"
        assert fields["clusterName"] == "DefaultCluster"
        assert fields["brokerAddr"] == "127.0.0.1:10911"
        return json.loads(fields["version"]), json.loads(fields["allAclFileVersion"])

    first = {"counter": 0, "timestamp": 1_000}
    assert await versions() == (first, {str(secured.path): first})
    await secured.accepted(UPDATE, accessKey="account1", secretKey=SECRET)
    second = {"counter": 1, "timestamp": secured.broker.now_ms}
    assert await versions() == (second, {str(secured.path): second})


@pytest.mark.parametrize(
    ("code", "fields", "answer", "text"),
    [
        (UPDATE, {"accessKey": "short", "secretKey": SECRET}, 209, "length should longer than 6"),
        (UPDATE, {"accessKey": "account2", "secretKey": "short1"}, 209, "secretKey=*** cannot be"),
        (UPDATE, {"accessKey": "account2"}, 209, "secretKey=*** cannot be null"),
        (UPDATE, {"accessKey": "account\n2", "secretKey": SECRET}, 209, "printable characters"),
        (UPDATE, {"accessKey": "a" * 2_000, "secretKey": SECRET}, 209, "printable characters"),
        (UPDATE, {"topicPerms": ""}, 209, "Parse Resource format error for ."),
        (UPDATE, {"topicPerms": "T"}, 209, "Parse Resource format error for T."),
        (UPDATE, {"groupPerms": "G=SUB=PUB"}, 209, "Parse Resource format error for G=SUB=PUB."),
        (UPDATE, {"topicPerms": "T=ANY"}, 209, "Parse resource permission error for T=ANY."),
        (UPDATE, {"topicPerms": "T\n=PUB"}, 209, "printable characters only"),
        (UPDATE, {"defaultTopicPerm": "pub"}, 209, "Parse resource permission error for pub."),
        (UPDATE, {"whiteRemoteAddress": "localhost"}, 209, "'localhost' is not valid"),
        (ADDRESSES, {"globalWhiteAddrs": "10.0.0.1,*.1.2.3"}, 211, "'*.1.2.3' is not valid"),
        (ADDRESSES, {"globalWhiteAddrs": "10.0.0.{1,2"}, 211, "is not valid"),
        (
            ADDRESSES,
            {"globalWhiteAddrs": "*", "aclFileFullPath": "/etc/passwd"},
            211,
            "/etc/passwd is no access control file",
        ),
        (ACCOUNTS, {}, 1, "CVE-2024-23321"),
    ],
)
async def test_bad_commands_change_nothing(
    secured: Secured, code: int, fields: dict[str, str], answer: int, text: str
) -> None:
    if code == UPDATE:
        fields = {"accessKey": "account2", "secretKey": SECRET} | fields
        if text.endswith("be null"):
            del fields["secretKey"]
    response = await secured.ask(code, **fields)
    assert response.code == answer
    assert text in (response.remark or "")
    assert SECRET not in str(response.ext_fields) + (response.remark or "")
    assert secured.path.read_text() == FILE
    assert secured.gate.generations == (1,)


async def test_an_unwritable_file_is_an_error(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("core_broker.auth.acl1.files.replace_file", full)
    response = await secured.ask(DELETE, accessKey="account1")
    assert response.code == 210
    assert "No space left" in (response.remark or "")
    assert "account1" in secured.files.rules.accounts


NAMES = ("accessKey", "secretKey", "admin", "topicPerms", "groupPerms", "whiteRemoteAddress")
VALUES = st.one_of(
    st.sampled_from(["account1", SECRET, "true", "*", "T=PUB", "'", "- a: b", "{", "x: y # z"]),
    st.text(max_size=12),
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(fields=st.dictionaries(st.sampled_from(NAMES), VALUES))
async def test_no_command_crashes_or_breaks_the_file(
    tmp_path_factory: pytest.TempPathFactory, fields: dict[str, str]
) -> None:
    secured = Secured(tmp_path_factory.mktemp("acl"))
    for code, more in ((UPDATE, {}), (DELETE, {}), (ADDRESSES, {"globalWhiteAddrs": "*"})):
        response = await secured.ask(code, **more | fields)
        assert response.code in {0, 1, 209, 210, 211}
        assert "Traceback" not in (response.remark or "")
    # Whatever was written is a file that a start accepts.
    Acl1Files(secured.path.parent.parent, Mode.STRICT).start(2_000)
