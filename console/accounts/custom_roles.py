"""Roles that administrators define: names for lists of permissions, in Django's database.

Nobody gives rights that he does not have: the permissions of a created, changed or assigned role,
and those of an account that is changed, must be covered by the permissions of the caller.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.db.models import Count
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.accounts.models import CustomRole, Profile
from console.frame.access import Held, Role, held_by, layers_of
from console.frame.permissions import Action, Permission, Target, not_covered
from console.frame.versions import locked, version_of
from console.gateway import AlreadyExists, NotAllowedNow, NotFound, Unusable
from console.gateway.changes import check_unchanged

ROLES_MAX = 200
ROLES_PER_USER_MAX = 20
ROLE_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
GONE = _("There is no such role.")
#: Names that would be mistaken for the built-in roles.
RESERVED = frozenset({"viewer", "operator", "administrator", "none"})
#: Maximum number of permissions in an error message.
BEYOND_SHOWN_MAX = 10

Caller = User | AnonymousUser


@dataclass(frozen=True, slots=True)
class Holder:
    """An account with the right to an action, and the role and permission behind the right."""

    username: str
    held: Held


def role_named(name: str) -> CustomRole:
    found = CustomRole.objects.filter(name=name.replace("\x00", "")).first()
    if found is None:
        raise NotFound(GONE)
    return found


def create_role(
    by: Caller, name: str, description: str, permissions: Sequence[Permission]
) -> CustomRole:
    if not ROLE_NAME.fullmatch(name) or name.lower() in RESERVED:
        raise Unusable(
            _("A role's name has 1 to 64 letters, digits, “.”, “_” or “-”, and is not built-in.")
        )
    if CustomRole.objects.count() >= ROLES_MAX:
        raise NotAllowedNow(format_lazy(_("There are {count} roles already."), count=ROLES_MAX))
    check_held(by, permissions)
    texts = [str(each) for each in permissions]
    taken = AlreadyExists(format_lazy(_("There is a role “{name}”."), name=name))
    if CustomRole.objects.filter(name__iexact=name).exists():
        raise taken
    try:
        with transaction.atomic():
            return CustomRole.objects.create(name=name, description=description, permissions=texts)
    except IntegrityError:
        raise taken from None


def version(role: CustomRole) -> str:
    """Return the version of a role for forms and as ETag."""
    return version_of(role.state)


@transaction.atomic
def change_role(
    by: Caller,
    role: CustomRole,
    description: str,
    permissions: Sequence[Permission],
    expected: str | None = None,
) -> CustomRole:
    """Change a role; the caller must hold the permissions before and after the change.

    Raises PreconditionFailed when the role has another version than `expected`.
    """
    role = locked(role, GONE)
    check_unchanged(expected, version(role))
    check_held(by, [*role.parsed, *permissions])
    role.description, role.permissions = description, [str(each) for each in permissions]
    role.save(update_fields=["description", "permissions"])
    return role


@transaction.atomic
def delete_role(by: Caller, role: CustomRole, expected: str | None = None) -> None:
    """Delete a role whose permissions the caller holds.

    Raises PreconditionFailed when the role has another version than `expected`.
    """
    role = locked(role, GONE)
    check_unchanged(expected, version(role))
    check_held(by, role.parsed)
    role.delete()


def assign(by: Caller, user: User, roles: Sequence[CustomRole]) -> None:
    """Give the account exactly these roles beside the built-in role."""
    if len(roles) > ROLES_PER_USER_MAX:
        most = format_lazy(_("An account has {count} roles at most."), count=ROLES_PER_USER_MAX)
        raise Unusable(most)
    check_not_above(by, user)
    check_held(by, [each for role in roles for each in role.parsed])
    user.profile.roles.set(roles)
    user.profile.__dict__.pop("custom_permissions", None)


def check_held(by: Caller, permissions: Iterable[Permission]) -> None:
    """Raise NotAllowedNow for permissions that the caller does not hold."""
    wanted = tuple(permissions)
    for layer in layers_of(by) or [()]:
        if beyond := not_covered(wanted, layer):
            listed = ", ".join(str(each) for each in beyond[:BEYOND_SHOWN_MAX])
            raise NotAllowedNow(
                format_lazy(
                    _("You do not have these permissions yourself: {permissions}"),
                    permissions=listed,
                ),
                hint=_("An administrator with these permissions can do this."),
            )


def check_not_above(by: Caller, user: User) -> None:
    """Raise NotAllowedNow for an account with permissions that the caller does not hold.

    Otherwise a new password or a role would give the caller the rights of the account.
    """
    check_held(by, [each.permission for each in held_by(user)])


def users_of_built_in() -> dict[str, int]:
    """Return the number of accounts of each built-in role."""
    counts = Profile.objects.order_by().values_list("role").annotate(Count("pk"))
    return dict.fromkeys(Role.values, 0) | dict(counts)


def who_may(action: Action, target: Target) -> list[Holder]:
    """Return the enabled accounts with the right to `action`, each with its first permission."""
    users = User.objects.filter(is_active=True).select_related("profile")
    holders = []
    for user in users.prefetch_related("profile__roles").order_by("username"):
        reason = next((h for h in held_by(user) if h.permission.allows(action, target)), None)
        if reason is not None:
            holders.append(Holder(user.get_username(), reason))
    return holders
