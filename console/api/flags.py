"""Query parameters of changes: dry run and confirmation."""

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
    "dry_run", OpenApiTypes.BOOL, description="Preview the changes without applying them."
)
CONFIRM = OpenApiParameter(
    "confirm",
    OpenApiTypes.STR,
    description="The name again; required while clients are connected.",
)


def read_flag(request: Request, name: str) -> bool:
    """Read `true` or `false`; raise ValidationError for other values, so a typing error changes
    nothing.
    """
    text = request.query_params.get(name)
    if text in {None, "false", "0"}:
        return False
    if text in {"true", "1"}:
        return True
    raise ValidationError({name: [_("Expected true or false.")]})


def dry_run_body(
    name: str,
    lines: Sequence[FieldChange],
    confirm: OpenApiParameter | None = None,
    risks: Sequence[Any] = (),
) -> dict[str, Any]:
    """Return the response of a dry run: the differences per broker and setting.

    With risks, the response has them, and the name of the parameter that accepts them.
    """
    body = {"name": name, "dry_run": True, "changes": [asdict(line) for line in lines]}
    if confirm is None or not risks:
        return body
    return {**body, "risks": [asdict(risk) for risk in risks], "confirm": confirm.name}
