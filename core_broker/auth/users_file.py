"""Users and access control lists (ACL 2.0) of a server: settings, file, and the first users.

The file `auth.json` is readable by the owner only. With keys of authEncryptionKeyFile, or of the
environment, the passwords in the file are encrypted.
"""

import logging
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from core_broker.auth.acl2.owner import AccessOwner, with_super_users
from core_broker.auth.acl2.rules import RuleSettings
from core_broker.auth.acl2.stored import PasswordCipher, decode, encode, is_encrypted
from core_broker.auth.acl2.tables import AccessTables
from core_broker.auth.gate import Gate
from core_broker.auth.server_settings import parsed, server_credentials
from core_broker.config import AccessSettings, encryption_keys
from core_broker.durable_files import replace_file
from core_broker.errors import ProtocolError, StoreCorrupt
from core_broker.remoting.saved_file import SavedFile

log = logging.getLogger(__name__)

USERS_FILE = "auth.json"

_write = partial(replace_file, is_private=True)


class UsersFile:
    """The owner of the users and lists, and the file that keeps them."""

    def __init__(
        self,
        config: AccessSettings,
        path: Path,
        rules: RuleSettings,
        gate: Gate,
        migrate: Callable[[AccessTables], AccessTables] = lambda tables: tables,
    ) -> None:
        """Publish rules without users to the gate. Raises SettingsError.

        `migrate` may add users to the loaded ones, and may raise SettingsError.
        """
        self._first_users = list(_first_users(config))
        self._migrate = migrate
        self.owner = AccessOwner(AccessTables(), rules, gate.use_acl2)
        self._cipher = _cipher(config)
        self.file = SavedFile(path, self._content, _write)

    def _content(self) -> bytes:
        return encode(self.owner.tables, self._cipher)

    def load(self) -> None:
        """Read the file, and add the users of the settings. Blocks; before the first request.

        A file with passwords in plain text, or encrypted with an old key, is written again.
        Raises StoreCorrupt when the file cannot be read, and OSError.
        """
        path, cipher = self.file.path, self._cipher
        content = path.read_bytes() if path.exists() else None
        try:
            tables = AccessTables() if content is None else decode(content, cipher)
        except ProtocolError as error:
            raise StoreCorrupt(
                str(path), 0, f"{error}; repair the file or restore a copy"
            ) from None
        complete = with_super_users(self._migrate(tables), self._first_users)
        self.owner.change(complete)
        has_plain_text = content and cipher and not is_encrypted(content, cipher)
        if complete is not tables or has_plain_text:
            _write(path, [self._content()])
        if not any(user.is_super for user in complete.users.values()):
            log.warning("no super user exists: set initAuthenticationUser, or nobody administers")
        log.info("%s: %d users, %d lists", path, len(complete.users), len(complete.acls))


def _cipher(config: AccessSettings) -> PasswordCipher | None:
    keys = encryption_keys(config.auth_encryption_key_file)
    if not keys:
        return None
    # Most brokers have no keys and never pay for the import.
    from core_broker.auth.acl2.encryption import KeyedCipher

    return KeyedCipher(keys)


class _Init(msgspec.Struct):
    username: str
    password: str


def _first_users(config: AccessSettings) -> Iterator[tuple[str, str]]:
    """Yield name and password of the super users that the settings name."""
    if text := config.init_authentication_user:
        user = parsed(_Init, "initAuthenticationUser", text, '{"username":"…","password":"…"}')
        yield user.username, user.password
    if inner := server_credentials(config):
        yield inner
