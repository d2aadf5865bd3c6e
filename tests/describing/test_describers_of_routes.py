"""Loops are refused when a route is saved: who describes has to see, and has nobody describe for it."""

from __future__ import annotations

import pytest

from capabilities.acts import SYSTEM
from capabilities.errors import InvalidError
from routing_admin.actions.installation import set_content_policy
from routing_admin.actions.routes import save_route, save_route_as
from routing_admin.core.configuration.specs import CandidateSpec, RouteSpec
from routing_admin.models import TaskRoute
from tests.describing.describers import POLICY

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

BLIND, SEER = CandidateSpec("echo", "echo-text"), CandidateSpec("echo", "echo-vision")


def sentences(refusal: InvalidError) -> str:
    return " ".join(problem.message for problem in refusal.problems)


def test_a_describer_that_sees_nothing_is_refused(demo: None) -> None:
    """Once files are to be described, the route for it needs a model that reads some."""
    set_content_policy(SYSTEM, POLICY)
    with pytest.raises(InvalidError) as refusal:
        save_route_as(SYSTEM, None, RouteSpec("describe", (BLIND,)))
    assert "reads images, audio, video or files" in sentences(refusal.value)
    save_route_as(SYSTEM, None, RouteSpec("describe", (BLIND, SEER)))


def test_a_route_that_chooses_a_describer_that_sees_nothing_is_refused(demo: None) -> None:
    """In whichever order the two are saved."""
    save_route_as(SYSTEM, None, RouteSpec("describe", (BLIND,)))
    with pytest.raises(InvalidError):
        save_route_as(SYSTEM, None, RouteSpec("other", (BLIND,), content={"policy": POLICY}))


def test_a_route_of_that_name_is_left_alone_where_nothing_is_described(demo: None) -> None:
    """It may be there for anything, as long as no policy has files described."""
    save_route_as(SYSTEM, None, RouteSpec("describe", (BLIND,)))
    save_route(SYSTEM, TaskRoute.objects.get(task_type="describe"))


def test_a_describer_has_no_describer(demo: None) -> None:
    """It would ask itself."""
    with pytest.raises(InvalidError) as refusal:
        save_route_as(SYSTEM, None, RouteSpec("describe", (SEER,), content={"policy": POLICY}))
    assert "describes files for other routes" in sentences(refusal.value)
