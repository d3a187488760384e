"""Conversion of the text of settings to typed values, within the limits of each key."""

import re
from collections.abc import Iterable
from dataclasses import Field
from typing import Any, get_args

from core_broker.config.addresses import is_address_list
from core_broker.config.assignments import Assignment
from core_broker.config.settings import Settings, rules_of
from core_broker.config.unsupported import refusal
from core_broker.errors import SettingProblem


def typed_values(
    kind: type[Settings] | Settings,
    assignments: Iterable[Assignment],
    problems: list[SettingProblem],
) -> dict[str, Any]:
    """Return attribute -> value, and append every wrong value to `problems`.

    The last assignment of a key wins. A refused key that is no setting here (its feature is
    switched off) has no value in the result.
    """
    known = kind.keys()
    last = {assignment.key: assignment for assignment in assignments}
    values: dict[str, Any] = {}
    for assignment in last.values():
        if advice := refusal(assignment.key, assignment.value):
            problems.append(assignment.problem(advice))
            continue
        if assignment.key not in known:
            continue
        setting = known[assignment.key]
        try:
            values[setting.name] = _convert(assignment.key, setting, assignment.value.strip())
        except ValueError as error:
            problems.append(assignment.problem(str(error)))
    return values


def _convert(key: str, setting: "Field[Any]", text: str) -> object:
    """Return the typed value; the text of the ValueError is the expected value."""
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
    if key == "namesrvAddr" and text and not is_address_list(text):
        raise ValueError("host:port, several separated by ;")
    if key == "haMasterAddress" and text and (";" in text or not is_address_list(text)):
        raise ValueError("host:port of the HA listener of the master")
    if key == "deleteWhen" and not _is_hour_list(text):
        raise ValueError("hours from 00 to 23, several separated by ; (empty: no hour)")
    return text


def _is_hour_list(text: str) -> bool:
    """Return whether the text is a list such as "04" or "04;16"; the empty list is one."""
    hours = text.removesuffix(";").split(";") if text else []
    return all(re.fullmatch(r"\s*([01]?[0-9]|2[0-3])\s*", hour) for hour in hours)
