"""The global white list of each broker: question and command.

Commands replace the patterns of the broker's default file. A RocketMQ broker splits the patterns of
a command at each comma, and reports the patterns of all files as one list.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.acl_accounts.listing import check_on
from console.gateway.acl_accounts.processes import AclProcess, acl_processes, read_processes
from console.gateway.changes import (
    BrokerOutcome,
    FieldChange,
    brokers_named,
    check_unchanged,
    etag_of,
)
from console.gateway.engine.answers import Partial
from console.gateway.engine.errors import NotAllowedNow
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from console.gateway.processes import change_each, label, processes_of

#: The white list's key in plain_acl.yml.
FIELD: Final = "globalWhiteRemoteAddresses"
_SEPARATOR: Final = ", "


@dataclass(frozen=True, slots=True)
class WhiteList:
    """The patterns of one broker's default file, and those of further files."""

    patterns: tuple[str, ...]
    #: Path and patterns of further files, which commands of the console do not change.
    others: tuple[tuple[str, tuple[str, ...]], ...] = ()


Configs = tuple[tuple[BrokerRef, WhiteList], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WhiteListSettings:
    """The new patterns; None keeps each broker's patterns."""

    patterns: tuple[str, ...] | None = None

    def on(self, white_list: WhiteList) -> WhiteList:
        if self.patterns is None:
            return white_list
        return WhiteList(self.patterns, white_list.others)


@question(fresh_for_ms=1_000)
async def white_lists(session: ClusterSession) -> Partial[Configs]:
    """The white list of each process; NoAccessControl when no process lists accounts."""
    answer = await session.ask(acl_processes)
    check_on(answer.value)
    return Partial(_lists(answer.value), answer.failures)


@question(fresh_for_ms=1_000)
async def white_list_settings(session: ClusterSession) -> Partial[Configs]:
    """The white list by broker name, from the master."""
    answer = await session.ask(white_lists)
    return Partial(_leading(answer.value), answer.failures)


@command()
async def update_white_list(
    session: ClusterSession,
    name: str,
    settings: WhiteListSettings,
    brokers: Sequence[str] | None = None,
    expected_etag: str | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Replace the white list on the named brokers (default: all with ACL 1.0)."""
    processes, _failures = await read_processes(session)
    check_on(processes)
    led = dict(_leading(_lists(processes)))
    check_unchanged(expected_etag, etag_of(led.items()))
    chosen = {ref.name: settings.on(led[ref]) for ref in brokers_named(list(led), brokers)}
    targets = [
        ref
        for ref in await processes_of(session, [ref for ref in led if ref.name in chosen])
        if ref not in processes or processes[ref].state == "on"
    ]
    for ref in targets:
        _check_for(session, ref, processes.get(ref), chosen[ref.name])

    async def update(ref: BrokerRef) -> None:
        patterns = ",".join(chosen[ref.name].patterns)
        await session.admin.update_white_list(ref.addr, patterns)

    return await change_each(session, targets, update)


def fields_of(white_list: WhiteList) -> dict[str, str]:
    return {FIELD: _SEPARATOR.join(white_list.patterns)}


def settings_from(fields: Mapping[str, Any]) -> WhiteListSettings:
    """The inverse of `fields_of`."""
    text = fields.get(FIELD)
    if text is None:
        return WhiteListSettings()
    return WhiteListSettings(patterns=tuple(part for part in text.split(_SEPARATOR) if part))


def differences(
    configs: Iterable[tuple[BrokerRef, WhiteList]], settings: WhiteListSettings
) -> tuple[FieldChange, ...]:
    """Return the white lists that change, by broker."""
    pairs = [
        (ref, fields_of(one)[FIELD], fields_of(settings.on(one))[FIELD]) for ref, one in configs
    ]
    return tuple(
        FieldChange(ref.name, FIELD, before, after)
        for ref, before, after in pairs
        if before != after
    )


def _lists(processes: Mapping[BrokerRef, AclProcess]) -> Configs:
    return tuple(
        (
            ref,
            WhiteList(
                process.editable_patterns,
                tuple(
                    (file.path, file.patterns)
                    for file in process.files
                    if file.patterns and file.path != process.default_file
                ),
            ),
        )
        for ref, process in sorted(processes.items())
        if process.state == "on"
    )


def _leading(lists: Configs) -> Configs:
    first: dict[str, tuple[BrokerRef, WhiteList]] = {}
    for ref, white_list in lists:
        first.setdefault(ref.name, (ref, white_list))
    return tuple(first.values())


def _check_for(
    session: ClusterSession, ref: BrokerRef, process: AclProcess | None, after: WhiteList
) -> None:
    """Raise NotAllowedNow for a list that a broker cannot keep, or that locks the console out."""
    if process is None:
        return
    removed = set(process.editable_patterns) - set(after.patterns)
    if removed and session.signed_as is None:
        raise NotAllowedNow(
            _("The console's requests are not signed: the white list admits the console."),
            hint=_(
                "Save the keys of an account with admin: true on the page Credentials first; "
                "without its pattern, the console would be refused."
            ),
        )
    if process.is_gantry:
        return
    if len(process.files) > 1:
        raise NotAllowedNow(
            format_lazy(_("{broker} has several files with white lists."), broker=label(ref)),
            hint=_(
                "RocketMQ does not report which file has a pattern. Use “mqadmin "
                "updateGlobalWhiteAddr -p FILE”."
            ),
        )
    if any("," in pattern or "/" in pattern for pattern in after.patterns):
        raise NotAllowedNow(
            format_lazy(
                _("{broker} takes no lists in braces and no CIDR blocks."), broker=label(ref)
            ),
            hint=_("Write each address of 10.0.0.{1,2} as a pattern of its own."),
        )
