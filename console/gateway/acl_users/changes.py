"""Commands that create, edit and delete users with their access control lists.

The processes of a broker name follow the master: a change brings all of them to the same state.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.acl_users.entries import Entry, acl_of, read_rule
from console.gateway.acl_users.listing import (
    SUBJECT_PREFIX,
    AclUser,
    Tables,
    no_such_user,
    read_tables,
    user_detail,
)
from console.gateway.acl_users.refusals import explained
from console.gateway.brokers.listing import broker_refs, masters
from console.gateway.changes import (
    BrokerOutcome,
    FieldChange,
    brokers_for_new,
    brokers_named,
    check_unchanged,
    etag_of,
)
from console.gateway.clients import all_clients, signing_clients
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.processes import (
    change_each,
    change_held,
    check_not_signer,
    held,
    leading,
    processes_of,
    unchanged,
    unreachable,
)
from core_broker.remoting.bodies import UserInfo

#: Random bytes of a generated password; the password has 32 characters.
PASSWORD_BYTES: Final = 24

USER_TYPE, USER_STATUS = "userType", "userStatus"
MISSING: Final = _("The user is missing on this broker.")
OTHER_SIGNER: Final = _("Save the keys of another super user on the page Credentials first.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AclUserSettings:
    """The settable fields of a user; None keeps each broker's value.

    `entries` replaces the list. `rules` then sets single entries by `Entry.key`: to `Entry.rule`,
    or None to remove the entry.
    """

    user_type: str | None = None
    user_status: str | None = None
    entries: tuple[Entry, ...] | None = None
    rules: Mapping[str, str | None] = field(default_factory=dict)
    password: str | None = field(default=None, repr=False)

    def on(self, user: AclUser) -> AclUser:
        """Return the user with the settings applied."""
        entries = {entry.key: entry for entry in user.entries}
        if self.entries is not None:
            entries = {entry.key: entry for entry in self.entries}
        for key, rule in self.rules.items():
            if rule is None:
                entries.pop(key, None)
            else:
                entries[key] = read_rule(key, rule)
        return AclUser(
            user.username,
            self.user_type or user.user_type,
            self.user_status or user.user_status,
            tuple(entries.values()),
        )


@dataclass(frozen=True, slots=True)
class AclUserImpact:
    """The objects that the deletion of a user removes."""

    brokers: tuple[str, ...]
    user_type: str | None
    entries: int
    #: See `signing_clients`.
    clients: int | None


@question(fresh_for_ms=1_000)
async def user_impact(session: ClusterSession, name: str) -> Partial[AclUserImpact]:
    """The brokers and the list that a deletion affects."""
    answer = await session.ask(user_detail, name)
    row = answer.value.row
    connected = await session.ask(all_clients)
    return Partial(
        AclUserImpact(
            row.brokers, row.user_type, row.entries, signing_clients(name, connected.value)
        ),
        merge_failures(answer.failures, connected.failures),
    )


def new_password() -> str:
    """Return a random password of letters, digits, “-” and “_”."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


