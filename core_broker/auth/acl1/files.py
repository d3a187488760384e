"""The access control files of a broker: loading, reload after a change, and changes by commands.

    <home>/conf/plain_acl.yml    the default file, read last; created empty when missing
    <home>/conf/acl/**/*.yml     more files, read in the order of their paths; also .yaml

All files together make one generation of rules. Of an account in two files the first counts. A
broken file keeps the rules in force; `Acl1Files.problem` and the log name the error. Compatible
with RocketMQ's PlainPermissionManager. Files below folders whose names begin with a dot are left
out: Kubernetes keeps older content of a mounted folder there.

The methods block. `poll` and the changes may run in different threads, one after the other.
"""

import logging
import os
import stat
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final

from core_broker.auth.acl1.accounts import Account, AclFile
from core_broker.auth.acl1.addresses import AddressPattern
from core_broker.auth.acl1.demands import Mode
from core_broker.auth.acl1.faults import RulesError
from core_broker.auth.acl1.reading import read_acl_file, secret_keys
from core_broker.auth.acl1.rewriting import (
    AccountValues,
    drop_account,
    put_account,
    put_white_list,
)
from core_broker.auth.acl1.rules import Acl1Rules
from core_broker.durable_files import replace_file
from core_broker.remoting.bodies import DataVersion

log = logging.getLogger(__name__)

#: Path of the default file below the broker's home.
DEFAULT_FILE: Final = "conf/plain_acl.yml"
#: Folder with more files below the broker's home.
FOLDER: Final = "conf/acl"
#: Interval of `Acl1Files.poll`, milliseconds. A change counts when two polls see the same files.
POLL_INTERVAL_MS: Final = 1_000
#: Maximum size of one file, bytes.
FILE_BYTES_MAX: Final = 4 * 1024 * 1024
#: Maximum number of files.
FILES_MAX: Final = 1_000
#: Ending of the copy with the content before the last command.
BACKUP_SUFFIX: Final = ".bak"
_SUFFIXES = (".yml", ".yaml")
_PRIVATE_MODE = 0o600

#: Modification time, size and inode of each file.
_Stamps = dict[str, tuple[int, int, int]]


