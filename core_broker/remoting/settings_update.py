"""The body of UPDATE_BROKER_CONFIG (25) and UPDATE_NAMESRV_CONFIG (318): `key=value` lines.

The sender is a peer: the size is checked before any work on the body.
"""

from typing import TypeVar

from core_broker.config import Settings
from core_broker.config.property_files import parse_properties
from core_broker.config.updating import updated_settings
from core_broker.errors import RequestRefused, SettingsError
from core_broker.remoting.codes import ResponseCode

#: Maximum size of the body, bytes; a body with all settings of a broker has 5 KiB.
UPDATE_BODY_BYTES_MAX = 16 * 1024

C = TypeVar("C", bound=Settings)


def check_update_size(body: bytes) -> None:
    """Raise RequestRefused for a body over UPDATE_BODY_BYTES_MAX."""
    if len(body) > UPDATE_BODY_BYTES_MAX:
        raise RequestRefused(
            ResponseCode.SYSTEM_ERROR,
            f"the body has {len(body)} bytes, the limit of an update is "
            f"{UPDATE_BODY_BYTES_MAX}; send only the changed keys",
        )


def settings_of_update(config: C, black_list: str, body: bytes) -> C:
    """Return a copy of the settings with the lines of the body applied, all or none.

    `black_list` is configBlackList. Raises RequestRefused.
    """
    check_update_size(body)
    text = body.decode("utf-8", "replace")
    forbidden = set(black_list.split(";"))
    if any(entry.key in forbidden for entry in parse_properties(text)):
        raise RequestRefused(ResponseCode.NO_PERMISSION, "Can not update config in black list.")
    try:
        return updated_settings(config, text)
    except SettingsError as error:
        raise RequestRefused(ResponseCode.SYSTEM_ERROR, str(error)) from None
