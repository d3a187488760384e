"""Loading of settings: defaults < NAMESRV_ADDR < file (-c) < ROCKETMQ_<KEY> < options.

NAMESRV_ADDR stands below the file because it does so in RocketMQ, where it is only a default.
All problems are collected and reported at once; unknown keys are only warned about, with the
nearest known key, because RocketMQ ignores them.
"""

import argparse
import difflib
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import Field, dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar, get_args

from core_broker.config import BrokerConfig, NamesrvConfig, Settings, rules_of
from core_broker.errors import SettingProblem, SettingsError
from core_broker.foreign_keys import (
    KEYS_WITHOUT_EFFECT,
    REFUSED_KEYS,
    REFUSED_VALUES,
    listing_of_others,
)
from core_broker.property_file import parse_properties

C = TypeVar("C", bound=Settings)

ENVIRONMENT_PREFIX = "ROCKETMQ_"
# Variables that containers of RocketMQ set for its virtual machine.
_JAVA_VARIABLES = ("JAVA_OPT", "JAVA_OPT_EXT")
# Variables of RocketMQ with that prefix that are not settings.
_OTHER_VARIABLES = {"SERIALIZETYPE", "ZONE", "ZONEMODE"}
# Keys that may stand in a request to change settings without being settings here.
_ACCEPTED = KEYS_WITHOUT_EFFECT.keys() | REFUSED_KEYS
_ADDRESS = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[^\s:;,\[\]]+):\d{1,5}")


@dataclass(frozen=True, slots=True)
class Given:
    """One value that somebody gave, with the place where it stands."""

    key: str
    value: str
    source: str
    line: int | None = None

    @property
    def where(self) -> str:
        return self.source if self.line is None else f"{self.source}:{self.line}"


@dataclass(frozen=True, slots=True)
class Loaded(Generic[C]):
    """The settings in force and where they come from.

    `sources` has an entry for every key that is not at its default. `listing` is set when the
    command line asked for a print-out (-p, -m, --check) instead of a start.
    """

    config: C
    file: Path | None
    sources: Mapping[str, str]
    warnings: tuple[str, ...]
    listing: str | None


def load_broker_config(
    argv: Sequence[str], environ: Mapping[str, str] = os.environ
) -> Loaded[BrokerConfig]:
    """Return the broker's settings; raises SettingsError with every problem found.

    `-h` prints the help and leaves with SystemExit(0), a wrong option with SystemExit(2).
    """
    loaded = _load(BrokerConfig, argv, environ, program="mqbroker")
    if loaded.config.broker_id != 0:
        # Only a slave has another id; RocketMQ forces it too.
        warning = f"brokerId={loaded.config.broker_id} is ignored: a master has the id 0"
        config = replace(loaded.config, broker_id=0)
        return replace(loaded, config=config, warnings=(*loaded.warnings, warning))
    return loaded


def load_namesrv_config(
    argv: Sequence[str], environ: Mapping[str, str] = os.environ
) -> Loaded[NamesrvConfig]:
    """Return the name server's settings, under the same contract as `load_broker_config`."""
    loaded = _load(NamesrvConfig, argv, environ, program="mqnamesrv")
    if loaded.file is not None and "configStorePath" not in loaded.sources:
        # Code 318 writes back to the file that was given, as RocketMQ does.
        config = replace(loaded.config, config_store_path=str(loaded.file))
        return replace(loaded, config=config)
    return loaded