class Acl1Files:
    """The rules of the files below one home folder."""

    def __init__(self, home: Path, mode: Mode, default_file: str = DEFAULT_FILE) -> None:
        self._home = home
        self._default = home / default_file
        self._mode = mode
        self._lock = Lock()
        self._files: dict[str, AclFile] = {}
        self._loaded: _Stamps = {}
        self._seen: _Stamps = {}
        self._rules = Acl1Rules(0, mode, {}, ())
        #: Why the last changed files are not in force; "" when the rules are the files' content.
        self.problem = ""
        #: Advice about the files in force, without secrets.
        self.warnings: tuple[str, ...] = ()
        #: Number of reloads that failed.
        self.failures = 0

    @property
    def rules(self) -> Acl1Rules:
        """The rules in force."""
        return self._rules

    @property
    def default_path(self) -> str:
        """Path of the default file."""
        return str(self._default)

    @property
    def versions(self) -> dict[str, DataVersion]:
        """The version of each file with content, by path."""
        return {path: file.version for path, file in self._files.items() if file.version}

    @property
    def contents(self) -> tuple[AclFile, ...]:
        """The content of each file in force, in the order of reading."""
        return tuple(self._files.values())

    def start(self, now_ms: int) -> Acl1Rules:
        """Load the files for the first time. Raises RulesError or OSError."""
        with self._lock:
            if not self._default.exists():
                _write(self._default, b"")
            stamps = self._stamps()
            self._load(stamps, now_ms)
            self._seen = stamps
        log.info(
            "access control: %d accounts and %d white list patterns from %s",
            len(self._rules.accounts),
            len(self._rules.white_list),
            ", ".join(self._files) or "no file",
        )
        return self._rules

    def poll(self, now_ms: int) -> Acl1Rules | None:
        """Load changed files; returns new rules, or None when the rules in force stay.

        A change is loaded when two polls in a row see the same files: editors and copies need
        several steps to write a file. A broken change is reported once and not tried again.
        """
        with self._lock:
            try:
                stamps = self._stamps()
                if stamps == self._loaded or stamps != self._seen:
                    self._seen = stamps
                    return None
                self._loaded = stamps
                self._load(stamps, now_ms, self._check_content)
            except (RulesError, OSError) as error:
                self._keep_rules(str(error))
                return None
        log.info("access control: rules %d are in force", self._rules.generation)
        return self._rules

    def _keep_rules(self, problem: str) -> None:
        if problem != self.problem:
            self.problem = problem
            self.failures += 1
            log.error("access control: the rules in force stay: %s", problem)

    def secret_keys(self) -> dict[str, str]:
        """Read the secret key of each account; rules keep none. Raises RulesError, OSError."""
        with self._lock:
            keys = [secret_keys(_read(Path(path))) for path in self._files]
        return {name: key for each in reversed(keys) for name, key in each.items()}

    def put_account(self, values: AccountValues, now_ms: int) -> Acl1Rules:
        """Create or merge an account, in its file or in the default file.

        Raises RulesError before any write, OSError when the file cannot be written.
        """
        account = self._rules.accounts.get(str(values["accessKey"]))
        path = account.file if account is not None else self.default_path
        return self._change(path, lambda text, next_: put_account(text, values, next_), now_ms)

    def drop_account(self, access_key: str, now_ms: int) -> Acl1Rules:
        """Delete an account from its file. Raises RulesError for an unknown account, OSError."""
        account = self._rules.accounts.get(access_key)
        if account is None:
            raise RulesError(f"No access control file has the account {access_key}.")
        return self._change(
            account.file, lambda text, next_: drop_account(text, access_key, next_), now_ms
        )

    def put_white_list(self, patterns: Sequence[str], path: str, now_ms: int) -> Acl1Rules:
        """Replace the global white list of a file; only of a file that is read as such.

        Raises RulesError before any write, OSError when the file cannot be written.
        """
        path = path or self.default_path
        if path not in self._files:
            raise RulesError(f"{path} is no access control file of this broker.")
        return self._change(path, lambda text, next_: put_white_list(text, patterns, next_), now_ms)

    def _change(self, path: str, edit: Callable[[str, DataVersion], str], now_ms: int) -> Acl1Rules:
        with self._lock:
            if self.problem:
                raise RulesError(f"Repair the files first: {self.problem}")
            old = _read(Path(path))
            version = (read_acl_file(path, old, now_ms).version or DataVersion()).next(now_ms)
            new = edit(old, version)
            changed = self._files | {path: read_acl_file(path, new, now_ms)}
            _combined(changed)
            _write(Path(path + BACKUP_SUFFIX), old.encode())
            _write(Path(path), new.encode())
            stamps = self._stamps()
            self._load(stamps, now_ms)
            self._seen = stamps
        log.info("access control: a command changed %s", path)
        return self._rules

    def _load(
        self,
        stamps: _Stamps,
        now_ms: int,
        check: Callable[[dict[str, AclFile]], None] = lambda files: None,
    ) -> None:
        """Read all files and put the rules in force; nothing changes when one is broken."""
        files = {path: read_acl_file(path, _read(Path(path)), now_ms) for path in stamps}
        check(files)
        accounts, white_list, twice = _combined(files)
        self._rules = Acl1Rules(self._rules.generation + 1, self._mode, accounts, white_list)
        self._files, self._loaded, self.problem = files, stamps, ""
        self.warnings = (
            *(f"{file.path}: {text}" for file in files.values() for text in file.warnings),
            *twice,
        )
        for warning in self.warnings:
            log.warning("access control: %s", warning)

    def _check_content(self, files: dict[str, AclFile]) -> None:
        """Refuse a file that lost its whole content: the reason is an unfinished write."""
        for path, file in files.items():
            if file.version is None and path in self.versions:
                raise RulesError(
                    f"{path} is empty now; write `accounts: []` to delete all accounts of the file."
                )

    def _stamps(self) -> _Stamps:
        """All files in the order of reading, the default file last. Raises RulesError, OSError."""
        folder = self._home / FOLDER
        paths = sorted(
            path
            for path in folder.rglob("*")
            if path.suffix in _SUFFIXES
            and path != self._default
            and not any(part.startswith(".") for part in path.relative_to(folder).parts)
            and path.is_file()
        )
        if len(paths) >= FILES_MAX:
            raise RulesError(f"{folder} has more than {FILES_MAX} access control files.")
        stamps = {}
        for path in (*paths, self._default):
            found = path.stat()
            stamps[str(path)] = (found.st_mtime_ns, found.st_size, found.st_ino)
        return stamps


def _combined(
    files: dict[str, AclFile],
) -> tuple[dict[str, Account], tuple[AddressPattern, ...], list[str]]:
    """Accounts and white list of all files, and warnings about accounts in two files."""
    accounts: dict[str, Account] = {}
    twice = []
    for file in files.values():
        for account in file.accounts:
            first = accounts.setdefault(account.access_key, account)
            if first is not account:
                twice.append(
                    f"account {account.access_key} is in {first.file} and in {file.path}; "
                    "the first file counts."
                )
    patterns = {pattern.text: pattern for file in files.values() for pattern in file.white_list}
    return accounts, tuple(patterns.values()), twice


def _read(path: Path) -> str:
    with path.open("rb") as file:
        data = file.read(FILE_BYTES_MAX + 1)
    if len(data) > FILE_BYTES_MAX:
        raise RulesError(f"{path} has more than {FILE_BYTES_MAX} bytes.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise RulesError(f"{path} is no UTF-8 text: {error.reason}.") from None


def _write(path: Path, data: bytes) -> None:
    """Replace a file with secrets; only the owner reads a new file, an old one keeps its rights."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(path.name + ".tmp")
    os.close(os.open(fresh, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, _PRIVATE_MODE))

    def keep_rights() -> None:
        if path.exists():
            old = path.stat()
            with suppress(PermissionError):  # only root gives files away
                os.chown(fresh, old.st_uid, old.st_gid)
            fresh.chmod(stat.S_IMODE(old.st_mode))

    replace_file(path, [data], keep_rights)
