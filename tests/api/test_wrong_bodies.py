"""Every API call rejects a value that has the wrong type or is out of bounds, and names its path in the body."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from capabilities.core.permissions import SCOPES
from routing_admin.api.calls import inline_references
from routing_admin.console.api import agents_api
from tests.cast import AgentProgram, create_token

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

Schema = Mapping[str, Any]
# One value of each JSON type.
VALUE_OF_EACH_TYPE: Mapping[str, Any] = {
    "null": None,
    "boolean": False,
    "integer": 7,
    "number": 0.5,
    "string": "7",
    "array": [None, None],
    "object": {"unknown": [1]},
}
IN_PATHS = {
    "ref": "x",
    "service_id": "text-model",
    "agent_id": "made",
    "name": "llm-routing",
    "request_id": "x",
    "token": "x",
    "provider": "echo",
    "task_type": "planning",
    "username": "vera",
    "number": "1",
    "key_id": "x",
    "link_id": "x",
    "alias": "gpt-4o",
    "code": "pt",
}
# This call takes a configuration file, which is validated separately.
FILES = "/config/import"

_written = agents_api().get_openapi_schema(path_prefix="")
DOCUMENT = inline_references(_written["paths"], _written["components"]["schemas"])
CALLS = {
    f"{method.upper()} {path.format(**IN_PATHS)}": operation
    for path, item in DOCUMENT.items()
    for method, operation in item.items()
}
BODIES: dict[str, Schema] = {
    call: operation["requestBody"]["content"]["application/json"]["schema"]
    for call, operation in CALLS.items()
    if "application/json" in operation.get("requestBody", {}).get("content", {})
}
QUERIES: dict[str, list[Schema]] = {
    call: found
    for call, operation in CALLS.items()
    if (found := [parameter for parameter in operation.get("parameters", ()) if parameter["in"] == "query"])
}


def schemas_by_type(schema: Schema) -> dict[str, Schema]:
    """Map each JSON type that a schema accepts to that type's schema."""
    found = {branch.get("type", "string"): branch for branch in schema.get("anyOf") or schema.get("allOf") or [schema]}
    return found | ({"integer": found["number"]} if "number" in found else {})


def minimal_value(schema: Schema) -> Any:
    kind, branch = next((kind, branch) for kind, branch in schemas_by_type(schema).items() if kind != "null")
    if kind == "object":
        names = branch.get("required") or list(branch.get("properties", ()))[: branch.get("minProperties", 0)]
        return {name: minimal_value(branch["properties"][name]) for name in names}
    return {"array": [], "string": branch.get("enum", ["x"])[0], "boolean": True}.get(kind, 1)


def out_of_bounds_values(schema: Schema) -> Iterator[Any]:
    """Yield values that have a schema's type but lie outside its bounds."""
    for branch in schemas_by_type(schema).values():
        yield from (
            "x" * (branch[bound] + step) for bound, step in (("maxLength", 1), ("minLength", -1)) if bound in branch
        )
        yield from (
            [minimal_value(branch["items"])] * (branch[bound] + 1) for bound in ("maxItems",) if bound in branch
        )
        yield from (branch[bound] - 1 for bound in ("minimum", "exclusiveMinimum") if bound in branch)
        yield from (branch[bound] + 1 for bound in ("maximum", "exclusiveMaximum") if bound in branch)
        yield from ["sideways"] if "enum" in branch else []


def values_with_one_error(schema: Schema, path: str = "") -> Iterator[tuple[str, Any]]:
    """Yield pairs of a path and a body that is invalid only at this path."""
    allowed = schemas_by_type(schema)
    yield from ((path or "body", value) for kind, value in VALUE_OF_EACH_TYPE.items() if kind not in allowed)
    yield from ((path, value) for value in out_of_bounds_values(schema))
    if "minProperties" in allowed.get("object", {}):
        yield path, {}
    properties, required = (
        allowed.get("object", {}).get("properties", {}),
        allowed.get("object", {}).get("required", ()),
    )
    for name, inner in properties.items():
        field_path, complete = f"{path}.{name}".lstrip("."), minimal_value(allowed["object"])
        yield from (
            (value_path, {**complete, name: value}) for value_path, value in values_with_one_error(inner, field_path)
        )
        if name in required:
            yield field_path, {field_name: value for field_name, value in complete.items() if field_name != name}
    if "items" in allowed.get("array", {}):
        yield from (
            (value_path, [value])
            for value_path, value in values_with_one_error(allowed["array"]["items"], f"{path}[0]")
        )


