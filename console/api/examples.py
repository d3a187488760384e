"""Examples for all operations of the OpenAPI document, generated from the schemas.

What a resource says itself (`OpenApiExample`) stays. Names come from the demo, so that users can
run the examples unchanged.
"""

from typing import Any

DEPTH_MAX = 6
NAMED: dict[str, Any] = {
    "cluster": "local",
    "topic": "orders",
    "group": "billing",
    "broker": "broker-a",
    "brokers": ["broker-a"],
    "addr": "127.0.0.1:10911",
    "client": "10.0.0.7@4711",
    "name": "orders",
    "names": ["orders"],
    "kind": "ingest",
    "id": "7F00000100002A9F0000000000000BAC",
    "ids": ["7F00000100002A9F0000000000000BAC"],
    "msg_id": "0A00000718B4AAC2000000000000001A",
    "offset_msg_id": "7F00000100002A9F0000000000000BAC",
    "keys": "order-42",
    "tags": "paid",
    "queue_id": 0,
    "perm": 6,
    "error": None,
    "next_cursor": None,
    "failures": [],
    "username": "ann",
    "action": "topic.create",
    "target": "orders",
    "source": "10.0.0.7",
    "reason": "",
}
OF_TYPE: dict[str, Any] = {
    "string": "text",
    "integer": 1,
    "number": 1.5,
    "boolean": True,
    "object": {},
    "array": [],
    "null": None,
}
OF_FORMAT: dict[str, Any] = {
    "date-time": "2026-01-31T12:00:00.000Z",
    "date": "2026-01-31",
    "uuid": "6a7d3d7e-0000-4000-8000-000000000000",
    "uri": "http://127.0.0.1:8082/",
    "binary": "",
}
TIME_MS = 1_769_860_800_000


def add_examples(
    result: dict[str, Any], generator: Any, request: Any, public: bool
) -> dict[str, Any]:
    """Postprocessing hook: add missing examples of path parameters, request bodies and 2xx
    responses.
    """
    schemas = result.get("components", {}).get("schemas", {})
    for operations in result["paths"].values():
        for operation in operations.values():
            for parameter in operation.get("parameters", ()):
                _of_parameter(parameter, schemas)
            contents = [operation.get("requestBody", {}).get("content", {})]
            contents += [
                answer.get("content", {})
                for status, answer in operation["responses"].items()
                if status.startswith("2")
            ]
            for media in (media for content in contents for media in content.values()):
                if "example" not in media and "examples" not in media:
                    media["example"] = example_of(media.get("schema", {}), schemas)
    return result


def _of_parameter(parameter: dict[str, Any], schemas: dict[str, Any]) -> None:
    if "example" in parameter or "examples" in parameter or parameter["in"] != "path":
        return
    parameter["example"] = example_of(parameter.get("schema", {}), schemas, parameter["name"])


def example_of(
    schema: dict[str, Any], schemas: dict[str, Any], name: str = "", depth: int = 0
) -> Any:
    """Return a valid value of the schema that is plausible for the field's name."""
    for key in ("example", "default"):
        if key in schema:
            return schema[key]
    if "$ref" in schema:
        found = schemas.get(schema["$ref"].rpartition("/")[2], {})
        return example_of(found, schemas, name, depth + 1) if depth < DEPTH_MAX else {}
    for several in ("allOf", "oneOf", "anyOf"):
        if schema.get(several):
            return example_of(schema[several][0], schemas, name, depth + 1)
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type", "object")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object" and depth < DEPTH_MAX:
        fields = schema.get("properties", {})
        return {
            field: example_of(held, schemas, field, depth + 1) for field, held in fields.items()
        }
    if name in NAMED and _fits(NAMED[name], kind, schema):
        return NAMED[name]
    if kind == "array":
        item = example_of(schema.get("items", {}), schemas, name.removesuffix("s"), depth + 1)
        return [item] if depth < DEPTH_MAX else []
    if kind in {"integer", "number"}:
        return TIME_MS if name.endswith("_ms") else max(schema.get("minimum", 1), 1)
    return OF_FORMAT.get(schema.get("format", ""), OF_TYPE.get(kind))


def _fits(value: Any, kind: str, schema: dict[str, Any]) -> bool:
    if value is None:
        return bool(schema.get("nullable")) or "null" in schema.get("type", ())
    kinds = {"string": str, "integer": int, "number": (int, float), "array": list, "boolean": bool}
    return isinstance(value, kinds.get(kind, dict))  # type: ignore[arg-type]
