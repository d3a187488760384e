"""A cluster with access control (ACL 2.0) and one super user."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from core_broker.client import AdminClient, Credentials
from tests.support.cluster import Cluster, Program, free_broker_port

#: The super user of the cluster.
ROOT: Final = Credentials("root", "secret-of-root")


@contextmanager
def secured_cluster(folder: Path, **settings: Any) -> Iterator[Cluster]:
    """Start a cluster whose broker refuses unsigned requests; only ROOT exists."""
    with Cluster(folder, **_access_control() | settings) as cluster:
        yield cluster


@contextmanager
def further_broker(cluster: Cluster, folder: Path, **settings: Any) -> Iterator[Program]:
    """Start another broker with access control in a cluster; only ROOT exists on the broker."""
    folder.mkdir()
    program = Program("core_broker", folder)
    begun = cluster.broker_settings | {
        "listen_port": free_broker_port(),
        "store_path_root_dir": folder / "store",
        **settings,
    }
    program.start(begun)
    try:
        yield program
    finally:
        program.stop()


def _access_control() -> dict[str, Any]:
    first = json.dumps({"username": ROOT.access_key, "password": ROOT.secret_key})
    return {
        "authentication_enabled": True,
        "authorization_enabled": True,
        "init_authentication_user": first,
    }


def signed(cluster: Cluster, credentials: Credentials) -> AdminClient:
    """An administrator's client that signs with the credentials."""
    return AdminClient(cluster.namesrv_addr, rpc_hooks=[credentials.hook()])
