"""The OpenAPI document: operations grouped by area, with the common error responses."""

import re
from typing import Any

from drf_spectacular.openapi import AutoSchema

from console.api.operations import concrete, name_of, summary_of
from console.api.problems import COMMON_STATUSES, CONTENT_TYPE

_AREA = re.compile(r"/api/v1/(?:clusters/\{cluster\}/?)?([^/{]*)")

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "The problem (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "example": "urn:gantry:problem:cluster-unreachable"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "The cause, in one sentence."},
        "hint": {"type": "string", "description": "Remedy, or the setting to change."},
        "instance": {"type": "string"},
        "errors": {
            "type": "object",
            "description": "Problems of single fields.",
            "additionalProperties": {},
        },
        "failures": {"type": "array", "items": {"$ref": "#/components/schemas/Failure"}},
    },
}
MEANINGS = {
    400: "The request cannot be used.",
    401: "Authentication is required.",
    403: "The role of the account does not allow the request.",
    404: "The cluster has no object of this name.",
    405: "The resource does not support the method.",
    406: "Unknown format: responses are JSON.",
    409: "The name is taken, the state forbids the change, or the key is in use.",
    412: "The object changed after the client read the ETag (If-Match).",
    413: "The body is larger than the console accepts.",
    415: "The body is not JSON.",
    422: "The Idempotency-Key was used for a different request.",
    502: "The cluster refused.",
    503: "The cluster cannot be reached.",
    504: "The cluster did not answer in time.",
}
WRITE_STATUSES = (409, 412, 413, 415, 422)


IDEMPOTENCY_KEY = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "maxLength": 255, "pattern": "^[!-~]+$"},
    "description": "Sent again with the same key within 24 hours, the request is not carried out "
    "again: the answer of the first one comes back.",
    "example": "6a7d3d7e-topic-orders",
}
ETAG_HEADER = {
    "ETag": {
        "schema": {"type": "string"},
        "description": "The present state of the object, for `If-Match`.",
    }
}
#: Sentence in the description of writes without the parameter `dry_run`.
NO_DRY_RUN = "This write has no dry run: the parameter `dry_run` is refused with 400."


class AreaSchema(AutoSchema):  # type: ignore[misc,unused-ignore]
    """Groups operations by the area in the URL; `operations.py` has names and summaries."""

    def get_operation_id(self) -> str:
        return name_of(type(self.view).__name__, self.method)

    def _get_format_parameters(self) -> list[dict[str, Any]]:
        return []  # the Accept header selects the format, also of the event stream

    def get_tags(self) -> list[str]:
        return [self.area]

    @property
    def area(self) -> str:
        """The first part of the path below the cluster, without the action after a colon."""
        match = _AREA.match(self.path)
        return (match[1] if match else "").partition(":")[0] or "clusters"

    def get_description(self) -> str:  # type: ignore[override,unused-ignore]
        return concrete(super().get_description() or "", self.area)

    def get_summary(self) -> str:
        return summary_of(self.get_description())


def add_problems(
    result: dict[str, Any], generator: Any, request: Any, public: bool
) -> dict[str, Any]:
    """Postprocessing hook: add the error responses of every operation, and to writes the
    idempotency key and the absence of a dry run.
    """
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = PROBLEM_SCHEMA
    for operations in result["paths"].values():
        _add_etags(operations)
        for method, operation in operations.items():
            if method != "get":
                parameters = operation.setdefault("parameters", [])
                if not any(each["name"] == "dry_run" for each in parameters):
                    operation["description"] = f"{operation.get('description', '')}\n\n{NO_DRY_RUN}"
                parameters.append(IDEMPOTENCY_KEY)
            statuses = [*COMMON_STATUSES, *(WRITE_STATUSES if method != "get" else ())]
            for code in sorted(statuses):
                operation["responses"].setdefault(str(code), _problem(code))
    return result


def _problem(code: int) -> dict[str, Any]:
    return {
        "description": MEANINGS[code],
        "content": {CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    }


def _add_etags(operations: dict[str, Any]) -> None:
    """Add the header `ETag` to the answers about an object whose writes have `If-Match`."""
    conditional = [
        each
        for method, each in operations.items()
        if method != "get"
        and any(named["name"] == "If-Match" for named in each.get("parameters", ()))
    ]
    for operation in conditional:
        operation["responses"]["412"] = {**_problem(412), "headers": ETAG_HEADER}
    if conditional and "get" in operations:
        operations["get"]["responses"]["200"]["headers"] = ETAG_HEADER
