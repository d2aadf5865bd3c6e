"""Properties of routing, checked with generated configurations and requests, and with scripted providers."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from capabilities.core.wire import Answer, Failure, Fault
from routing_admin.core.configuration.specs import Configuration
from routing_admin.core.fallback.chain import Call
from routing_admin.core.fallback.errors import AggregateRouterError, UpstreamRefused
from routing_admin.core.files.keys import MissingConfigurationError, configuration_from_env
from routing_admin.core.planning.language import match_language
from routing_admin.core.planning.params import Params
from routing_admin.core.planning.plan import RoutingQuery, make_plan, resolve_route
from routing_admin.core.seeds.router import LLMRequest, LLMRouter
from tests.fallback.scripted_runs import (
    TASKS,
    FakeUpstream,
    Stage,
    configurations,
    languages,
    make_outcome,
    temperatures,
    token_limits,
)

task_types = st.none() | st.sampled_from(TASKS) | st.text(max_size=8)
# After a status in `passing`, the router retries and then falls back. After a status in `refusing`, the request fails.
passing = st.sampled_from([429, 500, 502, 503, 504])
refusing = st.sampled_from([400, 401, 403])


def router_over(configuration: Configuration, upstream: FakeUpstream) -> LLMRouter:
    stage = Stage()
    upstream.clock = stage.clock
    return LLMRouter(configuration, lambda call, chat: upstream(call), run_context=stage.run_context, sleep=stage.sleep)


def scripts_for_all(configuration: Configuration, outcomes: list) -> dict:
    return {provider.name: outcomes for provider in configuration.providers}


@pytest.mark.requirement("MMR-P5")
@given(configurations(), task_types)
def test_missing_or_unknown_task_type_uses_the_default_route(configuration, task_type):
    """A missing task type counts as matched, an unknown one does not."""
    known = {route.task_type for route in configuration.routes}
    assume(task_type not in known)
    route, matched = resolve_route(configuration, task_type)
    assert route is configuration.route("default")
    assert matched is (not task_type)


@pytest.mark.requirement("MMR-P6")
@given(configurations(), st.data())
def test_known_task_type_uses_its_route_and_the_first_provider_of_the_route(configuration, data):
    """The route's first candidate is called, with the route's own model if it names one."""
    route = data.draw(st.sampled_from(configuration.routes))
    upstream = FakeUpstream(scripts_for_all(configuration, ["hello"]))
    response = router_over(configuration, upstream).send(LLMRequest("hi", task_type=route.task_type))
    provider = configuration.provider(route.primary.provider)
    assert response.task_type == route.task_type
    assert (response.provider, response.model) == (provider.name, route.primary.model or provider.default_model)


@pytest.mark.requirement("MMR-P7")
@given(configurations(), task_types, temperatures, token_limits)
def test_request_parameters_override_candidate_and_route_parameters(configuration, task, temperature, tokens):
    """A request's parameter takes precedence over the candidate's and the route's, even a temperature of 0."""
    plan = make_plan(configuration, RoutingQuery(task, params=Params(temperature, tokens)))
    route, _ = resolve_route(configuration, task)
    for candidate, spec in zip(plan.candidates, route.candidates, strict=True):
        for requested, own, general, effective in (
            (temperature, spec.temperature, route.temperature, candidate.temperature),
            (tokens, spec.max_tokens, route.max_tokens, candidate.max_tokens),
        ):
            assert effective == next((value for value in (requested, own, general) if value is not None), None)


@pytest.mark.requirement("MMR-P8")
@given(configurations(), task_types, st.data())
def test_each_failing_provider_is_retried_before_the_next_provider_is_called(configuration, task, data):
    """Each provider that fails with a 429 or 5xx is called three times, in chain order, before the next one is
    called.
    """
    names = [candidate.provider for candidate in make_plan(configuration, RoutingQuery(task)).candidates]
    answering = data.draw(st.integers(0, len(names) - 1))
    script = {name: [data.draw(passing)] for name in names[:answering]} | {names[answering]: ["hello"]}
    upstream = FakeUpstream(script)
    response = router_over(configuration, upstream).send(LLMRequest("hi", task_type=task))
    assert response.content == "hello"
    assert upstream.called == [name for name in names[:answering] for _ in range(3)] + [names[answering]]
    assert [attempt.retry_attempts for attempt in response.attempts] == [2] * answering + [0]


