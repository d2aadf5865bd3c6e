"""Endpoints `GET /v1/models` and `/v1/models/{id}`: task routes and services with their capabilities.

Google's clients, recognised by their key header, receive Gemini's format, which /v1beta/models serves as well.
Anthropic's clients, recognised by their version header, receive Anthropic's format.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from django.http import HttpRequest, HttpResponse

from capabilities.access import request_principal
from capabilities.core.services.agent_limits import AgentLimits
from capabilities.core.vocabulary import TEXT_ONLY, Capabilities
from routing_admin.configuration import snapshot
from routing_admin.configuration.offered_models import list_offered
from routing_admin.configuration.snapshot import Snapshot, first_service
from routing_admin.core.planning.model_names import (
    NOT_ALLOWED,
    ModelNotAllowedError,
    UnknownModelError,
    check_allowed,
    resolve_model,
)
from routing_admin.gateway.admission import endpoint
from routing_admin.gateway.errors import GatewayError, json_response
from routing_admin.gateway.gemini.endpoints import write_model, write_page
from routing_admin.gateway.gemini.rendering import error_json as google_error_of
from routing_admin.gateway.messages import models as anthropic_models
from routing_admin.gateway.messages.models import VERSION_HEADER

GOOGLE_KEY = "x-goog-api-key"


@endpoint("/v1/models")
def models(request: HttpRequest) -> HttpResponse:
    """List the models that the agent may use, in the format of the client's vendor or else in OpenAI's."""
    entries = list(model_list(snapshot.current(), request_principal(request).rights))
    if GOOGLE_KEY in request.headers:
        return _page(request, entries)
    if VERSION_HEADER in request.headers:
        return json_response(anthropic_models.write_page(entries, request.GET.dict()))
    return json_response({"object": "list", "data": entries})


@endpoint("/v1/models/{name}")
def model(request: HttpRequest, name: str) -> HttpResponse:
    entry = _find_model(request, name)
    if GOOGLE_KEY in request.headers:
        return json_response(write_model(entry))
    return json_response(anthropic_models.write_model(entry) if VERSION_HEADER in request.headers else entry)


@endpoint("/v1beta/models", google_error_of)
def gemini_models(request: HttpRequest) -> HttpResponse:
    """List the models in pages of Gemini's format."""
    return _page(request, list(model_list(snapshot.current(), request_principal(request).rights)))


@endpoint("/v1beta/models/{name}", google_error_of)
def gemini_model(request: HttpRequest, name: str) -> HttpResponse:
    return json_response(write_model(_find_model(request, name)))


def _page(request: HttpRequest, entries: list[dict[str, Any]]) -> HttpResponse:
    size, token = (request.GET.get(name, "") for name in ("pageSize", "pageToken"))
    return json_response(write_page(entries, size, token))


def _find_model(request: HttpRequest, name: str) -> dict[str, Any]:
    state, limits = snapshot.current(), request_principal(request).rights
    entry = next((listed for listed in model_list(state, limits) if listed["id"] == name), None)
    return entry or _model_by_another_name(state, name, limits)


def model_list(state: Snapshot, limits: AgentLimits | None = None) -> Iterator[dict[str, Any]]:
    """List the task routes that the agent may use, then the services, as OpenAI's model objects."""
    return (model_json(*offered) for offered in list_offered(state, limits))


def model_json(name: str, capabilities: Capabilities, owner: str) -> dict[str, Any]:
    """Return a model object; `created` is 0, because the creation time is unknown."""
    directions = {"input": list(capabilities.input), "output": list(capabilities.output)}
    return {"id": name, "object": "model", "created": 0, "owned_by": owner, "capabilities": directions}


def _model_by_another_name(state: Snapshot, name: str, limits: AgentLimits | None) -> dict[str, Any]:
    # Aliases, provider/model, bare task types and `auto` are valid names, although they are not listed.
    configuration = state.configuration
    try:
        target = resolve_model(configuration, name)
        check_allowed(limits, configuration, target, name)
    except ModelNotAllowedError as error:
        raise GatewayError(403, NOT_ALLOWED, error.sentence, "model") from None
    except LookupError as error:
        reason = str(error) if isinstance(error, UnknownModelError) else "no route"
        raise GatewayError(404, "model_not_found", reason, "model") from None
    # A service requested by name shows its own capabilities; a route shows those of its first candidate that can
    # answer.
    if target.direct:
        first = target.route.primary
        service = target.service or configuration.service_at(first.provider, first.model or "")
        return model_json(name, service.effective_capabilities if service else TEXT_ONLY, first.provider)
    service = first_service(configuration, state.keys, target.route.task_type)
    return model_json(name, service.effective_capabilities if service else TEXT_ONLY, "routing_admin")
