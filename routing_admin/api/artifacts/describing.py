"""Files described by a model for an agent that says `describe`; nobody who does not say so ever pays for it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from django.http import HttpRequest

from artifacts.core.delivery.content_router import ContentRouteResult
from capabilities.access import principal_of
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.model_description import DescriptionState, ModelDescription
from capabilities.core.delivery.obstacles import ReasonCode
from capabilities.core.message import FilePart
from routing_admin.api.calls import CallError, agent_actor
from routing_admin.dispatch.describing_for_agents import describer

SCOPE = "route"
"""What a key needs beside: models are called."""
NO_SCOPE = "describe calls a model, which needs the scope route. An administrator can issue a key that has it."
NO_DESCRIBER, DESCRIBER_FAILED = "no_describer", "describer_failed"
"""Warnings: no model can be asked about the file, or the one that was asked said nothing."""

Describe = Callable[[FilePart], ModelDescription | None]


def describer_for(request: HttpRequest, language: str) -> Describe:
    """What describes files for the calling agent. Raises `CallError` 403 where its key may not call models."""
    principal = principal_of(request)
    if not principal.may(SCOPE):
        raise CallError(403, "scope_missing", NO_SCOPE, scope=SCOPE)
    request_id = agent_actor(request).request_id
    return lambda file: describer().describe(principal, request_id, file, language)


def add_description(result: ContentRouteResult, file: FilePart | None, describe: Describe) -> ContentRouteResult:
    """The result, with a model's words behind the file's facts where those are all that there is."""
    if result.delivery.outcome is not Outcome.DESCRIBED or result.delivery.reason.code is ReasonCode.UNREADABLE:
        return result
    description = describe(file) if file is not None else None
    if description is None:
        return replace(result, warnings=(*result.warnings, NO_DESCRIBER))
    if description.state is not DescriptionState.BY_MODEL:
        return replace(result, warnings=(*result.warnings, DESCRIBER_FAILED))
    return replace(result, content=f"{result.content}\n{description.text}")


def words_of(file: FilePart | None, describe: Describe) -> str:
    """A model's words about a file, quoted; empty where there are none."""
    description = describe(file) if file is not None else None
    return description.text if description is not None else ""
