"""The API reference page: the operations of the OpenAPI document, grouped by subject."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from ninja import NinjaAPI
from ninja.openapi.docs import DocsBase

SUBJECTS: Mapping[str, Promise] = {
    "services": gettext_lazy("Model services"),
    "agents": gettext_lazy("Agents"),
    "messages": gettext_lazy("Messages"),
    "artifacts": gettext_lazy("Artifacts"),
    "configuration": gettext_lazy("Configuration"),
    "llm": gettext_lazy("Requests"),
    "administration": gettext_lazy("Administration"),
}
"""Maps each tag of the OpenAPI document to a heading."""
MAX_SEARCH_CHARS = 100
"""Maximum length of a search text in characters."""
MAX_DEPTH = 3
"""Maximum depth to which the fields of nested objects are listed."""
EXAMPLES: Mapping[str, Any] = {"string": "…", "integer": 1, "number": 1.5, "boolean": True, "array": [], "object": {}}
"""An example value for each JSON type."""


@dataclass(frozen=True, slots=True)
class Field:
    """A parameter, or a field of a body; the fields of a nested object have dotted names."""

    name: str
    kind: str
    is_required: bool
    about: str = ""


@dataclass(frozen=True, slots=True)
class Content:
    """A request body or a response. `status` is empty for a request body, and `default` for error responses."""

    media_type: str
    fields: tuple[Field, ...]
    about: str = ""
    status: str = ""


TONES = {"GET": "info", "POST": "ok", "PUT": "warn", "PATCH": "acc", "DELETE": "bad"}
"""Badge colour of each HTTP method; most API references use the same colours."""


@dataclass(frozen=True, slots=True)
class Operation:
    id: str
    method: str
    path: str
    subject: str
    title: str
    details: str
    parameters: tuple[Field, ...]
    bodies: tuple[Content, ...]
    answers: tuple[Content, ...]
    example: str

    @property
    def tone(self) -> str:
        return TONES.get(self.method, "")

    def has(self, words: str) -> bool:
        """Return whether the method, path, title and subject together contain each of these words, ignoring case."""
        text = f"{self.method} {self.path} {self.title} {SUBJECTS.get(self.subject, '')}".casefold()
        return all(word in text for word in words.casefold().split())


def first_sentence(text: str) -> str:
    """Return the first paragraph on one line and without its final full stop, for use as a title."""
    return " ".join(text.partition("\n\n")[0].split()).removesuffix(".")


def list_operations(document: Mapping[str, Any]) -> list[Operation]:
    """Return the operations of an OpenAPI document, in its order."""
    schemas = document.get("components", {}).get("schemas", {})
    return [
        _build_operation(method, path, operation, schemas)
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
    ]


def _build_operation(method: str, path: str, operation: Mapping[str, Any], schemas: Mapping[str, Any]) -> Operation:
    bodies = tuple(_contents(operation.get("requestBody", {}), schemas))
    return Operation(
        id=operation["operationId"],
        method=method.upper(),
        path=path,
        subject=operation["tags"][0],
        title=operation["summary"],
        details=operation.get("description", "").partition("\n\n")[2],
        parameters=tuple(
            Field(
                entry["name"],
                schema_type(entry["schema"], schemas),
                entry.get("required", False),
                entry["schema"].get("description", ""),
            )
            for entry in operation.get("parameters", ())
        ),
        bodies=bodies,
        answers=tuple(
            content
            for status, answer in operation["responses"].items()
            for content in _contents(answer, schemas, status)
        ),
        example=write_example(method.upper(), path, operation.get("requestBody", {}), schemas),
    )


def _contents(body: Mapping[str, Any], schemas: Mapping[str, Any], status: str = "") -> Iterator[Content]:
    contents = body.get("content", {})
    for media_type, content in contents.items():
        schema = _resolve(content.get("schema", {}), schemas)
        fields = tuple(_list_fields(schema, schemas))
        yield Content(media_type, fields, body.get("description") or schema.get("description", ""), status)
    if status and not contents:
        yield Content("", (), body.get("description", ""), status)


def _resolve(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Mapping[str, Any]:
    return schemas[schema["$ref"].rpartition("/")[2]] if "$ref" in schema else schema


def _list_fields(
    schema: Mapping[str, Any], schemas: Mapping[str, Any], prefix: str = "", depth: int = 1
) -> Iterator[Field]:
    required = schema.get("required", ())
    for name, inner in schema.get("properties", {}).items():
        about = inner.get("description", "")
        yield Field(prefix + name, schema_type(inner, schemas), name in required, about)
        nested, marks = _object_in(inner, schemas)
        if nested and depth < MAX_DEPTH:
            yield from _list_fields(nested, schemas, f"{prefix}{name}{marks}.", depth + 1)


def _object_in(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """Return the object schema inside a schema, and one `[]` for each list that encloses it.

    The object may be the schema itself, one of its alternatives, or the items of a list.
    """
    schema = _resolve(schema, schemas)
    if "properties" in schema:
        return schema, ""
    if schema.get("type") == "array":
        nested, marks = _object_in(schema.get("items", {}), schemas)
        return nested, f"[]{marks}"
    for option in schema.get("anyOf", ()):
        nested, marks = _object_in(option, schemas)
        if nested:
            return nested, marks
    return {}, ""


def schema_type(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Return a short form of a schema's type: `string`, `integer or null`, `array of string`, `"a" | "b"`."""
    schema = _resolve(schema, schemas)
    if "enum" in schema:
        return " | ".join(json.dumps(value, ensure_ascii=False) for value in schema["enum"])
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(schema_type(option, schemas) for option in schema["anyOf"]))
    if schema.get("type") == "array":
        return f"array of {schema_type(schema.get('items', {}), schemas)}"
    return str(schema.get("format") or schema.get("type") or "any")


