"""Refuses settings that would hide messages of a store folder.

    storePathRootDir/commitlog        records, without enableDLegerCommitLog
    storePathRootDir/dledger-n0/data  entries of the member n0, with enableDLegerCommitLog

A broker reads one of them. RocketMQ's DLedgerCommitLog also reads the records of an older
`commitlog`: it ends that log with a blank record, begins the entries behind it, and keeps the
entries until all records have expired. Gantry does not have that mode, and refuses such a store.
"""

from collections.abc import Iterator
from pathlib import Path

from core_broker.config import BrokerConfig
from core_broker.errors import SettingProblem, SettingsError

#: Bytes at the start of a file that tell whether the file has a message.
_HEAD_BYTES = 8


class _Unreadable(Exception):
    """A folder that may have messages."""


def check_folder(config: BrokerConfig) -> None:
    """Raise SettingsError when the store has messages that these settings do not read."""
    is_member = config.enable_d_leger_commit_log
    problem: SettingProblem | None
    try:
        problem = (_hidden_records(config) if is_member else None) or _hidden_entries(config)
    except _Unreadable as unreadable:
        problem = SettingProblem("storePathRootDir", str(unreadable), config.store_path_root_dir)
    if problem is not None:
        raise SettingsError([problem])


def _hidden_records(config: BrokerConfig) -> SettingProblem | None:
    folder = Path(config.store_path_commit_log or Path(config.store_path_root_dir) / "commitlog")
    if not _has_messages(folder):
        return None
    reason = (
        f"{folder} has messages without entries of DLedger, which this mode would hide; set"
        " enableDLegerCommitLog=false until consumers have read them, and let the member begin with"
        " an empty store"
    )
    return SettingProblem("enableDLegerCommitLog", reason, "true")


def _hidden_entries(config: BrokerConfig) -> SettingProblem | None:
    used = Path(config.commit_log_dir).resolve()
    for folder in _entry_folders(config):
        if folder.resolve() == used or not _has_messages(folder):
            continue
        if not config.enable_d_leger_commit_log:
            reason = (
                f"{folder} has messages as entries of DLedger, which would be hidden; set"
                " enableDLegerCommitLog=true, or move the folder away"
            )
            return SettingProblem("enableDLegerCommitLog", reason, "false")
        reason = (
            f"{folder} has the messages of a member, which would be hidden, as these settings use"
            f" {used}; set dLegerSelfId and storePathDLedgerCommitLog as before, or move the folder"
            " away"
        )
        return SettingProblem("dLegerSelfId", reason, config.d_leger_self_id)
    return None


def _entry_folders(config: BrokerConfig) -> Iterator[Path]:
    yield from sorted(Path(config.store_path_root_dir).glob("dledger-*/data"))
    if config.store_path_d_ledger_commit_log:
        yield Path(config.store_path_d_ledger_commit_log)


def _has_messages(folder: Path) -> bool:
    """Return whether a file of a log begins with a message; files are created ahead of them.

    Raises _Unreadable.
    """
    try:
        if not folder.is_dir():
            return False
        for path in sorted(folder.iterdir()):
            if path.is_file():
                with path.open("rb") as file:
                    if any(file.read(_HEAD_BYTES)):
                        return True
    except OSError as error:
        raise _Unreadable(f"{folder} cannot be read: {error}") from None
    return False
