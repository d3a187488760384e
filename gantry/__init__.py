"""The public names of the client library under one short import.

    from gantry import Message, Producer

The names are those of `core_broker.client`, which stays importable. `gantry.sync` has the clients
for blocking code, `gantry.errors` the exceptions. `python -m gantry` is the command `gantry`.
"""

from core_broker.client import *  # noqa: F403 - exactly the names of its __all__
from core_broker.client import __all__ as __all__
from core_broker.trace_package import provide_trace_package

provide_trace_package()
