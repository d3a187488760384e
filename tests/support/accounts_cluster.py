"""A cluster with accounts in plain_acl.yml (ACL 1.0) and one administrator."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from core_broker.client import Credentials
from tests.support.cluster import Cluster

#: The administrator of the cluster.
ADMINISTRATOR: Final = Credentials("administrator", "secret-of-administrator")
RULES: Final = f"""\
# The accounts of the tests.
globalWhiteRemoteAddresses: [10.99.99.99]
accounts:
- accessKey: {ADMINISTRATOR.access_key}
  secretKey: {ADMINISTRATOR.secret_key}
  admin: true
"""


def write_rules(home: Path, text: str = RULES) -> Path:
    """Write plain_acl.yml below a broker's home folder; return the path."""
    file = home / "conf" / "plain_acl.yml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


@contextmanager
def accounts_cluster(folder: Path, text: str = RULES, **settings: Any) -> Iterator[Cluster]:
    """Start a cluster whose broker reads `text` as plain_acl.yml below `folder`/home."""
    write_rules(folder / "home", text)
    with Cluster(folder, acl_enable=True, rocketmq_home=folder / "home", **settings) as cluster:
        yield cluster
