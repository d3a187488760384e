"""Time-based one-time passwords (RFC 6238) as the second factor of accounts with a password.

The secret is encrypted with a key derived from SECRET_KEY; recovery codes are stored as keyed
digests. A code counts once: the time step of the last accepted code is kept. After FAILURES_MAX
wrong codes, the account accepts no code for LOCK_MS, whatever address asks.
"""

import secrets
from base64 import b32encode, urlsafe_b64encode
from dataclasses import dataclass
from hmac import compare_digest

import pyotp
import segno
from cryptography.fernet import Fernet, InvalidToken
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils.crypto import salted_hmac
from django.utils.encoding import force_bytes
from django.utils.translation import gettext_lazy as _

from console.accounts.models import RecoveryCode, SecondFactor
from console.gateway import NotAllowedNow, Unusable, now_ms

ISSUER = "Gantry"
STEP_S = 30
#: Accepted time steps beside the present one: clocks of phones differ.
STEPS_BESIDE = 1
FAILURES_MAX = 5
LOCK_MS = 5 * 60 * 1_000
RECOVERY_CODES = 10
RECOVERY_BYTES = 10
#: Binds the derived key to this use.
KEY_PURPOSE = b"gantry console: second factor"
RECOVERY_SALT = "console.accounts.recovery"
#: Longest text that is compared with a code.
CODE_CHARS_MAX = 32


class WrongCode(Unusable):
    def __init__(self) -> None:
        super().__init__(
            _("The code is wrong, or was used before."), hint=_("Enter the newest code of the app.")
        )


@dataclass(frozen=True, slots=True)
class Enrolment:
    """What an authenticator app needs: the secret as text, and as a QR code."""

    secret: str
    size: int
    #: Path of an SVG element, one square per dark module.
    path: str


def has_second_factor(user: User) -> bool:
    return SecondFactor.objects.filter(user=user, is_confirmed=True).exists()


def begin(user: User) -> Enrolment:
    """Return the secret of an account that enrols; a reload shows the same secret."""
    if has_second_factor(user):
        raise NotAllowedNow(_("The second factor is already on."))
    factor = SecondFactor.objects.filter(user=user).first()
    secret = _opened(factor) if factor is not None else None
    if secret is None:
        secret = pyotp.random_base32()
        defaults = {"encrypted": _cipher().encrypt(secret.encode()).decode(), "last_step": 0}
        SecondFactor.objects.update_or_create(user=user, defaults=defaults)
    totp = pyotp.TOTP(secret, interval=STEP_S)
    uri = totp.provisioning_uri(name=user.get_username(), issuer_name=ISSUER)
    code = segno.make(uri, error="m")
    rows = code.matrix_iter(border=2)
    squares = [
        f"M{x} {y}h1v1h-1z" for y, row in enumerate(rows) for x, dark in enumerate(row) if dark
    ]
    return Enrolment(secret, int(code.symbol_size(border=2)[0]), "".join(squares))


def confirm(user: User, code: str) -> list[str]:
    """Switch the second factor on with the first code; return new recovery codes."""
    factor = SecondFactor.objects.filter(user=user, is_confirmed=False).first()
    if factor is None:
        raise NotAllowedNow(_("The second factor is already on."))
    check(user, code, is_confirmed=False)
    with transaction.atomic():
        SecondFactor.objects.filter(pk=factor.pk).update(is_confirmed=True)
        return new_recovery_codes(user)


def check(user: User, code: str, *, is_confirmed: bool = True) -> bool:
    """Accept a code once. Return True for a recovery code; raise WrongCode or NotAllowedNow.

    A secret that is not confirmed yet counts only for its confirmation.
    """
    factor = SecondFactor.objects.filter(user=user, is_confirmed=is_confirmed).first()
    if factor is None:
        raise WrongCode
    if not _begin_attempt(factor):
        raise NotAllowedNow(
            _("Too many wrong codes for this account."), hint=_("Wait a few minutes.")
        )
    plain = code.replace(" ", "").replace("-", "").upper()
    if len(plain) <= CODE_CHARS_MAX and plain.isascii():
        if _accept_step(factor, plain):
            _forgive(factor)
            return False
        if is_confirmed and _accept_recovery(user, plain):
            _forgive(factor)
            return True
    raise WrongCode


def switch_off(user: User) -> None:
    """Remove secret and recovery codes."""
    with transaction.atomic():
        SecondFactor.objects.filter(user=user).delete()
        RecoveryCode.objects.filter(user=user).delete()


def new_recovery_codes(user: User) -> list[str]:
    """Replace the recovery codes; return the new ones, which are stored as digests."""
    drawn = (secrets.token_bytes(RECOVERY_BYTES) for _each in range(RECOVERY_CODES))
    codes = [b32encode(each).decode() for each in drawn]
    with transaction.atomic():
        RecoveryCode.objects.filter(user=user).delete()
        RecoveryCode.objects.bulk_create(
            RecoveryCode(user=user, digest=_digest(user, code)) for code in codes
        )
    return [f"{code[:4]}-{code[4:8]}-{code[8:12]}-{code[12:]}" for code in codes]


def recovery_codes_left(user: User) -> int:
    return RecoveryCode.objects.filter(user=user).count()


def _accept_step(factor: SecondFactor, code: str) -> bool:
    secret = _opened(factor)
    if secret is None or len(code) != 6 or not code.isdigit():
        return False
    totp, now_step = pyotp.TOTP(secret, interval=STEP_S), now_ms() // 1_000 // STEP_S
    for step in range(now_step - STEPS_BESIDE, now_step + STEPS_BESIDE + 1):
        if compare_digest(totp.generate_otp(step), code):
            # One statement: of two requests with the same code, one is accepted.
            fresh = SecondFactor.objects.filter(pk=factor.pk, last_step__lt=step)
            return bool(fresh.update(last_step=step))
    return False


def _accept_recovery(user: User, code: str) -> bool:
    deleted, _by_model = RecoveryCode.objects.filter(user=user, digest=_digest(user, code)).delete()
    return deleted > 0


def _begin_attempt(factor: SecondFactor) -> bool:
    """Count an attempt as a failure until it succeeds: of many at once, FAILURES_MAX compare codes.

    Return False while the account is locked.
    """
    at_ms, rows = now_ms(), SecondFactor.objects.filter(pk=factor.pk)
    is_begun = rows.filter(locked_until_ms__lte=at_ms).update(failures=F("failures") + 1)
    rows.filter(failures__gte=FAILURES_MAX).update(failures=0, locked_until_ms=at_ms + LOCK_MS)
    return bool(is_begun)


def _forgive(factor: SecondFactor) -> None:
    SecondFactor.objects.filter(pk=factor.pk).update(failures=0, locked_until_ms=0)


def _digest(user: User, code: str) -> str:
    return salted_hmac(RECOVERY_SALT, f"{user.pk}:{code}", algorithm="sha256").hexdigest()


def _opened(factor: SecondFactor) -> str | None:
    """Return the secret; None when SECRET_KEY has changed."""
    try:
        return _cipher().decrypt(factor.encrypted.encode()).decode()
    except InvalidToken:
        return None


def _cipher() -> Fernet:
    derived = HKDF(SHA256(), 32, None, KEY_PURPOSE).derive(force_bytes(settings.SECRET_KEY))
    return Fernet(urlsafe_b64encode(derived))
