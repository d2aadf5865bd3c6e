"""How a requested model name is resolved, in order of precedence."""

from __future__ import annotations

import pytest

from routing_admin.core.configuration.specs import (
    AliasSpec,
    CandidateSpec,
    Configuration,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.planning.model_names import UnknownModelError, is_target, resolve_model

PROVIDERS = tuple(ProviderSpec(name, "https://x.example/v1", "m") for name in ("silicon", "a/b"))
SERVICE = ServiceSpec("vision-model", "Vision", "silicon", "v1", "https://x.example/v1")
OFF = ServiceSpec("off", "Off", "silicon", "v2", "https://x.example/v1", enabled=False)
ROUTES = (
    RouteSpec("default", (CandidateSpec("silicon"),)),
    RouteSpec("planning", (CandidateSpec("silicon"),)),
    RouteSpec("vision-model", (CandidateSpec("silicon"),)),
    RouteSpec("closed", (CandidateSpec("silicon"),), enabled=False),
    RouteSpec("__proto__", (CandidateSpec("silicon"),)),
)
ALIASES = (AliasSpec("gpt-4o", "task:planning"), AliasSpec("planning-alias", "vision-model"))
PLAIN = Configuration(PROVIDERS, (SERVICE, OFF), ROUTES, ALIASES)


@pytest.mark.requirement("MMR-P5", "MMR-P6")
@pytest.mark.parametrize(
    ("name", "route", "matched", "direct"),
    [
        ("task:planning", "planning", True, False),
        ("task:vision-model", "vision-model", True, False),
        ("task:unheard-of", "default", False, False),
        ("task:closed", "default", False, False),
        ("task:__proto__", "__proto__", True, False),
        ("gpt-4o", "planning", True, False),
        ("planning-alias", "vision-model", True, True),
        ("vision-model", "vision-model", True, True),
        ("planning", "planning", True, False),
        ("silicon/deepseek-ai/DeepSeek-V3", "silicon/deepseek-ai/DeepSeek-V3", True, True),
        ("a/b/c", "a/b/c", True, True),
        ("auto", "default", True, False),
    ],
)
def test_model_name_resolves_to_the_expected_route(name, route, matched, direct):
    """A name may be a task type, an alias, a service, a `provider/model` or `auto`. Unknown task types use the default
    route.
    """
    resolved = resolve_model(PLAIN, name)
    assert (resolved.route.task_type, resolved.matched, resolved.direct) == (route, matched, direct)
    if direct:
        assert len(resolved.route.candidates) == 1


def test_model_name_is_split_after_the_first_known_provider_name():
    assert resolve_model(PLAIN, "silicon/deepseek-ai/DeepSeek-V3").route.primary == CandidateSpec(
        "silicon", "deepseek-ai/DeepSeek-V3"
    )
    assert resolve_model(PLAIN, "a/b/c").route.primary == CandidateSpec("a/b", "c")


@pytest.mark.parametrize("name", ["gpt-99", "off", "closed", "unknown/x", "silicon/", "*", "constructor"])
def test_unknown_model_name_is_rejected_without_a_catch_all_alias(name):
    """The catch-all alias applies only if no other name matches."""
    with pytest.raises(UnknownModelError):
        resolve_model(PLAIN, name)
    catching = Configuration(PROVIDERS, (SERVICE, OFF), ROUTES, (*ALIASES, AliasSpec("*", "planning")))
    assert resolve_model(catching, name).route.task_type == "planning"
    assert resolve_model(catching, "vision-model").direct


def test_service_requested_by_name_is_used_with_its_own_capabilities():
    """Two services may have the same provider and model but different capabilities."""
    assert resolve_model(PLAIN, "vision-model").service is SERVICE
    assert resolve_model(PLAIN, "planning-alias").service is SERVICE
    assert resolve_model(PLAIN, "silicon/v1").service is None


def test_task_type_in_the_body_takes_precedence_over_the_model_name():
    """Clients always have to send some model name, so a task type in the body takes precedence over it."""
    assert resolve_model(PLAIN, "gpt-99", "planning").route.task_type == "planning"
    assert resolve_model(PLAIN, "vision-model", "unheard-of").matched is False


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("task:planning", True),
        ("planning", True),
        ("closed", True),
        ("vision-model", True),
        ("off", True),
        ("silicon/deepseek-ai/DeepSeek-V3", True),
        ("a/b/c", True),
        ("auto", True),
        ("task:unheard-of", False),
        ("gpt-4o", False),
        ("unknown/x", False),
        ("silicon/", False),
        ("*", False),
        ("", False),
    ],
)
def test_alias_can_refer_to_any_existing_target_even_if_disabled(name, expected):
    assert is_target(PLAIN, name) is expected
