"""Authenticate calls to the agents' API, and read their bodies within limits.

The scope that each call requires is listed in `capabilities/core/permissions.py`, so that no call is unprotected.
Refusals are `CallError`s, which all have the same JSON format.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import nullcontext
from typing import Any, TypeVar

import orjson
from django.http import HttpRequest, HttpResponse
from ninja.security.base import AuthBase
from pydantic import BaseModel, ValidationError

from capabilities.access import Principal, authenticate, refuse_call, refuse_query, request_principal
from capabilities.actors import Actor
from capabilities.core.permissions import route_path
from capabilities.core.problems import Problem
from capabilities.core.storable import find_unstorable, format_path, make_storable
from capabilities.errors import InvalidError
from capabilities.fair_slots import OverloadedError, heavy_work, requester
from capabilities.json_bodies import (
    LARGE_BYTES,
    JsonTooLargeError,
    body_limit,
    load_json,
    nests_too_deeply,
    too_deep,
)

S = TypeVar("S", bound=BaseModel)

CONSTRAINTS = {"missing": "required", "literal_error": "enum", "enum": "enum"}
"""Maps Pydantic's error types to our constraint names. For other error types, `_build_problem` derives the constraint
from the type's suffix.
"""


class CallError(Exception):
    """A refused call: its status, code, message, further fields of the error object, and headers."""

    def __init__(self, status: int, code: str, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status, self.code, self.more = status, code, more
        self.headers: Mapping[str, str] = {}


class AgentKeyAuth(AuthBase):
    """Authenticate the agent by its key and check the call's scope; browser sessions are not accepted."""

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_description = "An agent key, `Authorization: Bearer ra_…`, `x-api-key` or `api-key`."

    def __call__(self, request: HttpRequest) -> Principal:
        # Raises 401 without a valid key, 403 if the key lacks the scope or the call has no entry in the permission
        # table, and 400 for a key in the URL.
        result = refuse_query(request.META.get("QUERY_STRING", "")) or authenticate(request.headers)
        if isinstance(result, Principal):
            path = route_path(request.resolver_match.route) if request.resolver_match else ""
            refusal = refuse_call(result, request.method or "", path)
            if refusal is None:
                # Slots for heavy work are divided fairly among agents. This name says which agent the work is for.
                requester.set(result.key_owner)
                return result
            result = refusal
        more = {"scope": result.scope} if result.scope else {}
        raise CallError(result.status, result.code, result.message, **more)


def agent_actor(request: HttpRequest) -> Actor:
    address = request.META.get("REMOTE_ADDR") or ""
    return Actor("agent", request_principal(request).agent, address, getattr(request, "request_id", ""))


def answer(value: Any, status: int = 200, **headers: str) -> HttpResponse:
    """Return a JSON response. Unset fields of a schema are omitted, and `_` in header names becomes `-`."""
    if isinstance(value, BaseModel):
        data = value.model_dump_json(exclude_unset=True).encode()
    else:
        data = orjson.dumps(value, option=orjson.OPT_NON_STR_KEYS)
    named_headers = {name.replace("_", "-"): text for name, text in headers.items()}
    return HttpResponse(data, status=status, content_type="application/json; charset=utf-8", headers=named_headers)


def read_body(request: HttpRequest) -> bytes:
    """Return the body; raise `CallError` 413 if it is too large, and 415 if it has a content encoding."""
    limit = body_limit(request.path)
    if request.headers.get("content-encoding", "identity") != "identity":
        raise CallError(415, "unsupported_encoding", "Send the body without Content-Encoding.")
    announced = request.headers.get("content-length", "")
    too_large = CallError(413, "body_too_large", f"The body is larger than the limit of {limit} bytes.", limit=limit)
    if announced.isdigit() and int(announced) > limit:
        raise too_large
    # Without a Content-Length, read one byte more than allowed: if that succeeds, the body is too large.
    data = request.read(limit + 1)
    if len(data) > limit:
        raise too_large
    return bytes(data)


def read_json(request: HttpRequest, *, any_text: bool = False) -> Any:
    """Return the body as JSON; raise `CallError` 400 if it is invalid or nested too deeply, and 413 if it is too large.

    Raise `InvalidError` for text that the database cannot store. With `any_text`, any text is accepted.
    """
    data = read_body(request)
    try:
        with heavy_work().hold() if len(data) > LARGE_BYTES else nullcontext():
            value = load_json(data)
    except (JsonTooLargeError, OverloadedError) as error:
        raise CallError(error.status, error.code, str(error)) from None
    except ValueError as error:
        # orjson's message ends with the position of the error.
        position = str(error).split(":")[-1].strip()
        raise CallError(
            400, "invalid_json", f"The body is not valid JSON ({position}). Send one JSON object."
        ) from None
    if nests_too_deeply(value):
        raise CallError(400, "invalid_json", str(too_deep()))
    # Message text may contain any character. Other values are stored in the database, which does not accept all
    # characters.
    if any_text:
        return value
    problems = tuple(find_unstorable(value))
    if problems:
        raise InvalidError(problems)
    return make_storable(value)


def read_as(request: HttpRequest, schema: type[S], *, any_text: bool = False) -> S:
    """Return the body as an instance of the schema; raise `InvalidError` with every invalid field."""
    return parse_as(read_json(request, any_text=any_text), schema)


def parse_as(value: Any, schema: type[S]) -> S:
    """Return a JSON value as an instance of the schema; raise `InvalidError` with every invalid field."""
    try:
        return schema.model_validate(value)
    except ValidationError as error:
        raise InvalidError(
            _build_problem(detail["loc"], detail["type"], detail["msg"])
            for detail in error.errors(include_url=False, include_input=False, include_context=False)
        ) from None


def _build_problem(location: Any, kind: str, message: str) -> Problem:
    # An error with an empty location concerns the whole body.
    constraint = CONSTRAINTS.get(kind) or ("type" if kind.endswith(("_type", "_parsing")) else "range")
    # Pydantic's own message would contain the name of a Python class.
    sentence = "Input should be an object" if kind == "model_type" else message
    return Problem(format_path(location) or "body", sentence, constraint)


def takes(schema: type[BaseModel]) -> dict[str, Any]:
    """Return the OpenAPI description of a JSON request body that follows the schema."""
    return {"requestBody": {"required": True, **build_json_schema(schema)}}


def build_json_schema(schema: type[BaseModel]) -> dict[str, Any]:
    definition = schema.model_json_schema()
    return {"content": {"application/json": {"schema": inline_references(definition, definition.get("$defs", {}))}}}


def inline_references(value: Any, definitions: dict[str, Any]) -> Any:
    """Return a JSON schema in which every reference to `$defs` is replaced by the definition."""
    if isinstance(value, list):
        return [inline_references(item, definitions) for item in value]
    if not isinstance(value, dict):
        return value
    if "$ref" in value:
        return inline_references(definitions[value["$ref"].rsplit("/", 1)[-1]], definitions)
    return {key: inline_references(item, definitions) for key, item in value.items() if key != "$defs"}
