"""The settings of access control 2.0 that broker and name server share."""

from dataclasses import dataclass

from core_broker.config.settings import INT_MAX, key
from core_broker.config.tls import TlsSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class AccessSettings(TlsSettings):
    """The keys of a server with users, beside its TLS keys."""

    authentication_enabled: bool = key(False, important=True)
    authorization_enabled: bool = key(False, important=True)
    authentication_whitelist: str = ""
    authorization_whitelist: str = ""
    init_authentication_user: str = key("", is_secret=True)
    inner_client_authentication_credentials: str = key("", is_secret=True)
    # Gantry's own.
    user_password_readable: bool = False
    auth_encryption_key_file: str = ""
    max_access_failures: int = key(0, high=INT_MAX)  # 0: no back-off
    max_access_back_off_seconds: int = key(60, low=1, high=86_400)
