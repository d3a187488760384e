"""Changes of accounts and tokens, for pages, REST resources and commands.

Passwords and tokens are returned once for display; the database stores only hashes.
"""

import secrets
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _
from knox.models import AuthToken

from console.accounts import second_factor
from console.accounts.custom_roles import (
    BEYOND_SHOWN_MAX,
    Caller,
    assign,
    check_held,
    check_not_above,
)
from console.accounts.models import CustomRole, Profile, SignIn, TokenFacts
from console.accounts.names import account_like, check_name
from console.accounts.sessions import end
from console.frame.access import Role, held_by, role_of
from console.frame.permissions import Permission, not_covered
from console.frame.versions import locked, version_of
from console.gateway import AlreadyExists, NotAllowedNow, NotFound, Unusable
from console.gateway.changes import check_unchanged

PASSWORD_BYTES = 15
USERS_MAX = 1_000
TOKENS_PER_USER_MAX = 20
TOKEN_DAYS_DEFAULT = 90
TOKEN_DAYS_MAX = 3_650
GONE = _("There is no such account.")


def create_user(by: Caller, name: str, role: Role) -> tuple[User, str]:
    """Create an account; return the account and the password.

    Raises Unusable for an invalid name, AlreadyExists for one that looks like another account's.
    """
    check_held(by, role.permissions)
    check_name(name)
    if User.objects.count() >= USERS_MAX:
        raise NotAllowedNow(format_lazy(_("There are {count} accounts already."), count=USERS_MAX))
    password = new_password()
    taken = AlreadyExists(format_lazy(_("There is an account “{name}”."), name=name))
    like = account_like(name)
    if like is not None and like != name:
        text = format_lazy(_("The name looks like that of the account “{name}”."), name=like)
        raise AlreadyExists(text)
    if like is not None:
        raise taken
    try:
        with transaction.atomic():
            user = User.objects.create_user(name, password=password)
            keep_role(user, role)
    except IntegrityError:
        raise taken from None
    return user, password


def user_of(number: int) -> User:
    """Return one account; raises NotFound."""
    found = (
        User.objects.select_related("profile").filter(pk=number).first() if number < 2**63 else None
    )
    if found is None:
        raise NotFound(GONE)
    return found


def user_named(name: str) -> User:
    """Return one account; raises NotFound."""
    found = User.objects.select_related("profile").filter(username=name.replace("\x00", "")).first()
    if found is None:
        raise NotFound(GONE)
    return found


def roles_of(user: User) -> dict[str, Any]:
    """The roles of an account, for the audit list and REST."""
    names = user.profile.roles.order_by("name").values_list("name", flat=True)
    return {"role": str(user.profile.role), "roles": list(names)}


def version_of_roles(user: User) -> str:
    """Return the version of an account's roles for forms and as ETag."""
    return version_of(roles_of(user))


def version_of_account(user: User) -> str:
    """Return the version of an account as ETag: state and roles."""
    return version_of({**roles_of(user), "is_active": user.is_active})


def set_roles(
    by: Caller,
    user: User,
    role: Role,
    roles: Sequence[CustomRole],
    expected: str | None = None,
) -> None:
    """Give the account the built-in role and exactly these further roles.

    Raises PreconditionFailed when the roles have another version than `expected`.
    """
    check_held(by, role.permissions)
    with transaction.atomic():
        _lock_administrators()
        user.profile = locked(user.profile, GONE)
        check_unchanged(expected, version_of_roles(user))
        assign(by, user, roles)
        keep_role(user, role)
        _check_an_administrator_is_left()


def set_active(by: Caller, user: User, active: bool, expected: str | None = None) -> None:
    """Enable or disable an account.

    Disabling ends the sessions and denies the tokens of the account. Raises PreconditionFailed when
    the account has another version than `expected`.
    """
    check_not_above(by, user)
    with transaction.atomic():
        _lock_administrators()
        user = _locked_account(user, expected)
        user.is_active = active
        user.save(update_fields=["is_active"])
        _check_an_administrator_is_left()
    if not active:
        end(SignIn.objects.filter(user=user))


def _locked_account(user: User, expected: str | None) -> User:
    """Return the stored account, locked, of the version `expected`; None: any version."""
    found = locked(user, GONE)
    found.profile = locked(user.profile, GONE)
    check_unchanged(expected, version_of_account(found))
    return found


