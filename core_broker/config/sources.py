"""Sources of settings: the settings file, and variables of the environment.

Each source returns the assignments to known keys. Unknown keys are warned about with the nearest
known key, because RocketMQ ignores them. Keys without effect are warned about when the value
differs from the default: a file that a broker has written back contains every key.
"""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING
from functools import cache
from pathlib import Path

from core_broker.config.assignments import Assignment, Suggestions
from core_broker.config.encryption_keys import ENCRYPTION_KEY_VARIABLE
from core_broker.config.property_files import parse_properties
from core_broker.config.settings import (
    ENVIRONMENT_PREFIX,
    Settings,
    plain_name,
    property_text,
)
from core_broker.config.tls import PASSWORD_KEYS
from core_broker.config.unsupported import REFUSED_KEYS, refusal
from core_broker.config.unused import KEYS_WITHOUT_EFFECT
from core_broker.errors import SettingProblem

# Variables of RocketMQ containers for the options of the Java VM.
_JAVA_VARIABLES = ("JAVA_OPT", "JAVA_OPT_EXT")
# Variables of RocketMQ with ENVIRONMENT_PREFIX that are not settings.
_OTHER_VARIABLES = {"HOME", "SERIALIZETYPE", "ZONE", "ZONEMODE"}
_SECRET_VARIABLES = {plain_name(ENCRYPTION_KEY_VARIABLE.removeprefix(ENVIRONMENT_PREFIX))}


def from_defaults(kind: type[Settings], environ: Mapping[str, str]) -> Iterable[Assignment]:
    """Yield the name servers of NAMESRV_ADDR and the home of ROCKETMQ_HOME, as in RocketMQ."""
    home = environ.get("ROCKETMQ_HOME", "")
    if home and "rocketmqHome" not in kind.no_effect_keys():
        yield Assignment("rocketmqHome", home, "environment ROCKETMQ_HOME")
    address = environ.get("NAMESRV_ADDR", "")
    if address and "namesrvAddr" in kind.keys():  # noqa: SIM118
        yield Assignment("namesrvAddr", address, "environment NAMESRV_ADDR")


def from_file(
    kind: type[Settings], file: Path, problems: list[SettingProblem], warnings: list[str]
) -> list[Assignment]:
    """Return the assignments of a settings file; an unreadable file is a problem."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        option = Assignment("-c", str(file), "option -c")
        problems.append(option.problem(f"a readable settings file ({reason})"))
        return []
    known = kind.keys()
    suggestions = Suggestions(known)
    assignments: list[Assignment] = []
    useless: list[str] = []
    for entry in parse_properties(text):
        assignment = Assignment(entry.key, entry.value, str(file), entry.line)
        if entry.key in known or refusal(entry.key, entry.value):
            assignments.append(assignment)
        elif entry.key not in KEYS_WITHOUT_EFFECT and entry.key not in REFUSED_KEYS:
            nearest = suggestions.nearest(entry.key)
            warnings.append(_unknown(assignment.location, entry.key, nearest))
        if _is_useless(kind, entry.key, entry.value):
            useless.append(entry.key)
    if useless:
        warnings.append(f"{file}: without effect here (-p tells why): {', '.join(useless)}")
    return assignments


def from_environment(
    kind: type[Settings], environ: Mapping[str, str], warnings: list[str]
) -> list[Assignment]:
    """Return the assignments of the variables ROCKETMQ_<KEY>."""
    own = {plain_name(name): name for name in (*kind.keys(), *REFUSED_KEYS)}
    suggestions = Suggestions(own)
    assignments: list[Assignment] = []
    useless = [variable for variable in _JAVA_VARIABLES if environ.get(variable)]
    for variable in sorted(environ):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        plain = plain_name(variable.removeprefix(ENVIRONMENT_PREFIX))
        value = environ[variable]
        if plain in own:
            assignments.append(Assignment(own[plain], value, f"environment {variable}"))
            if _is_useless(kind, own[plain], value):
                useless.append(variable)
        elif plain not in _others():
            nearest = suggestions.nearest(plain)
            warnings.append(_unknown("environment", variable, own.get(nearest, "")))
    warnings.extend(f"environment: {variable} has no effect here" for variable in useless)
    return assignments


@cache
def _others() -> frozenset[str]:
    """Return the plain names of variables that are no settings of every program.

    Only a start with a variable of another program imports the settings of all programs.
    """
    from core_broker.config.broker import BrokerConfig
    from core_broker.config.controller import ControllerConfig
    from core_broker.config.namesrv import NamesrvConfig

    programs = (BrokerConfig, NamesrvConfig, ControllerConfig)
    keys = {name for program in programs for name in program.keys()}  # noqa: SIM118
    others = {plain_name(name) for name in (*keys, *KEYS_WITHOUT_EFFECT, *PASSWORD_KEYS)}
    return frozenset(others | _OTHER_VARIABLES | _SECRET_VARIABLES)


def _is_useless(kind: type[Settings], key: str, value: str) -> bool:
    """Return whether an assignment requests a behaviour that Gantry does not have."""
    if key in KEYS_WITHOUT_EFFECT:
        return True
    if key not in kind.no_effect_keys():
        return False
    default = kind.keys()[key].default
    assert default is not MISSING
    return value.strip() != property_text(default)


def _unknown(location: str, key: str, nearest: str) -> str:
    hint = f"; did you mean {nearest}?" if nearest else ""
    return f"{location}: {key} is not a known key and is ignored{hint}"
