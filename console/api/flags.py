"""Parameters of changes: try it out first, and confirm what would hurt."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from django.utils.translation import gettext as _
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request

from console.gateway.changes import FieldChange

DRY_RUN = OpenApiParameter(
    "dry_run", OpenApiTypes.BOOL, description="Tell what would change, and change nothing."
)
CONFIRM = OpenApiParameter(
    "confirm",
    OpenApiTypes.STR,
    description="Its name once more; needed when clients are connected.",
)


def read_flag(request: Request, name: str) -> bool:
    """`true` or `false`; anything else is a mistake that must not change something."""
    text = request.query_params.get(name)
    if text in {None, "", "false", "0"}:
        return False
    if text in {"true", "1"}:
        return True
    raise ValidationError({name: [_("Expected true or false.")]})


def dry_run_body(name: str, lines: Sequence[FieldChange]) -> dict[str, Any]:
    """The answer to a dry run: the difference, broker by broker and setting by setting."""
    return {"name": name, "dry_run": True, "changes": [asdict(line) for line in lines]}
