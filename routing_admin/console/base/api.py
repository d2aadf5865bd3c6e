"""Authentication, ETags and other shared parts of the administrators' API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, overload

from django import forms
from django.http import HttpRequest, HttpResponse
from ninja.security.base import AuthBase

from capabilities.actors import Actor
from capabilities.core.permissions import ADMIN_SCOPES, route_path
from capabilities.core.problems import Problem
from capabilities.core.services.agent_limits import (
    CURRENCY,
    MODELS,
    UNPRICED,
    UNPRICED_PRICE,
)
from capabilities.errors import InvalidError, NotFoundError
from routing_admin.api.calls import CallError, answer
from routing_admin.configuration.history import newest_number
from routing_admin.console.base.form_fields import LIMITS
from routing_admin.console.base.schemas import EntriesOut
from routing_admin.console.people.actions import record_use
from routing_admin.core.files.entries import Expectation, entity_tag, parse_if_match
from routing_admin.platform.auth.admin_tokens import AdminCaller, authenticate_token, refuse_admin_call, refuse_token_in
from routing_admin.platform.server.request_id import read_request_id

TAG = "administration"


class AdminTokenAuth(AuthBase):
    """Authenticates scripts by token. Agents' keys and browser sessions are not accepted."""

    openapi_type = "http"
    openapi_scheme = "bearer"
    openapi_description = "An administrator's token, `Authorization: Bearer rat_…`; only calls under `/admin` take it."

    def __call__(self, request: HttpRequest) -> AdminCaller:
        """Return the caller, or raise `CallError`.

        The status is 401 for an invalid token, 403 if the token lacks the scope, and 400 if the token is in the URL.
        """
        result = refuse_token_in(request.META.get("QUERY_STRING", "")) or authenticate_token(request.headers)
        if isinstance(result, AdminCaller):
            # The required scope depends on the route's pattern, not on the requested URL.
            path = route_path(request.resolver_match.route) if request.resolver_match else ""
            refusal = refuse_admin_call(result, request.method or "", path)
            if refusal is None:
                record_use(result, remote_address(request), read_request_id(request))
                return result
            result = refusal
        details = {"scope": result.scope} if result.scope else {}
        raise CallError(result.status, result.code, result.message, **details)


def remote_address(request: HttpRequest) -> str:
    return request.META.get("REMOTE_ADDR") or ""


def script_actor(request: HttpRequest) -> Actor:
    caller: AdminCaller = request.auth  # type: ignore[attr-defined]
    return Actor("token", caller.name, remote_address(request), read_request_id(request))


def check_grantable(request: HttpRequest, scopes: Iterable[str], subject: str) -> None:
    """Raise `CallError` 403 if `scopes` contains an administrative scope that the caller's token lacks."""
    caller: AdminCaller = request.auth  # type: ignore[attr-defined]
    if missing := [scope for scope in ADMIN_SCOPES if scope in set(scopes) - caller.scopes]:
        message = f"A token cannot give more than it has. {subject} takes {', '.join(missing)}, which this token lacks."
        raise CallError(403, "scope_missing", message, scope=missing[0])


def expected_revision(request: HttpRequest) -> int | None:
    """Return the revision in the request's If-Match header, or None if it has no such header."""
    return parse_revision_tag(request.headers.get("if-match", ""))


def read_expectation(request: HttpRequest) -> Expectation:
    return parse_if_match(request.headers.get("if-match", ""))


def answer_entry(value: EntriesOut, entry: Mapping[str, Any], status: int = 200) -> HttpResponse:
    """Return a response with one entry, the newest revision, and an ETag that is derived from the entry."""
    response = answer_at_revision(value, status)
    response["ETag"] = f'"{entity_tag(entry)}"'
    return response


def answer_at_revision(value: EntriesOut, status: int = 200) -> HttpResponse:
    """Return a response with the newest revision, in the body and as the ETag."""
    value.revision = newest_number() or 0
    response = answer(value, status)
    response["ETag"] = f'"{value.revision}"'
    return response


def require(row: Any, kind: str, name: str) -> Any:
    """Return the row, or raise `NotFoundError` if it is None."""
    if row is None:
        raise NotFoundError(f"There is no {kind} {name}.")
    return row


@overload
def iso(moment: datetime) -> str: ...
@overload
def iso(moment: None) -> None: ...
def iso(moment: datetime | None) -> str | None:
    return moment.isoformat(timespec="seconds") if moment else None


# The pages' forms also validate limits that scripts send. The form's errors are then mapped to JSON fields.

LIMIT_FIELDS = frozenset({MODELS, CURRENCY, UNPRICED, UNPRICED_PRICE, *(meter.value for meter in LIMITS)})


def limit_fields(limits: Mapping[str, Any]) -> dict[str, Any]:
    """Return the limits in a request as form data.

    Raise `InvalidError` for an unknown limit or a malformed list of models.
    """
    models = limits.get(MODELS) or []
    unknown = [name for name in limits if name not in LIMIT_FIELDS]
    if unknown:
        message = f"There is no such limit. Limits are: {', '.join(sorted(LIMIT_FIELDS))}."
        raise InvalidError([Problem(f"limits.{unknown[0]}", message, "enum")])
    if not isinstance(models, list) or not all(isinstance(name, str) for name in models):
        raise InvalidError([Problem(f"limits.{MODELS}", "A list of names is expected.", "type")])
    return {MODELS: "\n".join(models), **{name: value for name, value in limits.items() if name != MODELS}}


def form_problems(form: forms.BaseForm, fields: Mapping[str, str]) -> list[Problem]:
    """Return a form's errors. `fields` maps each form field to its JSON field if the names differ."""
    return [
        Problem(fields.get(name, f"limits.{name}" if name in LIMIT_FIELDS else name), str(error), "range")
        for name, errors in form.errors.items()
        for error in errors
    ]


def parse_revision_tag(tag: str) -> int | None:
    """Return the revision in an If-Match header, or None for an empty value or `*`.

    Raise `CallError` for any other tag.
    """
    word = tag.strip().removeprefix("W/").strip('"')
    if word in ("", "*"):
        return None
    if not word.isdigit():
        raise CallError(400, "invalid_request", "If-Match names a revision, as the ETag of GET /config does.")
    return int(word)
