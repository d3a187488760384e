"""Settings of brokers: compared over the cluster, and changed where that is safe while they run.

Only keys that a running Gantry broker takes may be changed, on brokers of RocketMQ too: its code 25
sets nearly anything, and remote code execution came of it (CVE-2023-33246). The broker judges the
value. RocketMQ passes over what it does not understand, so each change is read back.
"""

from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass

from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from console.gateway.brokers.listing import broker_refs
from console.gateway.brokers.secrets import is_secret, shown
from console.gateway.changes import (
    BrokerOutcome,
    FieldChange,
    brokers_named,
    check_unchanged,
    etag_of,
    outcomes,
)
from console.gateway.engine.answers import BrokerFailure, Partial
from console.gateway.engine.errors import NotAllowedNow, NotThere
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.config import BrokerConfig, property_text

VALUE_CHARS_MAX = 4_096
#: Keys that say which broker it is and where it lives; they differ from broker to broker.
OWN_KEYS = frozenset(
    {
        *("brokerName", "brokerId", "brokerRole", "brokerIP1", "brokerIP2", "bindAddress"),
        *("listenPort", "fastListenPort", "haListenPort", "httpPort", "haMasterAddress"),
        *("storePathRootDir", "storePathCommitLog", "storePathConsumeQueue", "storePathIndex"),
        *("storeCheckpoint", "abortFile", "rocketmqHome", "brokerConfigPath", "messageStorePlugIn"),
        *("startAcceptSendRequestTimeStamp", "storePathDLedgerCommitLog", "storePathEpochFile"),
        *("dLegerSelfId", "aclConfigPath", "authConfigPath", "brokerStartTime"),
    }
)
CHANGEABLE = BrokerConfig.updatable_keys()
#: Those that do not depend on the machine.
DEFAULTS: Mapping[str, str] = {
    key: property_text(each.default)
    for key, each in BrokerConfig.keys().items()
    if each.default is not MISSING
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One key over all brokers that answered. A broker that does not know it is left out."""

    name: str
    values: Mapping[str, str]
    default: str | None

    @property
    def differs(self) -> bool:
        return len(set(self.values.values())) > 1

    @property
    def own(self) -> bool:
        """Whether it is expected to differ."""
        return self.name in OWN_KEYS

    @property
    def secret(self) -> bool:
        return is_secret(self.name)

    @property
    def changeable(self) -> bool:
        return self.name in CHANGEABLE and not self.secret

    @property
    def value(self) -> str | None:
        """The one value of all brokers; None when they differ."""
        found = set(self.values.values())
        return found.pop() if len(found) == 1 else None

    @property
    def is_default(self) -> bool:
        return self.value is not None and self.value == self.default


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The settings of all brokers, by key; `brokers` are those that answered."""

    brokers: tuple[str, ...]
    settings: tuple[Setting, ...]
    etag: str


def label(ref: BrokerRef) -> str:
    """What a broker process is called where slaves stand beside masters."""
    return ref.name if ref.is_master else f"{ref.name}:{ref.id}"


@question(fresh_for_ms=1_000)
async def broker_settings(session: ClusterSession) -> Partial[ClusterSettings]:
    """All keys of all brokers in order of name."""
    tables, failures = await _tables(session)
    by_key: dict[str, dict[str, str]] = {}
    for ref, table in tables.items():
        for key, value in shown(table).items():
            by_key.setdefault(key, {})[label(ref)] = value
    settings = (Setting(key, by_key[key], DEFAULTS.get(key)) for key in sorted(by_key))
    return Partial(
        ClusterSettings(tuple(map(label, tables)), tuple(settings), etag_of(tables.items())),
        failures,
    )


@command()
async def change_settings(
    session: ClusterSession,
    wanted: Mapping[str, str],
    brokers: Sequence[str] | None = None,
    expected_etag: str | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Set these keys on the named brokers, or on all; each broker takes all of them or none."""
    check_changeable(wanted)
    tables, _failures = await _tables(session)
    check_unchanged(expected_etag, etag_of(tables.items()))
    refs = chosen_processes(list(tables), brokers)

    async def change(ref: BrokerRef) -> str | None:
        await session.admin.update_broker_config(ref.addr, wanted)
        now = await session.admin.broker_config(ref.addr)
        kept = [key for key, value in wanted.items() if now.get(key) != value]
        return ", ".join(kept) or None

    done, failures = await session.fan_out(refs, change)
    told = outcomes(refs, failures)
    return tuple(_checked(outcome, done) for outcome in told)


def check_changeable(wanted: Mapping[str, str]) -> None:
    """Raise NotAllowedNow for keys that may not be changed from here."""
    refused = sorted(key for key in wanted if key not in CHANGEABLE or is_secret(key))
    if refused:
        raise NotAllowedNow(
            format_lazy(_("{keys} cannot be changed from here."), keys=", ".join(refused)),
            hint=_("Change the broker's settings file, and start it again."),
        )


def differences(
    state: ClusterSettings, wanted: Mapping[str, str], brokers: Sequence[str] | None
) -> tuple[FieldChange, ...]:
    """What the new values would change; NotThere for a broker that did not answer."""
    names = list(brokers or state.brokers)
    missing = [name for name in names if name not in state.brokers]
    if missing:
        raise NotThere(
            format_lazy(_("The cluster has no broker named {names}."), names=", ".join(missing))
        )
    known = {setting.name: setting for setting in state.settings}
    return tuple(
        FieldChange(broker, key, known[key].values.get(broker) if key in known else None, value)
        for key, value in wanted.items()
        for broker in names
        if key not in known or known[key].values.get(broker) != value
    )


def chosen_processes(refs: Sequence[BrokerRef], wanted: Sequence[str] | None) -> list[BrokerRef]:
    """The processes with these labels; all of them when no labels are given."""
    if not wanted:
        return list(refs)
    known = {label(ref): ref for ref in refs}
    missing = [name for name in wanted if name not in known]
    return (
        [known[name] for name in dict.fromkeys(wanted)]
        if not missing
        else brokers_named(refs, missing)
    )


def _checked(outcome: BrokerOutcome, done: Mapping[BrokerRef, str | None]) -> BrokerOutcome:
    """A broker that kept another value without a word did not take the change."""
    kept = next((keys for ref, keys in done.items() if ref.addr == outcome.addr), None)
    if outcome.error is not None or kept is None:
        return outcome
    reason = str(format_lazy(_("The broker kept its own value of {keys}."), keys=kept))
    return BrokerOutcome(outcome.broker, outcome.addr, reason)


async def _tables(
    session: ClusterSession,
) -> tuple[dict[BrokerRef, dict[str, str]], tuple[BrokerFailure, ...]]:
    return await session.fan_out(
        await broker_refs(session), lambda ref: session.admin.broker_config(ref.addr)
    )
