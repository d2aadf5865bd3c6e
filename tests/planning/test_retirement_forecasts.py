"""Forecasts for models that their vendors will retire: the affected routes, their order, and when pages begin to show
them.
"""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from capabilities.core.consequence import Gravity
from capabilities.core.providers.catalogue import default_catalogue
from capabilities.core.vocabulary import Capabilities
from routing_admin.core.configuration.specs import (
    CandidateSpec,
    Configuration,
    ProviderSpec,
    RouteSpec,
    ServiceSpec,
)
from routing_admin.core.planning.consequences import foresee_endings
from routing_admin.core.planning.lint import NOTICE, Finding, lint

ANTHROPIC, OPENAI = "https://api.anthropic.com/v1", "https://api.openai.com/v1"
SEES = Capabilities(("text", "vision"), ("text",))


def end_date(endpoint: str, model: str) -> date:
    retirement = default_catalogue().retirement_at("host", endpoint, model)
    assert retirement is not None
    return retirement.day


SONNET = end_date(ANTHROPIC, "claude-sonnet-4-5")
GPT = end_date(OPENAI, "gpt-4o")


def configuration_with_retirements(*chain: CandidateSpec) -> Configuration:
    """Return a configuration with two models that read images and will be retired, and a text model that will not."""
    return Configuration(
        providers=(
            ProviderSpec("claude", ANTHROPIC, "claude-sonnet-4-5", "anthropic"),
            ProviderSpec("gpt", OPENAI, "gpt-4o"),
            ProviderSpec("words", "http://127.0.0.1:9/v1", "plain"),
        ),
        services=(
            ServiceSpec("sonnet", "", "claude", "claude-sonnet-4-5", ANTHROPIC, SEES),
            ServiceSpec("four-o", "", "gpt", "gpt-4o", OPENAI, SEES),
        ),
        routes=(RouteSpec("design", chain),),
    )


BOTH = configuration_with_retirements(CandidateSpec("words"), CandidateSpec("claude"), CandidateSpec("gpt"))


def test_route_loses_its_last_vision_model_at_the_second_retirement():
    """After the first retirement, one model that reads images is left; after the second, there is none."""
    first, second = foresee_endings(BOTH, max(SONNET, GPT) - timedelta(days=1))
    assert (first.end.model, first.is_over) == ("claude-sonnet-4-5", True)
    assert [consequence.sentence for consequence in first.consequences] == ["design loses sonnet."]
    assert (second.end.model, second.is_over) == ("gpt-4o", False)
    lost, _ = second.consequences
    assert (lost.gravity, lost.sentence) == (Gravity.DEGRADES, "design loses its last model that reads images.")


def test_route_with_only_retired_models_stops():
    (ending,) = foresee_endings(configuration_with_retirements(CandidateSpec("claude")), SONNET)
    assert (ending.is_over, ending.consequences[0].gravity) == (True, Gravity.STOPS)


@pytest.mark.parametrize(("before", "reported"), [(NOTICE, True), (NOTICE + timedelta(days=1), False)])
def test_retirement_is_reported_from_the_start_of_the_notice_period(before: timedelta, reported: bool):
    chain = configuration_with_retirements(CandidateSpec("claude"))
    assert bool(foresee_endings(chain, SONNET - before)) is reported


def test_retirement_of_an_unused_model_is_not_reported():
    assert foresee_endings(configuration_with_retirements(CandidateSpec("words")), SONNET) == ()


@pytest.mark.parametrize(
    ("today", "finding"),
    [(SONNET, Finding.ENDED), (SONNET - timedelta(days=1), Finding.ENDS), (SONNET - NOTICE * 2, None)],
)
def test_lint_reports_the_retirement_of_a_candidate(today: date, finding: Finding | None):
    plain, claude, _ = lint(BOTH, BOTH.routes[0], today=today).candidates
    assert plain.retirement is None
    assert {Finding.ENDED, Finding.ENDS} & set(claude.findings) == ({finding} if finding else set())
