"""Administrators' API for fire drills, which simulate the outage of a provider."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated

from django.http import HttpRequest, HttpResponse
from ninja import Router
from pydantic import BaseModel, Field

from capabilities.errors import NotFoundError
from routing_admin.api.calls import answer, read_as, takes
from routing_admin.api.errors import Body
from routing_admin.console.base.api import TAG, script_actor
from routing_admin.console.drills.actions import start_drill, stop_drill
from routing_admin.core.fallback.scripts import CHOICES, USUAL_SECONDS

router = Router(tags=[TAG])


class DrillIn(Body):
    """Duration of the drill in seconds: 30, 60 or 300."""

    seconds: Annotated[int, Field(ge=min(CHOICES), le=max(CHOICES))] = USUAL_SECONDS


class DrillThing(BaseModel):
    """A running fire drill and its remaining seconds."""

    provider: str
    actor: str
    seconds: int


class DrillOut(BaseModel):
    """The drill that has started."""

    drill: DrillThing


@router.post("/providers/{provider}/drill", response={201: DrillOut}, openapi_extra=takes(DrillIn))
def admin_start_drill(request: HttpRequest, provider: str) -> HttpResponse:
    """Start a fire drill: the provider counts as unavailable until the drill ends.

    The status is 409 while a drill is running, or if the provider is disabled.
    """
    seconds = read_as(request, DrillIn).seconds
    drill = start_drill(script_actor(request), provider, seconds)
    return answer(DrillOut(drill=DrillThing(provider=drill.provider, actor=drill.actor, seconds=seconds)), 201)


@router.delete("/providers/{provider}/drill", response={204: None})
def admin_stop_drill(request: HttpRequest, provider: str) -> HttpResponse:
    """End the provider's drill early. If no drill is running, nothing happens."""
    with suppress(NotFoundError):
        stop_drill(script_actor(request), provider)
    return HttpResponse(status=204)
