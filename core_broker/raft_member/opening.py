"""The folder of a member: its Raft state, and the name of its cluster in `cluster-id`."""

from core_broker.errors import StoreCorrupt
from core_broker.raft.model import Membership
from core_broker.raft.storage import RaftStorage
from core_broker.raft_member.settings import MemberSettings
from core_broker.store.files import Files, read_file, replace_file

_CLUSTER_ID = "cluster-id"


def open_storage(settings: MemberSettings, files: Files) -> tuple[RaftStorage, bytes | None]:
    """Open the folder, or prepare it at the first start; return also the state to restore.

    The state is None before the first snapshot. Raises StoreCorrupt for damage and for the folder
    of another cluster or member, StoreLocked, OSError. Reads the disk: call it in a thread.
    """
    folder = settings.folder
    files.make_dir(folder)
    path = folder / _CLUSTER_ID
    if files.exists(path):
        found = read_file(files, path).decode(errors="replace")
        if found != settings.cluster_id:
            reason = f"the folder is of cluster {found!r}, not of {settings.cluster_id!r}"
            raise StoreCorrupt(str(path), 0, reason)
    elif RaftStorage.is_initialised(files, folder):
        raise StoreCorrupt(str(path), 0, "the name of the cluster is missing")
    else:
        replace_file(files, path, settings.cluster_id.encode())
    if not RaftStorage.is_initialised(files, folder):
        membership = Membership(settings.voters)
        RaftStorage.initialise(files, folder, settings.node_id, membership)
    storage = RaftStorage(files, folder, settings.node_id)
    return storage, storage.read_snapshot() if storage.snapshot.index else None
