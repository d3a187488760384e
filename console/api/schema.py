"""The OpenAPI document: operations grouped by area, and the one shape of errors for all of them."""

import re
from typing import Any

from drf_spectacular.openapi import AutoSchema

from console.api.problems import COMMON_STATUSES, CONTENT_TYPE

_AREA = re.compile(r"/api/v1/(?:clusters/\{cluster\}/?)?([^/{]*)")

PROBLEM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "description": "What went wrong (RFC 9457).",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string", "example": "urn:gantry:problem:cluster-unreachable"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "The cause, in one sentence."},
        "hint": {"type": "string", "description": "What to do, or which setting to change."},
        "instance": {"type": "string"},
        "errors": {
            "type": "object",
            "description": "What is wrong with single fields.",
            "additionalProperties": {},
        },
        "failures": {"type": "array", "items": {"$ref": "#/components/schemas/Failure"}},
    },
}
MEANINGS = {
    400: "The request cannot be used.",
    401: "Nobody is signed in.",
    403: "The account may not do this.",
    404: "There is no such thing in the cluster.",
    405: "The method is not offered here.",
    406: "No such format: answers are JSON.",
    409: "The name is taken, the state forbids it, or a request with the same key is under way.",
    412: "It was changed since it was read (If-Match).",
    413: "The body is larger than the console accepts.",
    415: "The body is not JSON.",
    422: "The Idempotency-Key was used for another request.",
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
VERBS = {"get": "get", "post": "create", "put": "replace", "patch": "update", "delete": "delete"}


class AreaSchema(AutoSchema):  # type: ignore[misc,unused-ignore]
    """Groups operations by the area in their address, and names them after their resource.

    `TopicList` gives `list_topics` and `create_topic`; `TopicOne` gives `get_topic`, …
    """

    def get_operation_id(self) -> str:
        noun = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self.view).__name__).lower()
        verb = VERBS[self.method.lower()]
        if noun.endswith("_list"):
            noun = noun.removesuffix("_list")
            return f"list_{noun}s" if verb == "get" else f"{verb}_{noun}"
        return f"{verb}_{noun.removesuffix('_one')}"

    def get_tags(self) -> list[str]:
        match = _AREA.match(self.path)
        return [match[1] if match and match[1] else "clusters"]


def add_problems(
    result: dict[str, Any], generator: Any, request: Any, public: bool
) -> dict[str, Any]:
    """Hook: describe the errors that every operation may answer with."""
    schemas = result.setdefault("components", {}).setdefault("schemas", {})
    schemas["Problem"] = PROBLEM_SCHEMA
    for operations in result["paths"].values():
        for method, operation in operations.items():
            if method != "get":
                operation.setdefault("parameters", []).append(IDEMPOTENCY_KEY)
            statuses = [*COMMON_STATUSES, *(WRITE_STATUSES if method != "get" else ())]
            for code in sorted(statuses):
                operation["responses"].setdefault(
                    str(code),
                    {
                        "description": MEANINGS[code],
                        "content": {
                            CONTENT_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}
                        },
                    },
                )
    return result
