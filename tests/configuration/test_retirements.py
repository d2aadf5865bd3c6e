"""The retirement dates of all models in a configuration, earliest first."""

from __future__ import annotations

from datetime import date

from capabilities.core.providers.catalogue import default_catalogue
from routing_admin.core.configuration.removals import list_ends
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, ProviderSpec, RouteSpec, ServiceSpec

OPENAI = "https://api.openai.com/v1"


def test_retired_models_in_defaults_services_and_candidates_are_listed_once() -> None:
    configuration = Configuration(
        providers=(ProviderSpec("ours", OPENAI, "gpt-5"), ProviderSpec("echo", "echo://local", "echo-text", "echo")),
        services=(ServiceSpec("old", "Old", "ours", "gpt-4", OPENAI), ServiceSpec("e", "E", "echo", "x", "echo://")),
        routes=(RouteSpec("default", (CandidateSpec("ours"), CandidateSpec("ours", "gpt-4o"), CandidateSpec("gone"))),),
    )
    assert [(end.provider, end.model, end.retirement.day) for end in list_ends(configuration, default_catalogue())] == [
        ("ours", "gpt-4", date(2026, 10, 23)),
        ("ours", "gpt-5", date(2026, 12, 11)),
        ("ours", "gpt-4o", date(2027, 1, 14)),
    ]


def test_empty_configuration_has_no_retirements() -> None:
    assert list_ends(Configuration(), default_catalogue()) == ()