def write_example(method: str, path: str, body: Mapping[str, Any], schemas: Mapping[str, Any]) -> str:
    """Return a curl command line that makes the call, with the required fields of its body."""
    lines = [f'curl -X {method} "$URL{path}"', '-H "Authorization: Bearer $KEY"']
    contents = body.get("content", {})
    if "application/json" in contents:
        schema = _resolve(contents["application/json"]["schema"], schemas)
        required = schema.get("required") or list(schema.get("properties", {}))[:1]
        values = {name: _build_example(schema["properties"][name], schemas) for name in required}
        lines += ["-H 'Content-Type: application/json'", f"-d '{json.dumps(values, ensure_ascii=False)}'"]
    elif "multipart/form-data" in contents:
        lines += ["-F file=@report.pdf"]
    elif contents:
        lines += ["--data-binary @report.pdf"]
    return " \\\n  ".join(lines)


def _build_example(schema: Mapping[str, Any], schemas: Mapping[str, Any]) -> Any:
    schema = _resolve(schema, schemas)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _build_example(schema["anyOf"][0], schemas)
    return EXAMPLES.get(schema.get("type", ""))


class Reference(DocsBase):
    """Page with the list of operations, or with the single operation that `?operation=` names."""

    def render_page(self, request: HttpRequest, api: NinjaAPI, **kwargs: Any) -> HttpResponse:
        operations = operations_by_id(api)
        name = request.GET.get("operation")
        if name is None:
            words = request.GET.get("q", "")[:MAX_SEARCH_CHARS].strip()
            groups: dict[str, list[Operation]] = {}
            for operation in operations.values():
                if operation.has(words):
                    groups.setdefault(operation.subject, []).append(operation)
            subjects = [(subject, SUBJECTS.get(subject, subject), group) for subject, group in groups.items()]
            context = {"subjects": subjects, "count": len(operations), "words": words, "longest": MAX_SEARCH_CHARS}
            return render(request, "reference/list.html", context)
        if name not in operations:
            raise Http404
        return render(request, "reference/operation.html", {"operation": operations[name]})


@cache
def operations_by_id(api: NinjaAPI) -> Mapping[str, Operation]:
    """Map operation ids of an API to operations.

    The result is cached, because an API's operations do not change at run time.
    """
    return {operation.id: operation for operation in list_operations(api.get_openapi_schema())}
