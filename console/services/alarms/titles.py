"""Titles of rules: the name, or for a rule of the console the name in the reader's language."""

from collections.abc import Mapping
from typing import Any, Final

from django.conf import settings
from django.utils.translation import gettext_lazy, override

from console.services.alarms.defaults import DEFAULTS
from console.services.alarms.models import AlarmRule

#: Titles of the console's own rules, by key.
DEFAULT_TITLES: Final[Mapping[str, Any]] = {
    "critical": gettext_lazy("Critical findings"),
    "warnings": gettext_lazy("Warnings of the findings"),
    "lag": gettext_lazy("High lag of a group"),
    "disk": gettext_lazy("Disk of a broker is full"),
    "silence": gettext_lazy("Produce rate dropped"),
}
#: The same titles by stored name, for episodes and notices: both outlive their rule.
TITLES_BY_NAME: Final = {DEFAULTS[key]["name"]: title for key, title in DEFAULT_TITLES.items()}


def title_of(rule: AlarmRule) -> str:
    """Return the title of a rule in the language of the reader."""
    return str(DEFAULT_TITLES.get(rule.default_key, rule.name))


def kept_title(name: str, rule: AlarmRule | None) -> str:
    """Return the title for the name of a rule that an episode or a notice keeps.

    `rule` is None for a deleted rule. A name that a user gave is returned as it is.
    """
    is_own = rule is not None and not rule.default_key
    return name if is_own else str(TITLES_BY_NAME.get(name, name))


def stored_name(rule: AlarmRule, name: str) -> str:
    """Return the name to store for the name of a form. The form shows the title: an unchanged
    title, in any language, is no new name."""
    for language, _title in settings.LANGUAGES:
        with override(language):
            if rule.default_key and name == title_of(rule):
                return default_name(rule)
    return name


def default_name(rule: AlarmRule) -> str:
    """Return the stored name of one of the console's own rules."""
    return str(DEFAULTS[rule.default_key]["name"])
