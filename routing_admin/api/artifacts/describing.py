"""Let a model describe files for agents that request this with `describe`; otherwise no model is called."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from django.http import HttpRequest

from artifacts.core.delivery.content_router import ContentRouteResult
from capabilities.access import request_principal
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.model_description import DescriptionState, ModelDescription
from capabilities.core.delivery.writing import CANNOT_BE_OPENED
from capabilities.core.message import FilePart
from routing_admin.api.calls import CallError, agent_actor
from routing_admin.dispatch.describing_for_agents import describer

SCOPE = "route"
"""Additional scope that a call with `describe` requires, because describing a file may call a model."""
NO_SCOPE = "describe calls a model, which needs the scope route. An administrator can issue a key that has it."
NO_DESCRIBER, DESCRIBER_FAILED = "no_describer", "describer_failed"
"""Warning codes: no model can describe the file, or the model returned no answer."""

Describe = Callable[[FilePart], ModelDescription | None]


def describer_for(request: HttpRequest, language: str) -> Describe:
    """Return a function that describes files for the calling agent; raise `CallError` 403 if the scope is missing."""
    principal = request_principal(request)
    if not principal.may(SCOPE):
        raise CallError(403, "scope_missing", NO_SCOPE, scope=SCOPE)
    request_id = agent_actor(request).request_id
    return lambda file: describer().describe(principal, request_id, file, language)


def add_description(result: ContentRouteResult, file: FilePart | None, describe: Describe) -> ContentRouteResult:
    """Append a model's description of the file to a result that contains only the file's metadata."""
    if result.delivery.outcome is not Outcome.DESCRIBED or result.delivery.reason.code in CANNOT_BE_OPENED:
        return result
    description = describe(file) if file is not None else None
    if description is None:
        return replace(result, warnings=(*result.warnings, NO_DESCRIBER))
    if description.state is not DescriptionState.BY_MODEL:
        return replace(result, warnings=(*result.warnings, DESCRIBER_FAILED))
    return replace(result, content=f"{result.content}\n{description.text}")


def description_text(file: FilePart | None, describe: Describe) -> str:
    """Return a model's description of a file as quoted text, or "" if there is none."""
    description = describe(file) if file is not None else None
    return description.text if description is not None else ""
