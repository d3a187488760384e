"""Limits of decoding. A schema and a body are both hostile input: a few bytes can stand for
millions of values (an Avro array of nulls), and a recursive type for any depth.
"""

import base64
import math
from dataclasses import dataclass
from typing import Any, Final

#: Maximum size of a decoded body, bytes.
BODY_BYTES_MAX: Final = 256 * 1024
#: Maximum number of values of a decoded body, fields and items of lists included.
VALUES_MAX: Final = 20_000
#: Maximum nesting of a decoded body, levels; below that of `json_tree`.
DEPTH_MAX: Final = 32
#: Maximum size of the JSON text of a body, characters.
TEXT_CHARS_MAX: Final = 1024 * 1024
#: Maximum size of a stored schema, bytes.
SCHEMA_BYTES_MAX: Final = 1024 * 1024
#: Maximum number of message types, records, enums and fixed types of a schema.
TYPES_MAX: Final = 5_000


class SchemaError(ValueError):
    """A schema cannot be used; the message says why."""


class Misfit(ValueError):
    """A body does not fit its schema, or exceeds a limit; the message says why."""


@dataclass(slots=True)
class Budget:
    """The values that may still be decoded."""

    left: int = VALUES_MAX

    def spend(self, depth: int) -> None:
        """Count one value at a depth. Raises Misfit."""
        self.left -= 1
        if self.left < 0:
            raise Misfit(f"more than {VALUES_MAX} values")
        if depth > DEPTH_MAX:
            raise Misfit(f"nested deeper than {DEPTH_MAX} levels")


def number(value: float) -> Any:
    """A floating point number as a JSON value; JSON has no infinity and no NaN."""
    return value if math.isfinite(value) else str(value)


def base64_text(value: bytes) -> str:
    return base64.b64encode(value).decode()