def updated_settings(config: C, text: str) -> C:
    """Return a copy with the `key=value` lines of a code 25 or 318 request applied, all or none.

    Raises SettingsError for keys that are unknown or may not change while the process runs. A key
    that is sent with its present value is no change.
    """
    known = config.keys()
    current = dict(config.items())
    updatable = config.updatable_keys()
    problems: list[SettingProblem] = []
    given: list[Given] = []
    for entry in parse_properties(text):
        each = Given(entry.key, entry.value, "request")
        if entry.key in updatable:
            given.append(each)
        elif entry.key in known and entry.value != current[entry.key]:
            problems.append(_problem(each, "no change: the key is read at the start only"))
        elif refusal := _refusal(each):
            problems.append(_problem(each, refusal))
        elif entry.key not in known and entry.key not in _ACCEPTED:
            problems.append(_problem(each, "a known key", _nearest(entry.key, updatable)))
    values = _converted(config, given, problems)
    if problems:
        raise SettingsError(problems)
    return replace(config, **values)


def _load(
    kind: type[C], argv: Sequence[str], environ: Mapping[str, str], program: str
) -> Loaded[C]:
    options = _parser(program).parse_args(argv)
    problems: list[SettingProblem] = []
    warnings: list[str] = []
    file = Path(options.config).absolute() if options.config else None
    given = list(_from_default_address(kind, environ))
    if file is not None:
        given += _from_file(kind, file, problems, warnings)
    given += _from_environment(kind, environ, warnings)
    if options.namesrv is not None and "namesrvAddr" in kind.keys():  # noqa: SIM118
        given.append(Given("namesrvAddr", options.namesrv, "option -n"))
    values = _converted(kind, given, problems)
    if problems:
        raise SettingsError(problems)
    config = kind(**values)
    sources = {each.key: each.where for each in given}
    return Loaded(config, file, sources, tuple(warnings), _listing(config, options, sources))


def _parser(program: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=program,
        description="Settings: defaults < file < environment ROCKETMQ_<KEY> < options.",
        epilog="Environment: NAMESRV_ADDR is used where neither file nor options name one.",
    )
    show = parser.add_mutually_exclusive_group()
    parser.add_argument(
        "-c", "--configFile", dest="config", metavar="FILE", help="settings file (.properties)"
    )
    parser.add_argument(
        "-n",
        "--namesrvAddr",
        dest="namesrv",
        metavar="HOST:PORT[;HOST:PORT]",
        help="name servers to register with",
    )
    show.add_argument(
        "-p", "--printConfigItem", dest="all", action="store_true", help="print every setting"
    )
    show.add_argument(
        "-m",
        "--printImportantConfig",
        dest="important",
        action="store_true",
        help="print the important settings",
    )
    show.add_argument(
        "--check", action="store_true", help="check the settings, say where they come from, exit"
    )
    return parser


def _from_default_address(kind: type[Settings], environ: Mapping[str, str]) -> Iterable[Given]:
    address = environ.get("NAMESRV_ADDR", "")
    if address and "namesrvAddr" in kind.keys():  # noqa: SIM118
        yield Given("namesrvAddr", address, "environment NAMESRV_ADDR")


def _from_file(
    kind: type[Settings], file: Path, problems: list[SettingProblem], warnings: list[str]
) -> list[Given]:
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        missing = Given("-c", str(file), "option -c")
        problems.append(_problem(missing, f"a readable settings file ({reason})"))
        return []
    known = kind.keys()
    given: list[Given] = []
    useless: list[str] = []
    for entry in parse_properties(text):
        each = Given(entry.key, entry.value, str(file), entry.line)
        if entry.key in known or _refusal(each):
            given.append(each)
        elif entry.key in KEYS_WITHOUT_EFFECT:
            useless.append(each.key)
        elif entry.key not in REFUSED_KEYS:
            warnings.append(_unknown(each.where, each.key, _nearest(each.key, known)))
    if useless:
        warnings.append(f"{file}: without effect here (-p tells why): {', '.join(useless)}")
    return given