class AgentOrAdministrator:
    """A client that calls /admin/ as an administrator and everything else as an agent with every scope."""

    def __init__(self, agent: Any, token: str) -> None:
        self.agent, self.script = agent, AgentProgram("", token)

    def call(self, method: str, path: str, *arguments: Any, **options: Any) -> Any:
        return (self.script if path.startswith("/admin/") else self.agent).call(method, path, *arguments, **options)

    def post(self, path: str, body: Any) -> Any:
        return self.call("POST", path, body)


@pytest.fixture
def agent(caller: Any, admin_account: Any, viewer_account: Any) -> Any:
    return AgentOrAdministrator(caller("text-agent", *SCOPES), create_token(admin_account))


def error_fields(response: Any) -> tuple[int, list[str]]:
    """Return the status and the paths of the errors."""
    return response.status_code, [detail["path"] for detail in response.json().get("details", ())]


@pytest.mark.parametrize("call", [call for call in BODIES if FILES not in call])
def test_body_with_one_error_is_rejected_with_its_path(agent: Any, call: str) -> None:
    """`false` does not count as 0, and `"7"` does not count as 7."""
    wrong_values = list(values_with_one_error(BODIES[call]))
    refusals = [error_fields(agent.call(*call.split(), json.dumps(value).encode())) for _, value in wrong_values]
    assert list(zip(refusals, wrong_values, strict=True)) == [
        ((422, [expected_path]), (expected_path, value)) for expected_path, value in wrong_values
    ]


@pytest.mark.parametrize("value", [*VALUE_OF_EACH_TYPE.values()])
def test_json_that_is_not_a_configuration_file_is_rejected(agent: Any, value: Any) -> None:
    status, paths = error_fields(agent.post(FILES, json.dumps(value).encode()))
    assert (status, bool(paths)) == (422, True)


@pytest.mark.parametrize("call", QUERIES)
def test_invalid_query_parameter_is_rejected_by_name(agent: Any, call: str) -> None:
    needed = {item["name"]: "x" for item in QUERIES[call] if item.get("required")}
    for parameter in QUERIES[call]:
        schema, name = parameter["schema"], parameter["name"]
        values = [*map(str, out_of_bounds_values(schema)), *(() if "string" in schemas_by_type(schema) else ("many",))]
        refusals = [error_fields(agent.call(*call.split(), **{**needed, name: value})) for value in values]
        assert refusals == [(422, [name])] * len(values)


def test_openapi_document_has_bounds_and_enumerations() -> None:
    temperature, _ = BODIES["POST /llm/send"]["properties"]["temperature"]["anyOf"]
    assert (temperature["minimum"], temperature["maximum"]) == (0, 2)
    tokens, _ = BODIES["POST /llm/send"]["properties"]["maxTokens"]["anyOf"]
    assert (tokens["minimum"], tokens["maximum"]) == (1, 2**31 - 1)
    assert BODIES["POST /artifacts"]["properties"]["visibility"]["enum"] == ["shared", "private"]
    direction = next(parameter for parameter in QUERIES["GET /agents"] if parameter["name"] == "direction")
    assert schemas_by_type(direction["schema"])["string"]["enum"] == ["input", "output", "both"]
    limit = next(parameter for parameter in QUERIES["GET /artifacts"] if parameter["name"] == "limit")
    assert (limit["schema"]["minimum"], limit["schema"]["maximum"]) == (1, 200)


def test_unknown_fields_are_ignored(agent: Any) -> None:
    message = {
        "text": "Look",
        "attachments": [{"artifactRef": "artifact:x", "type": "image", "colour": "red"}],
        "tone": 3,
    }
    answer = agent.post("/messages/required-capabilities", {"message": message, "more": True})
    assert answer.json() == {"capabilities": ["text", "vision"]}
