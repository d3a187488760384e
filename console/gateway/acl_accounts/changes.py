"""Commands that create, edit and delete accounts, on all processes of the brokers.

A Gantry broker changes an account without the secret key (60005). RocketMQ's code 50 needs the
secret key: the command reads the key from the broker, and sends the key back to the same broker.
"""

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.acl_accounts.listing import (
    account_detail,
    check_on,
    fields_of,
    no_such_account,
    tables_of,
)
from console.gateway.acl_accounts.processes import AclAccount, AclProcess, read_processes
from console.gateway.brokers.listing import masters
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
from console.gateway.engine.errors import NotAllowedNow
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.processes import (
    change_each,
    change_held,
    check_not_signer,
    held,
    label,
    leading,
    processes_of,
    unchanged,
    unreachable,
)
from core_broker.client.admin.access import AccessAccount
from core_broker.remoting.bodies import PlainAccessConfig

#: Random bytes of a generated secret key; the key has 32 characters.
SECRET_BYTES: Final = 24
MISSING: Final = _("The account is missing on this broker.")
OTHER_SIGNER: Final = _(
    "Save the keys of another account with admin: true on the page Credentials first."
)
_TOPIC, _GROUP = "Topic:", "Group:"


@dataclass(frozen=True, slots=True, kw_only=True)
class AclAccountSettings:
    """The settable fields of an account; None keeps each broker's value.

    `permissions` then sets single permissions by `Topic:name` or `Group:name`; None removes one.
    """

    admin: bool | None = None
    white_remote_address: str | None = None
    default_topic_perm: str | None = None
    default_group_perm: str | None = None
    topic_perms: tuple[str, ...] | None = None
    group_perms: tuple[str, ...] | None = None
    permissions: Mapping[str, str | None] = field(default_factory=dict)
    secret_key: str | None = field(default=None, repr=False)

    def on(self, account: AclAccount) -> AclAccount:
        """Return the account with the settings applied."""
        given = {
            name: value
            for name in AclAccount.__slots__
            if name != "access_key" and (value := getattr(self, name)) is not None
        }
        after = replace(account, **given)
        return replace(
            after,
            topic_perms=self._with_permissions(_TOPIC, after.topic_perms),
            group_perms=self._with_permissions(_GROUP, after.group_perms),
        )

    def _with_permissions(self, kind: str, items: tuple[str, ...]) -> tuple[str, ...]:
        words = {name: word for name, _sign, word in (item.rpartition("=") for item in items)}
        for key, word in self.permissions.items():
            if key.startswith(kind):
                name = key.removeprefix(kind)
                if word is None:
                    words.pop(name, None)
                else:
                    words[name] = word
        return tuple(f"{name}={word}" for name, word in words.items())


@dataclass(frozen=True, slots=True)
class AclAccountImpact:
    """The objects that the deletion of an account removes."""

    brokers: tuple[str, ...]
    admin: bool
    permissions: int
    #: See `signing_clients`.
    clients: int | None


@question(fresh_for_ms=1_000)
async def account_impact(session: ClusterSession, name: str) -> Partial[AclAccountImpact]:
    """The brokers, permissions and clients that a deletion affects."""
    answer = await session.ask(account_detail, name)
    row = answer.value.row
    connected = await session.ask(all_clients)
    clients = signing_clients(name, connected.value)
    return Partial(
        AclAccountImpact(row.brokers, row.admin, row.permissions, clients),
        merge_failures(answer.failures, connected.failures),
    )


def new_secret_key() -> str:
    """Return a random secret key of letters, digits, “-” and “_”."""
    return secrets.token_urlsafe(SECRET_BYTES)