def _from_environment(
    kind: type[Settings], environ: Mapping[str, str], warnings: list[str]
) -> list[Given]:
    mine = {_plain(name): name for name in (*kind.keys(), *REFUSED_KEYS)}
    others = {_plain(name) for name in (*BrokerConfig.keys(), *NamesrvConfig.keys())}
    others |= {_plain(name) for name in KEYS_WITHOUT_EFFECT} | _OTHER_VARIABLES
    given: list[Given] = []
    useless = (variable for variable in _JAVA_VARIABLES if environ.get(variable))
    warnings.extend(f"environment: {variable} has no effect here" for variable in useless)
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        plain = _plain(variable.removeprefix(ENVIRONMENT_PREFIX))
        if plain in mine:
            given.append(Given(mine[plain], environ[variable], f"environment {variable}"))
        elif plain not in others:
            close = difflib.get_close_matches(plain, mine, 1)
            warnings.append(_unknown("environment", variable, mine[close[0]] if close else ""))
    return given


def _plain(name: str) -> str:
    """Return a key without case and underscores: LISTEN_PORT and listenPort are the same."""
    return name.replace("_", "").upper()


def _converted(
    kind: type[Settings] | Settings, given: Iterable[Given], problems: list[SettingProblem]
) -> dict[str, Any]:
    known = kind.keys()
    last = {each.key: each for each in given}  # a later source, or a later line, wins
    values: dict[str, Any] = {}
    for each in last.values():
        if refusal := _refusal(each):
            problems.append(_problem(each, refusal))
            continue
        if each.key not in known:
            continue  # it says that something is off that this version does not have
        setting = known[each.key]
        try:
            values[setting.name] = _convert(each.key, setting, each.value.strip())
        except ValueError as error:
            problems.append(_problem(each, str(error)))
    return values


def _refusal(given: Given) -> str:
    return REFUSED_VALUES.get((given.key, given.value.strip().lower()), "")


def _convert(key: str, setting: "Field[Any]", text: str) -> object:
    """Return the typed value; the ValueError's text says what was expected."""
    if setting.type is bool:
        if text.lower() not in ("true", "false"):
            raise ValueError("true or false")
        return text.lower() == "true"
    if setting.type is int:
        rules = rules_of(setting)
        if not re.fullmatch(r"-?\d{1,19}", text) or not rules.low <= int(text) <= rules.high:
            raise ValueError(f"a whole number from {rules.low} to {rules.high}")
        return int(text)
    choices = get_args(setting.type)
    if choices and text not in choices:
        raise ValueError("one of " + ", ".join(choices))
    if key == "namesrvAddr" and text and not _is_address_list(text):
        raise ValueError("host:port, several separated by ;")
    return text


def _is_address_list(text: str) -> bool:
    parts = [part.strip() for part in text.strip(";").split(";")]
    return all(
        _ADDRESS.fullmatch(part) and 0 < int(part.rpartition(":")[2]) <= 65535 for part in parts
    )


def _problem(given: Given, expected: str, nearest: str = "") -> SettingProblem:
    return SettingProblem(
        key=given.key,
        value=given.value,
        expected=f"expected {expected}",
        source=given.source,
        line=given.line,
        nearest=nearest or None,
    )


def _unknown(where: str, key: str, nearest: str) -> str:
    hint = f"; did you mean {nearest}?" if nearest else ""
    return f"{where}: {key} is not a known key and is ignored{hint}"


def _nearest(key: str, known: Iterable[str]) -> str:
    by_lower = {name.lower(): name for name in known}
    close = difflib.get_close_matches(key.lower(), by_lower, 1)
    return by_lower[close[0]] if close else ""


def _listing(
    config: Settings, options: argparse.Namespace, sources: Mapping[str, str]
) -> str | None:
    if options.all:
        return config.to_properties() + listing_of_others()
    if options.important:
        chosen = {name for name, each in config.keys().items() if rules_of(each).important}
        return "".join(f"{name}={value}\n" for name, value in config.items() if name in chosen)
    if options.check:
        lines = [
            f"{name}={value}  ({sources[name]})"
            for name, value in config.items()
            if name in sources
        ]
        return "\n".join([*lines, "The settings are in order.", ""])
    return None
