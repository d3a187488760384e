"""The credentials of clusters in Django's database, encrypted.

The key of the cipher is derived from SECRET_KEY. After a change of SECRET_KEY, or in a copy of the
database without the key, the secrets cannot be read: the console does not sign, and says so.
"""

import logging
from dataclasses import asdict, dataclass
from typing import Any

import msgspec
from django.db import DatabaseError, transaction

from console.frame.ciphers import Cipher
from console.frame.versions import version_of
from console.gateway import Cluster, Credentials, now_ms
from console.gateway.changes import check_unchanged
from console.services.clusters.models import ClusterCredentials

log = logging.getLogger(__name__)

CIPHER = Cipher(b"gantry console: credentials of clusters")


class _Secret(msgspec.Struct, frozen=True):
    """The encrypted part of a row; `cluster` and `access_key` tie the secret to its row."""

    cluster: str
    access_key: str
    secret_key: str
    security_token: str = ""


@dataclass(frozen=True, slots=True)
class Signer:
    """The account that signs the console's requests to a cluster; without secrets."""

    access_key: str
    #: True: CONSOLE_CLUSTER_CREDENTIALS names the file; the console cannot change the keys.
    from_environment: bool = False
    #: False: SECRET_KEY has changed since the keys were saved, and requests are not signed.
    is_readable: bool = True
    has_token: bool = False
    changed_ms: int | None = None
    changed_by: str = ""


def signer_of(cluster: Cluster) -> Signer | None:
    """Return the account that signs for a cluster; None: requests are not signed."""
    fixed = cluster.signing.fixed
    if fixed is not None:
        return Signer(fixed.access_key, from_environment=True, has_token=bool(fixed.security_token))
    row = ClusterCredentials.objects.filter(cluster=cluster.name).first()
    if row is None:
        return None
    opened = _opened(row)
    return Signer(
        row.access_key,
        is_readable=opened is not None,
        has_token=opened is not None and bool(opened.security_token),
        changed_ms=row.changed_ms,
        changed_by=row.changed_by,
    )


def version(cluster: Cluster) -> str:
    """Return the version of the signing account as ETag."""
    signer = signer_of(cluster)
    return version_of(asdict(signer) if signer else None)


def save(
    cluster: Cluster, credentials: Credentials, user: Any, expected: str | None = None
) -> None:
    """Store the credentials; this process signs with them at once, others within seconds.

    Raises PreconditionFailed when the stored ones have another version than `expected`.
    """
    secret = _Secret(
        cluster.name, credentials.access_key, credentials.secret_key, credentials.security_token
    )
    with transaction.atomic():
        _check_locked(cluster, expected)
        ClusterCredentials.objects.update_or_create(
            cluster=cluster.name,
            defaults={
                "access_key": credentials.access_key,
                "encrypted": CIPHER.sealed(secret),
                "changed_ms": now_ms(),
                "changed_by": str(user),
            },
        )
    cluster.signing.use(credentials)


def remove(cluster: Cluster, expected: str | None = None) -> bool:
    """Delete the stored credentials; return False when there were none.

    Raises PreconditionFailed when they have another version than `expected`.
    """
    with transaction.atomic():
        _check_locked(cluster, expected)
        deleted, _by_model = ClusterCredentials.objects.filter(cluster=cluster.name).delete()
    cluster.signing.use(None)
    return bool(deleted)


def _check_locked(cluster: Cluster, expected: str | None) -> None:
    """Check the version of the stored keys, which stay until the end of the transaction."""
    ClusterCredentials.objects.select_for_update().filter(cluster=cluster.name).first()
    check_unchanged(expected, version(cluster))


class DatabaseCredentials:
    """Implements `CredentialStore` of `console.gateway.engine.signing`."""

    def __init__(self) -> None:
        #: Clusters whose unreadable credentials were logged.
        self._logged: set[str] = set()

    def credentials(self, cluster: str) -> Credentials | None:
        try:
            row = ClusterCredentials.objects.filter(cluster=cluster).first()
        except DatabaseError as error:
            log.warning("the credentials of %s cannot be read", cluster, exc_info=True)
            raise LookupError(cluster) from error
        opened = None if row is None else _opened(row)
        if row is None or opened is not None:
            self._logged.discard(cluster)
        elif cluster not in self._logged:
            self._logged.add(cluster)
            log.warning(
                "The credentials of cluster %s cannot be decrypted: SECRET_KEY has changed since "
                "they were saved. Save them again.",
                cluster,
            )
        return opened


def _opened(row: ClusterCredentials) -> Credentials | None:
    """Decrypt a row; None for another SECRET_KEY and for a secret of another row."""
    secret = CIPHER.opened(row.encrypted, _Secret)
    if secret is None or (secret.cluster, secret.access_key) != (row.cluster, row.access_key):
        return None
    return Credentials(secret.access_key, secret.secret_key, secret.security_token)
