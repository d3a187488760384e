"""Questions about users and access control lists: the list and the configuration by broker.

Brokers do not replicate users: each process, master or slave, has its own. Passwords that a broker
returns are dropped.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.acl_users.entries import Entry, entries_of
from console.gateway.acl_users.refusals import explained
from console.gateway.brokers.listing import broker_refs, cluster_map, no_broker
from console.gateway.engine.answers import BrokerFailure, Partial, merge_failures
from console.gateway.engine.errors import NotFound
from console.gateway.engine.questions import question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.processes import held, label, leading, spread_of

SUBJECT_PREFIX = "User:"
AUTHORIZATION = "authorizationEnabled"
USER_TYPES = ("Super", "Normal")
USER_STATUSES = ("enable", "disable")


@dataclass(frozen=True, slots=True)
class AclUser:
    """A user on one broker. None: the broker did not report the value."""

    username: str
    user_type: str | None
    user_status: str | None
    entries: tuple[Entry, ...] = ()


Tables = Mapping[BrokerRef, Mapping[str, AclUser]]
Configs = tuple[tuple[BrokerRef, AclUser], ...]


@dataclass(frozen=True, slots=True)
class AclUserRow:
    """A user over all brokers. `brokers` have the user, `missing_on` answered without the user."""

    name: str
    user_type: str | None
    user_status: str | None
    entries: int
    brokers: tuple[str, ...]
    missing_on: tuple[str, ...]
    drift: bool


@dataclass(frozen=True, slots=True)
class AclUserDetail:
    """A user on all processes, and the processes without the user."""

    row: AclUserRow
    configs: Configs
    #: All keys of entries, and by process the rule of each key or None.
    rules: tuple[tuple[str, tuple[str | None, ...]], ...]


@question(fresh_for_ms=2_000, costly=True)
async def user_tables(session: ClusterSession) -> Partial[Tables]:
    """The users of each process by name."""
    with explained():
        tables, failures = await read_tables(session)
    return Partial(tables, failures)


async def read_tables(
    session: ClusterSession,
) -> tuple[dict[BrokerRef, Mapping[str, AclUser]], tuple[BrokerFailure, ...]]:
    """Read the users of all processes, not from the cache."""
    listed = await session.ask(cluster_map)
    refs = await broker_refs(session)
    if not refs:
        raise no_broker(session)

    async def ask(ref: BrokerRef) -> Mapping[str, AclUser]:
        users = await session.admin.users(ref.addr)
        acls = await session.admin.acls(ref.addr)
        entries = {acl.subject or "": entries_of(acl) for acl in acls}
        return {
            user.username: AclUser(
                user.username,
                user.user_type,
                user.user_status,
                entries.get(SUBJECT_PREFIX + user.username, ()),
            )
            for user in users
            if user.username
        }

    tables, failures = await session.fan_out(refs, ask, keep=("acl_users",))
    return tables, merge_failures(listed.failures, failures)


@question(fresh_for_ms=2_000, costly=True)
async def user_rows(session: ClusterSession) -> Partial[tuple[AclUserRow, ...]]:
    """All users in order of name."""
    answer = await session.ask(user_tables)
    return Partial(session.derived("acl_user_rows", answer.value, _rows), answer.failures)


def _rows(tables: Tables) -> tuple[AclUserRow, ...]:
    names = sorted({name for table in tables.values() for name in table})
    return tuple(_row(name, tables) for name in names)


def _row(name: str, tables: Tables) -> AclUserRow:
    _ref, first = held(tables, name)[0]
    spread = spread_of(tables, name)
    return AclUserRow(
        name=name,
        user_type=first.user_type,
        user_status=first.user_status,
        entries=len(first.entries),
        brokers=spread.brokers,
        missing_on=spread.missing_on,
        drift=spread.drift,
    )


@question(fresh_for_ms=1_000)
async def user_detail(session: ClusterSession, name: str) -> Partial[AclUserDetail]:
    """A user on all processes; NotFound when no broker has the user."""
    answer = await session.ask(user_tables)
    tables = answer.value
    configs = held(tables, name)
    if not configs:
        raise no_such_user(name, answer.failures)
    by_process = [{entry.key: entry.rule for entry in user.entries} for _ref, user in configs]
    keys = dict.fromkeys(key for rules in by_process for key in rules)
    rules = tuple((key, tuple(one.get(key) for one in by_process)) for key in keys)
    return Partial(AclUserDetail(_row(name, tables), configs, rules), answer.failures)


@question(fresh_for_ms=1_000)
async def user_settings(session: ClusterSession, name: str) -> Partial[Configs]:
    """The user by broker name, from the master where the master has the user."""
    answer = await session.ask(user_tables)
    configs = leading(answer.value, name)
    if not configs:
        raise no_such_user(name, answer.failures)
    return Partial(configs, answer.failures)


@question(fresh_for_ms=5_000)
async def unenforced_on(session: ClusterSession) -> Partial[tuple[str, ...]]:
    """The processes that check no entries (authorizationEnabled=false), as far as they answer."""
    configs, failures = await session.fan_out(
        await broker_refs(session),
        lambda ref: session.admin.broker_config(ref.addr),
        one_must_answer=False,
    )
    found = [ref for ref, config in configs.items() if config.get(AUTHORIZATION) == "false"]
    return Partial(tuple(map(label, sorted(found))), failures)


def no_such_user(name: str, failures: tuple[BrokerFailure, ...] = ()) -> NotFound:
    hint = _("A broker that did not answer may have the user.") if failures else ""
    return NotFound(
        format_lazy(_("No broker of the cluster has a user “{name}”."), name=name),
        hint=hint,
        failures=failures,
    )