@command()
async def create_account(
    session: ClusterSession,
    name: str,
    settings: AclAccountSettings,
    brokers: Sequence[str] | None = None,
    *,
    dry_run: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Create the account on the named brokers (default: all with ACL 1.0).

    AlreadyExists when the account exists there. `settings` must have a secret key. With `dry_run`,
    the command only checks.
    """
    processes, _failures = await read_processes(session)
    check_on(processes)
    refs = brokers_for_new(
        [ref for ref in await masters(session) if ref in tables_of(processes)],
        brokers,
        [ref for ref, process in processes.items() if name in process.accounts],
        lambda names: format_lazy(
            _("The account “{name}” is already on {brokers}."), name=name, brokers=names
        ),
    )
    account = new_config(name, settings)
    targets = [ref for ref in await processes_of(session, refs) if _may_be_on(processes, ref)]
    for ref in targets:
        _check_for(ref, processes.get(ref), account)
    if dry_run:
        return unchanged(targets)
    return await change_each(
        session,
        targets,
        lambda ref: _put(session, ref, processes.get(ref), account, settings.secret_key),
    )


@command()
async def update_account(
    session: ClusterSession,
    name: str,
    settings: AclAccountSettings,
    brokers: Sequence[str] | None = None,
    expected_etag: str | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Change the account on the named brokers (default: brokers with the account)."""
    processes, present, failures = await _held(session, name)
    led = dict(leading(tables_of(processes), name))
    check_unchanged(expected_etag, etag_of(led.items()))
    chosen = {ref.name: settings.on(led[ref]) for ref in brokers_named(list(led), brokers)}
    if any(led[ref].admin and not chosen[ref.name].admin for ref in led if ref.name in chosen):
        check_not_signer(session, name, OTHER_SIGNER)
    targets = await processes_of(session, [ref for ref in led if ref.name in chosen])
    targets = [ref for ref in targets if _may_be_on(processes, ref)]
    for ref in targets:
        _check_for(ref, processes.get(ref), chosen[ref.name], present.get(ref))

    async def update(ref: BrokerRef, _present: AclAccount) -> None:
        await _put(session, ref, processes.get(ref), chosen[ref.name], settings.secret_key)

    return await change_held(session, targets, present, failures, update, str(MISSING))


@command()
async def set_secret_key(
    session: ClusterSession, name: str, secret_key: str, *, dry_run: bool = False
) -> tuple[BrokerOutcome, ...]:
    """Set the secret key on all processes with the account; `dry_run` only checks."""
    processes, present, failures = await _held(session, name)
    check_not_signer(session, name, OTHER_SIGNER)
    targets = list(present)
    if dry_run:
        return unchanged(targets)

    async def update(ref: BrokerRef, account: AclAccount) -> None:
        await _put(session, ref, processes.get(ref), account, secret_key)

    targets += await unreachable(session, targets, failures)
    return await change_held(session, targets, present, failures, update, str(MISSING))


@command()
async def delete_account(
    session: ClusterSession,
    name: str,
    expected_etag: str | None = None,
    *,
    dry_run: bool = False,
) -> tuple[BrokerOutcome, ...]:
    """Delete the account on all processes.

    With `dry_run`, the command only checks, and returns the processes that have the account.
    """
    processes, present, failures = await _held(session, name)
    check_unchanged(expected_etag, etag_of(leading(tables_of(processes), name)))
    check_not_signer(session, name, OTHER_SIGNER)
    targets = list(present)
    if dry_run:
        return unchanged(targets)

    async def delete(ref: BrokerRef, _account: AclAccount) -> None:
        await session.admin.delete_access_account(ref.addr, name)

    targets += await unreachable(session, targets, failures)
    return await change_held(session, targets, present, failures, delete, str(MISSING))


def new_config(name: str, settings: AclAccountSettings) -> AclAccount:
    """Return a new account: the settings over RocketMQ's defaults."""
    return settings.on(AclAccount(name))


def settings_from(fields: Mapping[str, Any]) -> AclAccountSettings:
    """Return settings from the names of `fields_of`; absent fields keep their values."""
    return AclAccountSettings(
        admin=fields.get("admin"),
        white_remote_address=fields.get("whiteRemoteAddress"),
        default_topic_perm=fields.get("defaultTopicPerm"),
        default_group_perm=fields.get("defaultGroupPerm"),
        permissions={key: word for key, word in fields.items() if key.startswith((_TOPIC, _GROUP))},
    )


def differences(
    configs: Iterable[tuple[BrokerRef, AclAccount]], settings: AclAccountSettings
) -> tuple[FieldChange, ...]:
    """Return the changed fields and permissions by broker; empty when nothing changes."""
    changes = []
    for ref, account in configs:
        before, after = fields_of(account), fields_of(settings.on(account))
        changes += [
            FieldChange(ref.name, name, before.get(name), after.get(name))
            for name in dict.fromkeys([*before, *after])
            if before.get(name) != after.get(name)
        ]
    return tuple(changes)


async def _held(
    session: ClusterSession, name: str
) -> tuple[dict[BrokerRef, AclProcess], dict[BrokerRef, AclAccount], tuple[BrokerFailure, ...]]:
    """Read all processes; the account by process. NotFound when no process has the account."""
    processes, failures = await read_processes(session)
    check_on(processes)
    present = dict(held(tables_of(processes), name))
    if not present:
        raise no_such_account(name, failures)
    return processes, present, failures


def _may_be_on(processes: Mapping[BrokerRef, AclProcess], ref: BrokerRef) -> bool:
    """Whether the process has ACL 1.0, or did not answer."""
    process = processes.get(ref)
    return process is None or process.state == "on"


def _check_for(
    ref: BrokerRef,
    process: AclProcess | None,
    after: AclAccount,
    before: AclAccount | None = None,
) -> None:
    """Raise NotAllowedNow for an account that a RocketMQ broker cannot keep."""
    if process is None or process.is_gantry:
        return
    if "/" in after.white_remote_address:
        raise NotAllowedNow(
            format_lazy(_("{broker} knows no CIDR blocks."), broker=label(ref)),
            hint=_("Write 10.0.0.* or 10.0.0.1-20 for RocketMQ brokers."),
        )
    if before is not None and (
        (before.topic_perms and not after.topic_perms)
        or (before.group_perms and not after.group_perms)
    ):
        raise NotAllowedNow(
            format_lazy(
                _("{broker} takes no command that empties a list of permissions."),
                broker=label(ref),
            ),
            hint=_("Keep a permission such as name=DENY, or delete and create the account."),
        )


async def _put(
    session: ClusterSession,
    ref: BrokerRef,
    process: AclProcess | None,
    account: AclAccount,
    secret_key: str | None,
) -> None:
    """Send all fields of the account; the secret key stays without `secret_key`."""
    if process is not None and not process.is_gantry:
        await _put_rocketmq(session, ref, account, secret_key)
        return
    body = PlainAccessConfig(
        access_key=account.access_key,
        secret_key=secret_key,
        white_remote_address=account.white_remote_address,
        admin=account.admin,
        default_topic_perm=account.default_topic_perm,
        default_group_perm=account.default_group_perm,
        topic_perms=list(account.topic_perms),
        group_perms=list(account.group_perms),
    )
    await session.admin.put_access_account(ref.addr, body)


async def _put_rocketmq(
    session: ClusterSession, ref: BrokerRef, account: AclAccount, secret_key: str | None
) -> None:
    if secret_key is None:
        config = await session.admin.access_accounts(ref.addr)
        secret_key = next(
            each.secret_key
            for each in config.plain_access_configs or ()
            if each.access_key == account.access_key
        )
    sent = AccessAccount(
        account.access_key,
        secret_key,
        admin=account.admin,
        white_remote_address=account.white_remote_address,
        default_topic_perm=account.default_topic_perm,
        default_group_perm=account.default_group_perm,
        topic_perms=account.topic_perms or None,
        group_perms=account.group_perms or None,
    )
    await session.admin.update_access_account(ref.addr, sent)
