"""A cluster with access control (ACL 2.0) and one super user."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from core_broker.client import Credentials
from tests.support.cluster import Cluster

#: The super user of the cluster.
ROOT: Final = Credentials("root", "secret-of-root")


@contextmanager
def secured_cluster(folder: Path, **settings: Any) -> Iterator[Cluster]:
    """Start a cluster whose broker refuses unsigned requests; only ROOT exists."""
    first = json.dumps({"username": ROOT.access_key, "password": ROOT.secret_key})
    with Cluster(
        folder,
        authentication_enabled=True,
        authorization_enabled=True,
        init_authentication_user=first,
        **settings,
    ) as cluster:
        yield cluster