@pytest.mark.requirement("MMR-P9")
@given(configurations(), task_types, st.data())
def test_error_after_all_candidates_fail_has_one_attempt_for_each_candidate(configuration, task, data):
    script = {provider.name: [data.draw(passing)] for provider in configuration.providers}
    router = router_over(configuration, FakeUpstream(script))
    names = [candidate.provider for candidate in router.resolve(LLMRequest("hi", task_type=task)).candidates]
    with pytest.raises(AggregateRouterError) as caught:
        router.send(LLMRequest("hi", task_type=task))
    assert [attempt.provider for attempt in caught.value.attempts] == names
    assert all(attempt.error for attempt in caught.value.attempts)
    statuses = {attempt.status_code for attempt in caught.value.attempts}
    assert caught.value.status == (429 if statuses == {429} else 504 if statuses == {504} else 502)


@pytest.mark.requirement("MMR-P10")
@given(configurations(), task_types, st.data())
def test_rejected_request_is_raised_immediately_and_no_later_candidate_is_called(configuration, task, data):
    """After a 400, 401 or 403, the router neither retries nor calls a later candidate."""
    names = [candidate.provider for candidate in make_plan(configuration, RoutingQuery(task)).candidates]
    refuser = data.draw(st.integers(0, len(names) - 1))
    script = {name: [503] for name in names[:refuser]} | {name: ["never"] for name in names[refuser + 1 :]}
    script[names[refuser]] = [data.draw(refusing)]
    upstream = FakeUpstream(script)
    with pytest.raises(UpstreamRefused) as caught:
        router_over(configuration, upstream).send(LLMRequest("hi", task_type=task))
    assert upstream.called.count(names[refuser]) == 1
    assert upstream.called[-1] == names[refuser]
    assert len(caught.value.attempts) == refuser + 1


@pytest.mark.requirement("MMR-P11", "MMR-E5")
@given(configurations(), st.none() | languages, st.none() | st.text(min_size=1, max_size=20))
def test_language_directive_precedes_the_system_prompt(configuration, language, system):
    sent = []
    stage = Stage()

    def call(call: Call, chat) -> Answer:
        sent.append(chat)
        return Answer("ok")

    router = LLMRouter(configuration, call, run_context=stage.run_context, sleep=stage.sleep)
    response = router.send(LLMRequest("hi", system, language=language))
    expected = match_language(language) or match_language(configuration.default_language) or "en"
    directive = {"en": "Please respond in English.", "zh": "请使用中文回答。"}[expected]
    assert response.language == expected
    assert sent[0].messages[0].text == (f"{directive}\n{system}" if system else directive)
    assert [message.role for message in sent[0].messages] == ["system", "user"]
    assert sent[0].messages[1].text == "hi"


@pytest.mark.requirement("MMR-E5")
@given(configurations())
def test_router_reports_provider_and_model_of_the_default_route(configuration):
    """The reported model is the route's, or the provider's default model if the route names none."""
    router = router_over(configuration, FakeUpstream({}))
    primary = configuration.route("default").primary
    assert router.get_provider_name() == primary.provider
    assert router.get_default_model() == (primary.model or configuration.provider(primary.provider).default_model)


