"""Lint finds problems in a fallback chain before any provider is called."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.vocabulary import Capabilities
from routing_admin.core.configuration.specs import CandidateSpec, Configuration, ProviderSpec, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import SkipReason
from routing_admin.core.planning.lint import MEDIA, ChainLint, Finding, lint

URL = "https://models.example/v1"
PROVIDERS = tuple(ProviderSpec(name, URL, f"{name}-model") for name in ("qwen", "openai", "deepseek", "claude"))


def make_service(provider: str, *inputs: str, model: str = "") -> ServiceSpec:
    capabilities = Capabilities(("text", *inputs), ("text", "tool_calling"))
    return ServiceSpec(f"{provider}-service", provider, provider, model or f"{provider}-model", URL, capabilities)


SERVICES = (make_service("qwen", "vision", "video"), make_service("openai", "vision", "file"), make_service("deepseek"))
CONFIGURATION = Configuration(PROVIDERS, SERVICES)


def lint_chain(*names: str, configuration: Configuration = CONFIGURATION, **unusable: SkipReason) -> ChainLint:
    route = RouteSpec("design", tuple(CandidateSpec(*name.split("/")) for name in names))
    return lint(configuration, route, {name: (reason, f"{name}: why") for name, reason in unusable.items()})


def findings(chain: ChainLint) -> list[tuple[Finding, ...]]:
    return [candidate.findings for candidate in chain.candidates]


def test_lint_reports_the_capabilities_lost_at_each_candidate() -> None:
    chain = lint_chain("qwen", "deepseek", "openai", "deepseek/another")
    assert [candidate.loses for candidate in chain.candidates] == [
        (),
        ("vision", "video"),
        ("video",),
        ("vision", "video", "file"),
    ]


def test_primary_is_the_first_candidate_that_is_not_skipped() -> None:
    """A candidate without a key is never called, so the primary is the next candidate."""
    chain = lint_chain("qwen", "openai", "deepseek", qwen=SkipReason.NO_KEY)
    assert [Finding.PRIMARY in candidate_findings for candidate_findings in findings(chain)] == [False, True, False]


def test_skipped_candidate_does_not_affect_lost_or_guaranteed_capabilities() -> None:
    chain = lint_chain("qwen", "claude", "openai", claude=SkipReason.NO_KEY)
    assert chain.candidates[1].findings == (Finding.NO_KEY, Finding.TEXT_ONLY)
    assert chain.candidates[1].detail == "claude: why"
    assert chain.candidates[1].loses == ()
    assert chain.guaranteed == Capabilities(("text", "vision"), ("text", "tool_calling"))


@pytest.mark.parametrize(
    ("reason", "finding"),
    [(SkipReason.NO_KEY, Finding.NO_KEY), (SkipReason.ORIGIN_REFUSED, Finding.ORIGIN_REFUSED)],
)
def test_reason_for_skipping_a_provider_is_reported_as_a_finding(reason: SkipReason, finding: Finding) -> None:
    assert finding in lint_chain("qwen", "openai", qwen=reason).candidates[0].findings


def test_disabled_and_missing_providers_are_skipped() -> None:
    configuration = replace(CONFIGURATION, providers=(replace(PROVIDERS[0], enabled=False), *PROVIDERS[1:]))
    chain = lint_chain("qwen", "gone", "openai", configuration=configuration)
    assert [candidate.skipped for candidate in chain.candidates] == [True, True, False]
    assert findings(chain)[:2] == [(Finding.DISABLED,), (Finding.MISSING,)]


def test_repeated_candidate_is_unreachable_in_either_spelling() -> None:
    """`provider/default-model` and the provider's name alone are the same candidate."""
    chain = lint_chain("qwen", "qwen/qwen-model")
    assert findings(chain) == [(Finding.PRIMARY, Finding.LAST), (Finding.UNREACHABLE,)]


def test_only_the_first_candidate_with_another_model_is_reported_as_cross_model() -> None:
    """Later candidates with another model are not reported, since the same finding applies to all of them."""
    chain = lint_chain("qwen", "openai", "deepseek")
    assert [Finding.CROSS_MODEL in candidate_findings for candidate_findings in findings(chain)] == [False, True, False]


def test_model_without_a_service_counts_as_text_only() -> None:
    chain = lint_chain("claude")
    assert findings(chain) == [(Finding.TEXT_ONLY, Finding.PRIMARY, Finding.LAST)]
    assert chain.guaranteed == Capabilities()


def test_later_candidate_with_more_capabilities_is_reported() -> None:
    """The chain may be in the wrong order if a later candidate reads more kinds of content than those before it."""
    chain = lint_chain("deepseek", "openai")
    assert chain.candidates[1].gains == ("vision", "file")
    assert Finding.READS_MORE in findings(chain)[1]


def test_chain_without_callable_candidates_guarantees_nothing() -> None:
    chain = lint_chain("qwen", qwen=SkipReason.NO_KEY)
    assert (chain.callable, chain.guaranteed) == ((), Capabilities((), ()))


@given(st.lists(st.sampled_from(["qwen", "openai", "deepseek", "claude"]), min_size=1, max_size=6))
def test_chain_guarantees_only_capabilities_of_every_callable_candidate(names: list[str]) -> None:
    chain = lint_chain(*names)
    inputs = [set(candidate.capabilities.input) for candidate in chain.callable]
    assert set(chain.guaranteed.input) == set.intersection(*inputs)
    before = [set().union(*inputs[:index]) & set(MEDIA) for index in range(len(inputs))]
    assert [set(candidate.loses) for candidate in chain.callable] == [
        earlier - own_inputs for earlier, own_inputs in zip(before, inputs, strict=True)
    ]


def test_candidate_with_a_disabled_service_is_skipped() -> None:
    provider = ProviderSpec("echo", "echo://local", "echo-text", "echo")
    service = ServiceSpec("off", "off", "echo", "echo-text", "echo://local", enabled=False)
    route = RouteSpec("default", (CandidateSpec("echo"),))
    report = lint(Configuration((provider,), (service,), (route,)), route, {})
    assert Finding.DISABLED in report.candidates[0].findings
