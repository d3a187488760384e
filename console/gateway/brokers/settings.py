"""Settings of brokers: compare them over the cluster, change the keys that are safe at run time.

The console changes only keys that a running Gantry broker accepts, also on RocketMQ brokers.
There, request code 25 sets nearly any key; remote code execution was possible (CVE-2023-33246).
The broker validates the value. RocketMQ ignores unknown keys and values without an error, so the
console reads changes back.
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
from console.gateway.engine.errors import NotAllowedNow, NotFound
from console.gateway.engine.questions import command, question
from console.gateway.engine.session import BrokerRef, ClusterSession
from core_broker.config import BrokerConfig, property_text

VALUE_CHARS_MAX = 4_096
#: Keys of a broker's identity, addresses and paths: a difference between brokers is expected.
OWN_KEYS = frozenset(
    {
        *("brokerName", "brokerId", "brokerRole", "brokerIP1", "brokerIP2", "bindAddress"),
        *("listenPort", "fastListenPort", "haListenPort", "httpPort", "haMasterAddress"),
        *("metricsTokenFile",),
        *("storePathRootDir", "storePathCommitLog", "storePathConsumeQueue", "storePathIndex"),
        *("storeCheckpoint", "abortFile", "rocketmqHome", "brokerConfigPath", "messageStorePlugIn"),
        *("startAcceptSendRequestTimeStamp", "storePathDLedgerCommitLog", "storePathEpochFile"),
        *("dLegerSelfId", "aclConfigPath", "authConfigPath", "brokerStartTime"),
    }
)
#: Keys that have an effect on an Apache RocketMQ broker only; a Gantry broker refuses the change
#: and names the reason.
APACHE_ONLY = frozenset(
    {
        *("transferMsgByHeap", "flushCommitLogTimed", "commitIntervalCommitLog"),
        *("haSlaveFallbehindMax", "slaveTimeout"),
    }
)
#: A key of Gantry brokers, unknown to brokers of Apache RocketMQ.
GANTRY_KEY = "kernelEnable"
#: Keys that the console changes while brokers run.
CHANGEABLE = BrokerConfig.updatable_keys() | APACHE_ONLY
#: Default values; keys with a machine-dependent default are missing.
DEFAULTS: Mapping[str, str] = {
    key: property_text(each.default)
    for key, each in BrokerConfig.keys().items()
    if each.default is not MISSING
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A key over the reachable brokers with the key."""

    name: str
    values: Mapping[str, str]
    default: str | None

    @property
    def differs(self) -> bool:
        return len(set(self.values.values())) > 1

    @property
    def own(self) -> bool:
        """True for a key whose value differs from broker to broker by design."""
        return self.name in OWN_KEYS

    @property
    def secret(self) -> bool:
        return is_secret(self.name)

    @property
    def changeable(self) -> bool:
        return self.name in CHANGEABLE and not self.secret

    @property
    def value(self) -> str | None:
        """The common value of all brokers; None when the values differ."""
        found = set(self.values.values())
        return found.pop() if len(found) == 1 else None

    @property
    def is_default(self) -> bool:
        return self.value is not None and self.value == self.default


@dataclass(frozen=True, slots=True)
class ClusterSettings:
    """The settings by key; `brokers` lists the reachable brokers, `apache` the reachable brokers of
    Apache RocketMQ."""

    brokers: tuple[str, ...]
    apache: tuple[str, ...]
    settings: tuple[Setting, ...]
    etag: str


def label(ref: BrokerRef) -> str:
    """Return the display name of a broker process, with the broker id of a slave."""
    return ref.name if ref.is_master else f"{ref.name}:{ref.id}"


@question(fresh_for_ms=1_000)
async def broker_settings(session: ClusterSession) -> Partial[ClusterSettings]:
    """All keys of all brokers, in order of key."""
    tables, failures = await _tables(session)
    by_key: dict[str, dict[str, str]] = {}
    for ref, table in tables.items():
        for key, value in shown(table).items():
            by_key.setdefault(key, {})[label(ref)] = value
    settings = (Setting(key, by_key[key], DEFAULTS.get(key)) for key in sorted(by_key))
    apache = tuple(label(ref) for ref, table in tables.items() if GANTRY_KEY not in table)
    return Partial(
        ClusterSettings(
            tuple(map(label, tables)), apache, tuple(settings), etag_of(tables.items())
        ),
        failures,
    )


@command()
async def change_settings(
    session: ClusterSession,
    wanted: Mapping[str, str],
    brokers: Sequence[str] | None = None,
    expected_etag: str | None = None,
) -> tuple[BrokerOutcome, ...]:
    """Set keys on the named brokers (default: all); a broker applies all keys or none."""
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
    results = outcomes(refs, failures)
    return tuple(_checked(outcome, done) for outcome in results)


def check_changeable(wanted: Mapping[str, str]) -> None:
    """Raise NotAllowedNow for keys that the console must not change."""
    refused = sorted(key for key in wanted if key not in CHANGEABLE or is_secret(key))
    if refused:
        raise NotAllowedNow(
            format_lazy(_("{keys} cannot be changed from here."), keys=", ".join(refused)),
            hint=_("Change the broker's settings file, and start it again."),
        )


def differences(
    state: ClusterSettings, wanted: Mapping[str, str], brokers: Sequence[str] | None
) -> tuple[FieldChange, ...]:
    """Return the changes that the new values would make; NotFound for an unreachable broker."""
    names = list(brokers or state.brokers)
    missing = [name for name in names if name not in state.brokers]
    if missing:
        raise NotFound(
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
    """Return the processes with these labels; without labels, all processes."""
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
    """Report a broker that kept its previous value as failed."""
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