@pytest.mark.requirement("MMR-E2")
@given(
    st.fixed_dictionaries(
        {},
        optional={
            name: st.sampled_from(["", "x", "sk-abc"])
            for name in ("LLM_PROVIDER", "LLM_API_KEY", "LLM_ENDPOINT", "LLM_MODEL")
        },
    )
)
def test_provider_is_configured_from_the_environment_or_the_error_names_the_variables(env):
    """LLM_API_KEY configures a provider. Without it, the error names the variables to set. A `repr` never shows the
    key.
    """
    if not env.get("LLM_API_KEY"):
        with pytest.raises(MissingConfigurationError, match="LLM_API_KEY"):
            configuration_from_env(env)
        return
    configuration = configuration_from_env(env)
    provider = configuration.providers[0]
    assert provider.name == (env.get("LLM_PROVIDER") or "openai")
    assert provider.default_model == (env.get("LLM_MODEL") or "gpt-4")
    assert provider.endpoint == (env.get("LLM_ENDPOINT") or "https://api.openai.com/v1/chat/completions")
    # The generated values overlap, so another variable may happen to contain the key's text.
    assert "sk-abc" not in repr(configuration) or "sk-abc" in [
        env.get(n) for n in ("LLM_PROVIDER", "LLM_ENDPOINT", "LLM_MODEL")
    ]
    router = LLMRouter.from_env(env, lambda call, chat: Answer("hello"))
    assert router.send(LLMRequest("hi")).content == "hello"


any_failure = st.builds(
    Failure,
    st.sampled_from(Fault),
    st.just("why"),
    st.none() | st.integers(100, 599),
    param=st.none() | st.just("temperature"),
    retry_after=st.none() | st.floats(allow_nan=True, allow_infinity=True),
)


@given(configurations(), task_types, st.data())
def test_attempts_are_a_prefix_of_the_chain_with_a_bounded_number_of_tries(configuration, task, data):
    outcomes = st.lists(any_failure | st.just("hello") | passing, min_size=1, max_size=4)
    upstream = FakeUpstream({provider.name: data.draw(outcomes) for provider in configuration.providers})
    plan = make_plan(configuration, RoutingQuery(task))
    end = Stage().run(plan, upstream)
    names = [candidate.provider for candidate in plan.candidates]
    assert [attempt.provider for attempt in end.attempts] == names[: len(end.attempts)]
    assert all(len(attempt.tries) <= plan.policy.retries + 1 + 2 for attempt in end.attempts)
    assert all(0 <= wait <= 5 for attempt in end.attempts for wait in attempt.waits)
    if isinstance(end, AggregateRouterError) and end.code == "all_providers_failed":
        assert len(end.attempts) == len(names)


@given(configurations(), task_types, st.data())
def test_synchronous_and_asynchronous_drivers_take_the_same_steps(configuration, task, data):
    import asyncio

    from routing_admin.core.fallback.errors import RouterError
    from routing_admin.core.fallback.run import FallbackRun
    from routing_admin.core.fallback.scripts import drive_async

    outcomes = st.lists(any_failure | st.just("hello") | passing, min_size=1, max_size=4)
    script = {provider.name: data.draw(outcomes) for provider in configuration.providers}
    plan = make_plan(configuration, RoutingQuery(task))
    sync_stage, async_stage, upstream, async_upstream = Stage(), Stage(), FakeUpstream(script), FakeUpstream(script)
    end = sync_stage.run(plan, upstream)
    async_upstream.clock = async_stage.clock

    async def call(step: Call):
        return async_upstream(step)

    async def sleep(seconds: float) -> None:
        async_stage.sleep(seconds)

    async def run():
        try:
            return await drive_async(FallbackRun(plan, async_stage.run_context), call, sleep)
        except RouterError as error:
            return error

    async_end = asyncio.run(run())
    assert upstream.calls == async_upstream.calls
    assert sync_stage.waits == async_stage.waits
    assert repr(end.attempts) == repr(async_end.attempts)
    assert type(end) is type(async_end)


def test_scripted_status_becomes_a_failure_and_scripted_text_an_answer():
    assert make_outcome(503).fault is Fault.HTTP_503
    assert make_outcome("hi") == Answer("hi")


@pytest.mark.requirement("MMR-E2")
@pytest.mark.parametrize(
    ("endpoint", "protocol"),
    [
        ("", "openai"),
        ("https://api.anthropic.com/v1/messages", "anthropic"),
        ("https://generativelanguage.googleapis.com/v1beta", "gemini"),
    ],
)
def test_provider_from_the_environment_has_the_protocol_of_its_endpoint(endpoint, protocol):
    configuration = configuration_from_env({"LLM_API_KEY": "sk-1", "LLM_ENDPOINT": endpoint})
    assert configuration.providers[0].protocol == protocol
