"""processors/access.py: administration of ACL 1.0, and the answers with aclEnable=false."""

import json
from pathlib import Path

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
