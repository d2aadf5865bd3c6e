"""A describer is a model that describes files for models that cannot read them.

A describer must read files, and has no describer itself. If it can no longer read files later, this is only a warning.
"""

from __future__ import annotations

import json

import pytest
from django.core.management import call_command
from django.test import Client

from capabilities.actors import SYSTEM
from capabilities.errors import InvalidError
from capabilities.models import Service
from routing_admin.console.exchange.actions import import_configuration, preview_import
from routing_admin.console.routes.actions import save_route, save_route_as
from routing_admin.console.services.actions import save_service, set_capabilities
from routing_admin.console.settings.actions import set_content_policy
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE, CandidateSpec, RouteSpec
from routing_admin.models import Revision, TaskRoute
from tests.cast import create_token, person
from tests.console.visits import response_text
from tests.describing.describers import POLICY

pytestmark = pytest.mark.django_db(databases=["default", "logs"])

BLIND, SEER = CandidateSpec("echo", "echo-text"), CandidateSpec("echo", "echo-vision")


def sentences(refusal: InvalidError) -> str:
    return " ".join(problem.message for problem in refusal.problems)


def test_describe_route_without_a_media_reading_model_is_rejected(demo: None) -> None:
    """If a policy asks for file descriptions, the route for descriptions needs a model that reads media or files."""
    set_content_policy(SYSTEM, POLICY)
    with pytest.raises(InvalidError) as refusal:
        save_route_as(SYSTEM, None, RouteSpec("describe", (BLIND,)))
    assert "reads images, audio, video or files" in sentences(refusal.value)
    save_route_as(SYSTEM, None, RouteSpec("describe", (BLIND, SEER)))


def test_route_with_describer_policy_is_rejected_if_the_describer_reads_no_media(demo: None) -> None:
    """The describer is checked regardless of which of the two routes is saved first."""
    save_route_as(SYSTEM, None, RouteSpec("describe", (BLIND,)))
    with pytest.raises(InvalidError):
        save_route_as(SYSTEM, None, RouteSpec("other", (BLIND,), content={"policy": POLICY}))


def test_route_named_describe_is_not_checked_without_a_describing_policy(demo: None) -> None:
    """If no content policy uses descriptions, a route named `describe` may serve any purpose."""
    save_route_as(SYSTEM, None, RouteSpec("describe", (BLIND,)))
    save_route(SYSTEM, TaskRoute.objects.get(task_type="describe"))


def test_describe_route_cannot_have_a_describer_policy(demo: None) -> None:
    with pytest.raises(InvalidError) as refusal:
        save_route_as(SYSTEM, None, RouteSpec("describe", (SEER,), content={"policy": POLICY}))
    assert "describes files for other routes" in sentences(refusal.value)


def routing_file(*models: str, policy: str = "") -> str:
    fallback = [f"echo/{model}" for model in models[1:]]
    routes = {
        "default": {"provider": "echo", **({"content": {"policy": policy}} if policy else {})},
        DESCRIBE_ROUTE: {"provider": "echo", "model": models[0], "fallback": fallback},
    }
    return json.dumps({"providers": [], "routing": routes})


def test_import_of_a_describer_that_reads_no_media_is_rejected(demo: None) -> None:
    before = Revision.objects.count()
    text = routing_file("echo-text", policy=POLICY)
    (problem,) = [item for item in preview_import([text]).imported.problems if item.severity == "error"]
    assert (problem.field, "reads images, audio, video or files" in problem.message) == ("routing.describe", True)
    with pytest.raises(InvalidError) as refusal:
        import_configuration(SYSTEM, [text])
    assert problem.message in sentences(refusal.value)
    assert Revision.objects.count() == before
    import_configuration(SYSTEM, [routing_file("echo-text", "echo-vision", policy=POLICY)])


def test_describer_is_checked_for_installation_and_service_policies(demo: None) -> None:
    save_route_as(SYSTEM, None, RouteSpec(DESCRIBE_ROUTE, (BLIND,)))
    with pytest.raises(InvalidError):
        set_content_policy(SYSTEM, POLICY)
    row = Service.objects.get(model="echo-503")
    row.content = {"policy": POLICY}
    with pytest.raises(InvalidError):
        save_service(SYSTEM, row)
    token = create_token(person("root", is_staff=True))
    client = Client(headers={"authorization": f"Bearer {token}"})
    body = {"provider": "echo", "model": "echo-text", "content": {"policy": POLICY}}
    answer = client.put("/api/v1/admin/routes/other", json.dumps(body), "application/json")
    assert answer.status_code == 422
    assert "reads images, audio, video or files" in answer.content.decode()


def remove_vision_from_describer() -> None:
    """Change the describer's model so that it no longer reads images, as a capability probe might find."""
    set_content_policy(SYSTEM, POLICY)
    save_route_as(SYSTEM, None, RouteSpec(DESCRIBE_ROUTE, (SEER,)))
    set_capabilities(SYSTEM, {Service.objects.get(model="echo-vision"): {("input", "vision"): False}})


def test_describer_that_no_longer_reads_media_is_reported_as_a_warning(
    demo: None, admin: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    """Pages, `check_config` and `doctor` warn about the describer. The commands succeed."""
    remove_vision_from_describer()
    save_route_as(SYSTEM, None, RouteSpec("other", (BLIND,)))
    for page in ("/routes/", "/routes/default/"):
        assert "No model of the task route describe reads images" in response_text(admin.get(page))
    call_command("check_config")
    call_command("doctor")
    output = capsys.readouterr()
    assert "warning: routing.describe: No model of the route describe reads images" in output.err
    assert "No errors." in output.out
    assert "warn routes: No model of the route describe reads images" in output.out
    with pytest.raises(InvalidError):
        save_route_as(SYSTEM, None, RouteSpec("third", (BLIND,), content={"policy": POLICY}))


def test_import_of_a_describer_with_unknown_capabilities_only_warns(demo: None) -> None:
    """A file may be imported before its models' capabilities are known."""
    applied = import_configuration(SYSTEM, [routing_file("not-known-yet", policy=POLICY)])
    assert "warning" in {problem.severity for problem in applied.preview.imported.problems}
