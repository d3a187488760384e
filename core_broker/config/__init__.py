"""Settings of a broker, a name server and a controller.

settings.py        how a setting is declared: key, default, limits, updatable, no_effect
broker.py          the settings of a broker          namesrv.py  the settings of a name server
controller.py      the settings of a controller, with controller_keys.py
unused.py          keys of RocketMQ that have no effect here, with reasons
unsupported.py     values that are refused, with reasons
loading.py         settings of a start: sources, checks, warnings, print-outs
updating.py        settings of a running process: request codes 25, 318 and 1009
options.py         the command line, with command_line.py
sources.py         file and environment
conversion.py      text to typed values     listings.py  -p, -m and --check
property_files.py  the syntax of .properties
auth_classes.py    class names of RocketMQ's access control
encryption_keys.py keys that encrypt secrets on disk
access.py          keys of access control 2.0, of broker and name server
tls.py             TLS keys of servers and clients, and the file tls.config.file

The settings of brokers and controllers are imported when first used: they are the largest classes
of the package, and a name server starts without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from core_broker.config.access import AccessSettings
from core_broker.config.addresses import local_address
from core_broker.config.encryption_keys import encryption_keys
from core_broker.config.namesrv import NamesrvConfig
from core_broker.config.settings import LONG_MAX, Settings, java_key, property_text
from core_broker.config.tls import TlsSettings

if TYPE_CHECKING:
    from core_broker.config.broker import DELAY_LEVELS, PERM_READ_WRITE, BrokerConfig
    from core_broker.config.controller import ControllerConfig

#: Name → module of what is imported when first used.
_LATER = {
    "BrokerConfig": "core_broker.config.broker",
    "DELAY_LEVELS": "core_broker.config.broker",
    "PERM_READ_WRITE": "core_broker.config.broker",
    "ControllerConfig": "core_broker.config.controller",
}

__all__ = [
    "DELAY_LEVELS",
    "LONG_MAX",
    "PERM_READ_WRITE",
    "AccessSettings",
    "BrokerConfig",
    "ControllerConfig",
    "NamesrvConfig",
    "Settings",
    "TlsSettings",
    "encryption_keys",
    "java_key",
    "local_address",
    "property_text",
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__} has no attribute {name}")
    value = globals()[name] = getattr(import_module(_LATER[name]), name)
    return value
