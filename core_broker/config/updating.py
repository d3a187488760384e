"""Update of the settings of a running process: request codes 25 (broker) and 318 (name server)."""

from dataclasses import replace
from typing import TypeVar

from core_broker.config.assignments import Assignment, Suggestions
from core_broker.config.conversion import typed_values
from core_broker.config.property_files import parse_properties
from core_broker.config.settings import Settings
from core_broker.config.unsupported import REFUSED_KEYS, refusal
from core_broker.config.unused import KEYS_WITHOUT_EFFECT
from core_broker.errors import SettingProblem, SettingsError

C = TypeVar("C", bound=Settings)

# Keys of RocketMQ that a request may contain although Gantry has no such setting.
_ACCEPTED = KEYS_WITHOUT_EFFECT.keys() | REFUSED_KEYS


def updated_settings(config: C, text: str) -> C:
    """Return a copy with the `key=value` lines of a request applied, all or none.

    A key with its present value is no update. Raises SettingsError for unknown keys, for keys that
    are read at the start only, and for settings without effect.
    """
    known = config.keys()
    current = dict(config.items())
    updatable = config.updatable_keys()
    no_effect = config.no_effect_keys()
    suggestions = Suggestions(updatable)
    problems: list[SettingProblem] = []
    assignments: list[Assignment] = []
    for entry in parse_properties(text):
        assignment = Assignment(entry.key, entry.value, "request")
        if entry.key in updatable:
            assignments.append(assignment)
        elif entry.key in known and entry.value != current[entry.key]:
            reason = "the key is read at the start only"
            if entry.key in no_effect:
                reason = f"the key has no effect here: {no_effect[entry.key]}"
            problems.append(assignment.problem(f"no change: {reason}"))
        elif advice := refusal(entry.key, entry.value):
            problems.append(assignment.problem(advice))
        elif entry.key not in known and entry.key not in _ACCEPTED:
            problems.append(assignment.problem("a known key", suggestions.nearest(entry.key)))
    values = typed_values(config, assignments, problems)
    if problems:
        raise SettingsError(problems)
    return replace(config, **values)