def delete_user(by: Caller, user: User, expected: str | None = None) -> None:
    """Delete an account with its sessions, tokens, second factor and saved views.

    Audit rows keep the name; jobs and notes of dead letters lose the author. An account of a
    provider or a directory is created again at the person's next sign-in.

    Raises NotAllowedNow for the caller's own account and for the last administrator, and
    PreconditionFailed when the account has another version than `expected`.
    """
    check_not_above(by, user)
    if user.pk == by.pk:
        raise NotAllowedNow(
            _("An account cannot delete itself."),
            hint=_("Another administrator can delete the account."),
        )
    with transaction.atomic():
        _lock_administrators()
        user = _locked_account(user, expected)
        end(SignIn.objects.filter(user=user))
        user.delete()
        _check_an_administrator_is_left()


def reset_second_factor(by: Caller, user: User) -> None:
    """Remove the second factor of an account; raises NotFound for an account without one."""
    check_not_above(by, user)
    if not second_factor.has_second_factor(user):
        raise NotFound(_("The account has no second factor."))
    second_factor.switch_off(user)


def reset_password(by: Caller, user: User) -> str:
    """Set and return a new password; end the account's sessions."""
    check_not_above(by, user)
    password = new_password()
    user.set_password(password)
    user.save(update_fields=["password"])
    end(SignIn.objects.filter(user=user))
    return password


def issue_token(
    user: User,
    name: str,
    role: Role,
    days: int,
    *,
    within: Role | None = None,
    permissions: Sequence[Permission] = (),
) -> tuple[TokenFacts, str]:
    """Create a token; return token facts and text.

    The role is limited by the user's role and `within`, the permissions by the role.
    """
    most = role_of(user)
    if most is None:
        raise NotAllowedNow(_("The account is disabled."))
    if role.within(most.within(within or most)) is not role:
        raise Unusable(
            format_lazy(
                _("The role of the token can be {role} at most."), role=(within or most).label
            )
        )
    own = [each.permission for each in held_by(user)]
    if beyond := not_covered(permissions, own if role is Role.NONE else role.permissions):
        listed = ", ".join(str(each) for each in beyond[:BEYOND_SHOWN_MAX])
        raise Unusable(
            format_lazy(
                _("These permissions are beyond the rights of the token: {permissions}"),
                permissions=listed,
            )
        )
    if role is Role.NONE and not permissions:
        raise Unusable(_("A token without a built-in role needs permissions."))
    AuthToken.objects.filter(user=user, expiry__lt=timezone.now()).delete()
    if AuthToken.objects.filter(user=user).count() >= TOKENS_PER_USER_MAX:
        raise NotAllowedNow(
            format_lazy(_("An account has {count} tokens at most."), count=TOKENS_PER_USER_MAX),
            hint=_("Revoke an unused token."),
        )
    with transaction.atomic():
        token, text = AuthToken.objects.create(user, expiry=timedelta(days=days))
        texts = [str(each) for each in permissions]
        facts = TokenFacts.objects.create(token=token, name=name, role=role, permissions=texts)
    return facts, text


def token_of(key: str, user: User | None = None) -> AuthToken:
    """Return a token by public key, of one user or of any user; raises NotFound."""
    tokens = AuthToken.objects.select_related("user", "facts")
    tokens = tokens.filter(token_key=key.replace("\x00", ""))
    found = (tokens if user is None else tokens.filter(user=user)).first()
    if found is None:
        raise NotFound(_("There is no such token."))
    return found


def tokens_of(user: User | AnonymousUser) -> Any:
    """Return the unexpired tokens of a user, newest first."""
    alive = AuthToken.objects.filter(user_id=user.pk, expiry__gte=timezone.now())
    return alive.select_related("facts", "user").order_by("-created")


def new_password() -> str:
    return secrets.token_urlsafe(PASSWORD_BYTES)


def keep_role(user: User, role: Role) -> None:
    """Save the role, and Django's flags is_staff and is_superuser for other programs."""
    user.profile.role = role
    user.profile.save(update_fields=["role"])
    user.is_staff = role.rank >= Role.OPERATOR.rank
    user.is_superuser = role is Role.ADMINISTRATOR
    user.save(update_fields=["is_staff", "is_superuser"])


def _lock_administrators() -> None:
    """Lock the administrators until the end of the transaction that the caller has begun.

    Otherwise two simultaneous changes of different accounts could each leave the other account.
    """
    rows = Profile.objects.select_for_update().filter(role=Role.ADMINISTRATOR).order_by("pk")
    list(rows.values_list("pk"))


def _check_an_administrator_is_left() -> None:
    """Call after `_lock_administrators`, in the same transaction."""
    left = User.objects.filter(is_active=True, profile__role=Role.ADMINISTRATOR)
    if not left.exists():
        raise NotAllowedNow(
            _("This is the last administrator."),
            hint=_("Make somebody else an administrator first."),
        )
