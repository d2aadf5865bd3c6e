"""The agents' API conforms to its OpenAPI document, as checked by Schemathesis."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

import pytest
import schemathesis
from django.core.signals import request_finished, request_started
from django.core.wsgi import get_wsgi_application
from django.db import close_old_connections
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from capabilities.core.permissions import SCOPES
from routing_admin.console.api import agents_api
from tests.cast import AgentProgram, create_key, create_token

pytestmark = pytest.mark.django_db(databases=["default", "logs"])


def load_document() -> Any:
    """Return the OpenAPI document without its security schemes, so that generated calls keep the valid key."""
    schema: Any = agents_api().get_openapi_schema(path_prefix="/api/v1/")
    for methods in schema["paths"].values():
        for operation in methods.values():
            operation.pop("security", None)
    return schema


DOCUMENT = load_document()
CALLS = [(path, method) for path, methods in DOCUMENT["paths"].items() for method in methods]


@cache
def load_schema() -> Any:
    """Return the schema with the application to call.

    It is cached because loading it is slow: it collects all constants in the program.
    """
    schema = schemathesis.openapi.from_dict(DOCUMENT)
    schema.app = get_wsgi_application()
    return schema


def has_checked_input(operation: Any) -> bool:
    """Return whether the operation validates any input. Names in a path and a file's bytes are not validated."""
    forms = operation.get("requestBody", {}).get("content", {}).keys() - {"application/octet-stream"}
    return bool(forms) or any(parameter["in"] == "query" for parameter in operation.get("parameters", ()))


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
FORM = "multipart/form-data"
IN_PATHS = re.compile(r"\{(\w+)\}")
SETTINGS = settings(
    # Run 10 examples by default, and 80 with the Hypothesis profile `deep`.
    max_examples=settings.default.max_examples * 2 // 5,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def path_values(demo: None, admin_account: Any) -> dict[str, str]:
    """Return values for path parameters that name existing objects."""
    program = AgentProgram("text-agent", create_key("text-agent", scopes=SCOPES))
    ref = program.stored("note.txt", b"Gr\xc3\xbcezi.", "text/plain")["ref"]
    request = program.post("/llm/send", {"prompt": "hello"})
    token = program.post("/uploads", {"filename": "a.bin"}).json()["uploadUrl"].rsplit("/", 1)[-1]
    names = {"service_id": "text-model", "agent_id": "text-agent", "name": "llm-routing", "ref": ref, "token": token}
    script = {"provider": "echo", "task_type": "planning", "username": "admin", "number": "1"}
    script |= {"key_id": "none", "link_id": "none"}
    script |= {"alias": "gpt-4o", "code": "en"}
    secrets = {"key": program.key, "admin_token": create_token(admin_account)}
    return {**names, **script, **secrets, "request_id": request["x-request-id"]}


@pytest.fixture(autouse=True)
def open_connections(path_values: dict[str, str]) -> Iterator[None]:
    """Keep requests from closing the test's database connection, in the same way as Django's test client."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    yield
    for signal in signals:
        signal.connect(close_old_connections)


@pytest.mark.parametrize(("path", "method"), CALLS)
def test_generated_call_gets_a_documented_response_and_never_5xx(
    path_values: dict[str, str], path: str, method: str
) -> None:
    """The response's status, content type and schema are documented, whether or not the input is valid."""
    if has_checked_input(DOCUMENT["paths"][path][method]):
        # Invalid calls are sent first, because they change nothing.
        check_generated_calls(path_values, path, method, GenerationMode.NEGATIVE)
    check_generated_calls(path_values, path, method, GenerationMode.POSITIVE)


def check_generated_calls(path_values: dict[str, str], path: str, method: str, mode: GenerationMode) -> None:
    operation = load_schema()[path][method]
    has_form = FORM in DOCUMENT["paths"][path][method].get("requestBody", {}).get("content", {})
    # A form's text field accepts any text, so no generated form is invalid.
    checks = [check for check in CHECKS if check is not negative_data_rejection or not has_form]
    path_parameters = {name: path_values[name] for name in IN_PATHS.findall(path)}
    cases = operation.as_strategy(mode)
    if path_parameters:
        cases |= operation.as_strategy(mode, path_parameters=path_parameters)

    @SETTINGS
    @given(case=cases)
    def call(case: schemathesis.Case) -> None:
        if mode is GenerationMode.POSITIVE:
            case.query.pop("wait", None)  # With `wait`, the call would wait for the next configuration revision.
        secret = path_values["admin_token" if "/admin/" in path else "key"]
        headers = {"authorization": f"Bearer {secret}", "host": "127.0.0.1", "accept-encoding": "identity"}
        case.call_and_validate(headers=headers, checks=checks)

    call()
