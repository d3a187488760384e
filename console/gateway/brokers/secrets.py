"""Broker settings whose values the console hides."""

import re
from collections.abc import Mapping

_SECRET = re.compile(r"password|passwd|secret|accesskey|credential|token|privatekey", re.IGNORECASE)
HIDDEN = "••••••"


def is_secret(key: str) -> bool:
    return _SECRET.search(key) is not None


def shown(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the settings in order of key, with secret values hidden."""
    return {
        key: HIDDEN if is_secret(key) and value else value
        for key, value in sorted(settings.items())
    }
