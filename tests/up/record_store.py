"""Record the store of the first broker: `python -m tests.up.record_store`.

Runs the broker of an old commit, stores `kept_messages`, and writes the store to
stores/first-broker.tar.xz. Needs the history of the commit.
"""

import asyncio
import tarfile
import tempfile
from pathlib import Path

from tests.support.cluster import Cluster
from tests.support.old_versions import FIRST_BROKER, old_tree
from tests.up.kept_messages import write

STORES = Path(__file__).with_name("stores")
FIRST_STORE = STORES / "first-broker.tar.xz"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        root = old_tree(folder / "source", FIRST_BROKER)
        with Cluster(folder, root=root) as cluster:
            asyncio.run(write(cluster.namesrv_addr, cluster.broker_addr, 1))
        STORES.mkdir(exist_ok=True)
        with tarfile.open(FIRST_STORE, "w:xz") as archive:
            archive.add(folder / "store", "store")
    print(f"{FIRST_STORE}: {FIRST_STORE.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
