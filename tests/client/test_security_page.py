"""docs/security.md: the commands for accounts of ACL 1.0, and for users of ACL 2.0."""

import json
from pathlib import Path

from tests.support.accounts_cluster import ADMINISTRATOR, accounts_cluster
from tests.support.cluster import Cluster
from tests.support.document_blocks import run_blocks

PAGE = "security.md"
ACL_1, ACL_2 = slice(0, 1), slice(1, 3)
ROOT = {"username": "root", "password": "secret-of-root"}
INNER = {"accessKey": "inner", "secretKey": "secret-of-inner"}


def test_the_commands_of_acl_1_work(tmp_path: Path) -> None:
    with accounts_cluster(tmp_path) as cluster:
        printed = run_blocks(
            PAGE,
            __file__,
            {"127.0.0.1:10911": cluster.broker_addr},
            part=ACL_1,
            NAMESRV_ADDR=cluster.namesrv_addr,
            MQADMIN_ACCESS_KEY=ADMINISTRATOR.access_key,
            MQADMIN_SECRET_KEY=ADMINISTRATOR.secret_key,
        )
        assert printed.count("success") >= 3
        assert "plain_acl.yml" in printed


def test_the_commands_of_acl_2_and_of_the_name_server_work(tmp_path: Path) -> None:
    both = {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": json.dumps(ROOT),
        "inner_client_authentication_credentials": json.dumps(INNER),
    }
    for name in ("billing", "orders"):
        (tmp_path / f"{name}.secret").write_text("a long secret\n")
        (tmp_path / f"{name}.secret").chmod(0o600)
    with Cluster(tmp_path, both=both, user_password_readable=True) as cluster:
        addrs = {
            "127.0.0.1:9876": cluster.namesrv_addr,
            "127.0.0.1:10911": cluster.broker_addr,
        }
        printed = run_blocks(
            PAGE,
            __file__,
            addrs,
            part=ACL_2,
            folder=tmp_path,
            typed=2 * "a long secret\n",
            NAMESRV_ADDR=cluster.namesrv_addr,
            MQADMIN_ACCESS_KEY=ROOT["username"],
            MQADMIN_SECRET_KEY=ROOT["password"],
        )
        assert printed.count("success") >= 6
        assert "Group:billing" in printed
