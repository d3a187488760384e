"""Access control on the fast path in Python: admitted requests with a right signature pass.

The counterpart of kernel/guard.py. Requests that do not pass are for the slow path, where the gate
decides.
"""

from collections.abc import Mapping

import msgspec

from core_broker.auth.admissions import RESOURCES, Admissions, joined
from core_broker.auth.signature import ACCESS_KEY, SIGNATURE
from core_broker.remoting.ext_fields import DECODE_FAULTS


class _Signed(msgspec.Struct, rename={"ext_fields": "extFields"}, gc=False):
    """The part of a JSON header for the guard; all ext fields must be strings."""

    code: int
    ext_fields: dict[str, str]


_decode = msgspec.json.Decoder(_Signed).decode


class PythonGuard:
    """Decides which requests the fast path may take."""

    def __init__(self, admissions: Admissions) -> None:
        self._admissions = admissions

    def passes(self, address: str, header: bytes, body: bytes) -> bool:
        """Return True for a request that the gate would admit."""
        if address.encode() in self._admissions.white_addresses:
            return True
        try:
            request = _decode(header)
        except DECODE_FAULTS:
            return False
        return self._is_admitted(address, request.code, request.ext_fields, body)

    def _is_admitted(self, address: str, code: int, fields: Mapping[str, str], body: bytes) -> bool:
        account = self._admissions.accounts.get(joined(address, fields.get(ACCESS_KEY, "")))
        names = RESOURCES.get(code)
        if account is None or names is None or SIGNATURE not in fields:
            return False
        resources = joined(str(code), *[fields.get(name, "") for name in names])
        return resources in account.resources and account.signing_key.accepts(fields, body)
