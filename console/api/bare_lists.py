"""Lists that were bare arrays: with a parameter of lists they are pages, without one still arrays.

By the rule of docs/api.md the array remains for one minor release at least, with `Deprecation`
(RFC 9745) and the address of the page in `Link`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import PolymorphicProxySerializer, inline_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from console.api.paging import LIMIT_DEFAULT, cut, list_parameters
from console.frame.tables import Column, Columns, TableQuery

#: The day on which the arrays became deprecated, 2026-11-29, seconds since 1970.
DEPRECATED_S: Final = 1_795_910_400


@dataclass(frozen=True, slots=True)
class Row:
    """An item with the name that orders the list."""

    name: str
    body: dict[str, Any]


COLUMNS: Final[Columns[Row]] = Columns(Column("name", _("Name"), lambda row: row.name))
PARAMETERS: Final = list_parameters(COLUMNS)


def page_or_array(item: type[serializers.Serializer[Any]]) -> PolymorphicProxySerializer:
    """Return the schema of both answers."""
    name = item.__name__.removesuffix("Serializer")
    members = {
        "items": item(many=True),
        "total": serializers.IntegerField(),
        "next_cursor": serializers.CharField(allow_null=True),
    }
    return PolymorphicProxySerializer(
        component_name=f"{name}PageOrArray",
        serializers=[inline_serializer(f"{name}Page", members), item(many=True)],
        resource_type_field_name=None,
        many=False,
    )


def answer(request: Request, rows: Sequence[Row]) -> Response:
    """Return the page of the request, or all rows as an array."""
    params = request.query_params
    if params.keys().isdisjoint(each.name for each in PARAMETERS):
        query = params.copy()
        query["limit"] = str(LIMIT_DEFAULT)
        page = f"{request.path}?{query.urlencode()}"
        headers = {
            "Deprecation": f"@{DEPRECATED_S}",
            "Link": f'<{page}>; rel="successor-version"',
        }
        return Response([row.body for row in rows], headers=headers)
    found = TableQuery.read(params, COLUMNS, default="name").matching(rows)
    part = cut(params, COLUMNS, found)
    items = [row.body for row in part.rows]
    return Response({"items": items, "total": part.total, "next_cursor": part.next_cursor})
