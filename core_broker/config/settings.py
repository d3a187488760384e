"""Declaration of settings: one dataclass field per key, with the rules of the key.

`flush_disk_type` is `flushDiskType` in a settings file. The rules of a key (limits, whether a
request may update the key, whether code reads it) stand in the metadata of its field; loader,
administration codes, console and documentation read them there.
"""

from collections.abc import Callable, Iterator
from dataclasses import Field, dataclass, field, fields
from typing import Any, TypeVar

#: Prefix of the variables of the environment that hold settings.
ENVIRONMENT_PREFIX = "ROCKETMQ_"
INT_MAX = 2**31 - 1
LONG_MAX = 2**63 - 1

# Keys whose camel case does not follow from the attribute's words.
_IRREGULAR_KEYS = {
    "broker_ip1": "brokerIP1",
    "broker_ip2": "brokerIP2",
    "check_crc_on_recover": "checkCRCOnRecover",
    "use_tls": "useTLS",
    "tls_enable": "tls.enable",
    "tls_config_file": "tls.config.file",
    "tls_test_mode_enable": "tls.test.mode.enable",
    "tls_server_need_client_auth": "tls.server.need.client.auth",
}
# Prefixes of attributes whose keys have dots: `tls_server_key_path` is `tls.server.keyPath`.
_DOTTED_PREFIXES = ("tls_server_", "tls_client_")

#: Shown in place of a secret.
HIDDEN = "***"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class KeyRules:
    """Limits and permissions of one key.

    `no_effect` is the reason why no code reads the key, "" for a key with an effect. A key without
    effect is never updatable. The value of a secret key is never shown.
    """

    low: int = 0
    high: int = LONG_MAX
    updatable: bool = False
    important: bool = False
    no_effect: str = ""
    is_secret: bool = False


NO_RULES = KeyRules()


def key(
    default: T,
    *,
    low: int = 0,
    high: int = LONG_MAX,
    updatable: bool = False,
    important: bool = False,
    no_effect: str = "",
    is_secret: bool = False,
) -> T:
    """Declare one setting with its default and rules; `-m` prints the `important` settings.

    Raises ValueError for a key that is both updatable and without effect: an update that changes
    nothing would be acknowledged.
    """
    if updatable and no_effect:
        raise ValueError("a key without effect cannot be updatable")
    rules = KeyRules(low, high, updatable, important, no_effect, is_secret)
    return field(default=default, metadata={"rules": rules})


def computed(factory: Callable[[], T], *, important: bool = False) -> T:
    """Declare one setting whose default depends on the machine."""
    rules = KeyRules(important=important)
    return field(default_factory=factory, metadata={"rules": rules})


def rules_of(setting: "Field[Any]") -> KeyRules:
    """Return the rules that `key` attached to a field."""
    rules: KeyRules = setting.metadata.get("rules", NO_RULES)
    return rules


def java_key(attribute: str) -> str:
    """Return RocketMQ's spelling of an attribute: `broker_ip1` is `brokerIP1`."""
    if attribute in _IRREGULAR_KEYS:
        return _IRREGULAR_KEYS[attribute]
    for prefix in _DOTTED_PREFIXES:
        if attribute.startswith(prefix):
            return prefix.replace("_", ".") + java_key(attribute.removeprefix(prefix))
    first, *rest = attribute.split("_")
    return first + "".join(word.capitalize() for word in rest)


def plain_name(name: str) -> str:
    """Return a key without case, underscores and dots: LISTEN_PORT and listenPort are equal."""
    return name.replace("_", "").replace(".", "").upper()


def property_text(value: object) -> str:
    """Return a value as RocketMQ writes it in a settings file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class Settings:
    """Base class of the settings of a broker and of a name server."""

    @classmethod
    def keys(cls) -> dict[str, "Field[Any]"]:
        """Map RocketMQ's key to the dataclass field of the setting, in declaration order."""
        return {java_key(setting.name): setting for setting in fields(cls)}

    @classmethod
    def updatable_keys(cls) -> frozenset[str]:
        """Return the keys that codes 25 and 318 may update while the process runs."""
        return frozenset(name for name, field in cls.keys().items() if rules_of(field).updatable)

    @classmethod
    def no_effect_keys(cls) -> dict[str, str]:
        """Map each key that no code reads to the reason."""
        rules = {name: rules_of(field) for name, field in cls.keys().items()}
        return {name: rule.no_effect for name, rule in rules.items() if rule.no_effect}

    def items(self) -> Iterator[tuple[str, str]]:
        """Yield every key with its value as text."""
        for name, setting in self.keys().items():
            yield name, property_text(getattr(self, setting.name))

    def to_properties(self) -> str:
        """Return `key=value` lines, the content of a settings file, with secrets."""
        return "".join(f"{name}={value}\n" for name, value in self.items())

    def shown_items(self) -> Iterator[tuple[str, str]]:
        """Yield every key with its value as text, *** for a secret that is set."""
        keys = self.keys()
        for name, value in self.items():
            yield name, HIDDEN if value and rules_of(keys[name]).is_secret else value

    def shown_properties(self) -> str:
        """Return `key=value` lines without secrets: the body of the answers to codes 26 and 319."""
        return "".join(f"{name}={value}\n" for name, value in self.shown_items())
