"""Pages of the REST API from the OpenAPI document: one page for each tag."""

import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tools.site.reference import cell, code, table, without_html

#: Limit of an example on a page, lines; the document itself has the whole example.
EXAMPLE_LINES_MAX = 60
PROBLEM = "application/problem+json"
METHODS = ("get", "post", "put", "patch", "delete")


def document(root: Path) -> dict[str, Any]:
    """Return the OpenAPI document of the console of this tree.

    A process of its own: Django's settings read the environment and write a secret key.
    """
    with tempfile.TemporaryDirectory() as home:
        done = subprocess.run(
            [sys.executable, "manage.py", "spectacular", "--format", "openapi-json"],
            cwd=root,
            env={**os.environ, "GANTRY_HOME": home, "SECRET_KEY": "of no use"},
            check=True,
            stdout=subprocess.PIPE,
        )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def pages(document: Mapping[str, Any]) -> dict[str, str]:
    """Return the Markdown of each page, by the name of the tag as a file name."""
    by_tag: dict[str, list[str]] = {}
    for path, methods in sorted(document["paths"].items()):
        for method in METHODS:
            if method in methods:
                operation = methods[method]
                tag = operation["tags"][0]
                by_tag.setdefault(tag, []).append(section(method, path, operation, document))
    return {
        re.sub(r"[^a-z0-9]+", "-", tag.lower()).strip("-"): page(tag, sections)
        for tag, sections in sorted(by_tag.items())
    }


def page(tag: str, sections: list[str]) -> str:
    return (
        f"# REST: {tag}\n\nGenerated from the OpenAPI document, which the console serves at "
        "`/api/schema/`; `/api/docs/` sends calls from the browser. [The REST API](../../api.md) "
        "has the conventions of all calls.\n\n" + "\n".join(sections)
    )


def section(
    method: str, path: str, operation: Mapping[str, Any], document: Mapping[str, Any]
) -> str:
    """Return heading, sentence, parameters, body and answers of one operation."""
    name = operation["operationId"]
    parts = [f"## {operation['summary']} {{ #{name} }}", f"`{method.upper()} {path}`"]
    if operation.get("deprecated"):
        parts.append("**Deprecated.**")
    if (description := operation.get("description", "")) != f"{operation['summary']}.":
        parts.append(prose(description))
    parameters = [resolved(each, document) for each in operation.get("parameters", ())]
    parameters = [each for each in parameters if each["in"] != "path" or "description" in each]
    if parameters:
        parts.append(table(("parameter", "in", "meaning"), map(parameter_row, parameters)))
    for kind, media in operation.get("requestBody", {}).get("content", {}).items():
        if (example := example_of(media)) is not None:
            parts.append(f"Body, `{kind}`:\n\n{fenced(example)}")
            break
    for status, answer in sorted(operation["responses"].items()):
        answer = resolved(answer, document)  # noqa: PLW2901 - the reference and its target are one
        if status.startswith("2"):
            parts.append(success(status, answer))
    problems = sorted(
        status for status in operation["responses"] if not status.startswith(("1", "2", "3"))
    )
    if problems:
        parts.append(f"Problems: {', '.join(problems)}.")
    return "\n\n".join(part for part in parts if part) + "\n"


def parameter_row(parameter: Mapping[str, Any]) -> list[str]:
    schema = parameter.get("schema", {})
    words = [cell(parameter.get("description", ""))]
    if choices := schema.get("enum"):
        words.append("One of " + ", ".join(code(str(choice)) for choice in choices) + ".")
    if (default := schema.get("default")) is not None:
        words.append(f"Default {code(json.dumps(default))}.")
    required = " (required)" if parameter.get("required") and parameter["in"] != "path" else ""
    meaning = " ".join(word for word in words if word)
    return [code(parameter["name"]) + required, parameter["in"], meaning]


def success(status: str, answer: Mapping[str, Any]) -> str:
    text = cell(answer.get("description", ""))
    for kind, media in answer.get("content", {}).items():
        if (example := example_of(media)) is not None:
            return f"Answer {status}, `{kind}`: {text}\n\n{fenced(example)}"
    return f"Answer {status}. {text}".strip()


def example_of(media: Mapping[str, Any]) -> Any:
    """Return the first example of a media type; None without one."""
    if "example" in media:
        return media["example"]
    for each in media.get("examples", {}).values():
        return each.get("value")
    return None


def fenced(example: object) -> str:
    """Return an example as a block of code of limited length."""
    language, text = "json", json.dumps(example, indent=2, ensure_ascii=False)
    if isinstance(example, str):
        language, text = "text", example
    lines = text.splitlines()
    if len(lines) > EXAMPLE_LINES_MAX:
        lines = [*lines[:EXAMPLE_LINES_MAX], "…"]
        language = "text"
    return "\n".join([f"```{language}", *lines, "```"])


def prose(text: str) -> str:
    """Return a description as Markdown: words in angle brackets are no HTML."""
    return "\n".join(line.strip() for line in without_html(text).splitlines())


def resolved(node: Mapping[str, Any], document: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the target of a reference, or the node itself."""
    while "$ref" in node:
        target: Any = document
        for part in node["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        node = target
    return node