@command()
async def create_user(
    session: ClusterSession,
    name: str,
    settings: AclUserSettings,
    brokers: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Create the user on the named brokers (default: all); AlreadyExists when it exists there.

    `settings` must have a password. With `dry_run`, the command only checks.
    """
    with explained():
        tables, _failures = await read_tables(session)
    refs = brokers_for_new(
        await masters(session),
        brokers,
        [ref for ref, table in tables.items() if name in table],
        lambda names: format_lazy(
            _("The user “{name}” is already on {brokers}."), name=name, brokers=names
        ),
    )
    targets = await processes_of(session, refs)
    if dry_run:
        return unchanged(targets)
    wanted = new_config(name, settings)

    async def create(ref: BrokerRef) -> None:
        present = tables.get(ref, {}).get(name)
        await _bring(session, ref, present, wanted, settings.password)

    return await change_each(session, targets, create)


@command()
async def update_user(
    session: ClusterSession,
    name: str,
    settings: AclUserSettings,
    brokers: Sequence[str] | None = None,
    expected_etag: str | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Change the user on the named brokers (default: brokers with the user)."""
    tables, failures = await _held(session, name)
    led = dict(leading(tables, name))
    present = dict(held(tables, name))
    check_unchanged(expected_etag, etag_of(led.items()))
    chosen = {ref.name: settings.on(led[ref]) for ref in brokers_named(list(led), brokers)}
    for ref, user in led.items():
        after = chosen.get(ref.name, user)
        if _is_weaker(user, after):
            check_not_signer(session, name, OTHER_SIGNER)
    targets = [ref for ref in await broker_refs(session) if ref.name in chosen]

    async def update(ref: BrokerRef, user: AclUser) -> None:
        await _bring(session, ref, user, chosen[ref.name], settings.password)

    return await change_held(session, targets, present, failures, update, str(MISSING))


@command()
async def set_password(
    session: ClusterSession, name: str, password: str, *, dry_run: bool = False
) -> tuple[BrokerOutcome, ...]:
    """Set the password on all processes with the user; with `dry_run`, the command only checks."""
    tables, failures = await _held(session, name)
    check_not_signer(session, name, OTHER_SIGNER)
    info = UserInfo(username=name, password=password)
    present = dict(held(tables, name))
    targets = list(present)
    if dry_run:
        return unchanged(targets)

    async def update(ref: BrokerRef, _present: AclUser) -> None:
        await session.admin.update_user(ref.addr, info)

    targets += await unreachable(session, targets, failures)
    return await change_held(session, targets, present, failures, update, str(MISSING))


@command()
async def delete_user(
    session: ClusterSession,
    name: str,
    expected_etag: str | None = None,
    *,
    dry_run: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Delete the user and the user's list on all processes.

    With `dry_run`, the command only checks, and returns the processes that have the user.
    """
    tables, failures = await _held(session, name)
    check_unchanged(expected_etag, etag_of(leading(tables, name)))
    check_not_signer(session, name, OTHER_SIGNER)
    present = dict(held(tables, name))
    targets = list(present)
    if dry_run:
        return unchanged(targets)

    async def delete(ref: BrokerRef, _present: AclUser) -> None:
        await session.admin.delete_user(ref.addr, name)

    targets += await unreachable(session, targets, failures)
    return await change_held(session, targets, present, failures, delete, str(MISSING))


def new_config(name: str, settings: AclUserSettings) -> AclUser:
    """Return a new user: the settings over RocketMQ's defaults."""
    return settings.on(AclUser(name, "Normal", "enable"))


def fields_of(user: AclUser) -> dict[str, Any]:
    """Return type and status under RocketMQ's names, and the rule of each entry by `Entry.key`."""
    rules = {entry.key: entry.rule for entry in user.entries}
    return {USER_TYPE: user.user_type, USER_STATUS: user.user_status, **rules}


def settings_from(fields: Mapping[str, Any]) -> AclUserSettings:
    """Return settings from the names of `fields_of`; absent fields keep their values."""
    rules = {key: rule for key, rule in fields.items() if key not in (USER_TYPE, USER_STATUS)}
    return AclUserSettings(
        user_type=fields.get(USER_TYPE), user_status=fields.get(USER_STATUS), rules=rules
    )


def differences(
    configs: Iterable[tuple[BrokerRef, AclUser]], settings: AclUserSettings
) -> tuple[FieldChange, ...]:
    """Return the changed fields and entries by broker; empty when nothing changes."""
    changes = []
    for ref, user in configs:
        before, after = fields_of(user), fields_of(settings.on(user))
        changes += [
            FieldChange(ref.name, name, before.get(name), after.get(name))
            for name in dict.fromkeys([*before, *after])
            if before.get(name) != after.get(name)
        ]
    return tuple(changes)


def _is_weaker(before: AclUser, after: AclUser) -> bool:
    """Whether the user loses rights by type or status."""
    loses_type = before.user_type == "Super" and after.user_type != "Super"
    return loses_type or (before.user_status != "disable" and after.user_status == "disable")


async def _held(session: ClusterSession, name: str) -> tuple[Tables, tuple[BrokerFailure, ...]]:
    """Read the users of all processes; raises NotFound when no process has the user."""
    with explained():
        tables, failures = await read_tables(session)
    if not any(name in table for table in tables.values()):
        raise no_such_user(name, failures)
    return tables, failures


async def _bring(
    session: ClusterSession,
    ref: BrokerRef,
    present: AclUser | None,
    wanted: AclUser,
    password: str | None,
) -> None:
    """Bring the user on one process to the wanted state.

    A user is disabled before and enabled after the change of the list. New entries come before the
    removal of old ones: no request is decided without both.
    """
    admin, name = session.admin, wanted.username
    info = UserInfo(
        username=name,
        password=password,
        user_type=wanted.user_type,
        user_status=wanted.user_status,
    )
    put_entries = partial(_put_entries, session, ref, present, wanted)
    if present is None:
        await admin.create_user(ref.addr, info)
        await put_entries()
        return
    is_changed = replace(wanted, entries=()) != replace(present, entries=())
    steps = [put_entries]
    if is_changed or password is not None:
        change_user = partial(admin.update_user, ref.addr, info)
        steps.insert(0 if wanted.user_status == "disable" else 1, change_user)
    for step in steps:
        await step()


async def _put_entries(
    session: ClusterSession, ref: BrokerRef, present: AclUser | None, wanted: AclUser
) -> None:
    """Send the entries that differ, then delete the entries that are gone."""
    subject = SUBJECT_PREFIX + wanted.username
    before = {entry.key: entry for entry in (present.entries if present else ())}
    after = {entry.key: entry for entry in wanted.entries}
    changed = [entry for key, entry in after.items() if before.get(key) != entry]
    if changed:
        await session.admin.update_acl(ref.addr, acl_of(subject, changed))
    for key, entry in before.items():
        if key not in after:
            await session.admin.delete_acl(ref.addr, subject, entry.resource, entry.policy_type)
