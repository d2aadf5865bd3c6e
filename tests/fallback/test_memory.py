"""The gateway remembers which parameters a provider's model has refused, and which parameter names it accepts."""

from __future__ import annotations

from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.chain import Plan, PlannedCandidate
from routing_admin.core.fallback.errors import UpstreamRefused
from routing_admin.core.fallback.memory import (
    MAX_MODELS,
    MAX_PER_MODEL,
    VALUE_SECONDS,
    ParameterRefusal,
    RefusalMemory,
)
from routing_admin.core.fallback.policy import ErrorPreset, Policy
from tests.fallback.scripted_runs import Clock, FakeUpstream, Stage, chain

NEW, OLD = "max_completion_tokens", "max_tokens"


def make_refusal(param: str) -> Failure:
    return Failure(Fault.UNSUPPORTED_PARAMETER, f"no {param}", 400, param=param)


def test_parameter_refusal_is_permanent_and_applies_only_to_its_model() -> None:
    memory = RefusalMemory(clock := Clock())
    memory.refuse("a", "m", "temperature")
    assert memory.refusals("a", "other") == memory.refusals("b", "m") == ()
    clock.sleep(30 * 24 * VALUE_SECONDS)
    assert memory.refusals("a", "m") == (ParameterRefusal("temperature", None),)
    assert memory.lasting("a", "m") == {"temperature": None}


def test_rejected_value_drops_its_parameter_for_an_hour() -> None:
    """A model that refuses a value may accept another one. Another refusal restarts the hour."""
    memory = RefusalMemory(clock := Clock())
    for _ in range(2):
        memory.refuse("a", "m", "reasoning_effort", value_only=True)
        clock.sleep(600)
    assert [refusal.until for refusal in memory.refusals("a", "m")] == [clock() + VALUE_SECONDS - 600]
    assert memory.lasting("a", "m") == {}
    clock.sleep(VALUE_SECONDS)
    assert memory.refusals("a", "m") == ()


def test_refusal_memory_is_bounded_in_models_and_parameters() -> None:
    memory = RefusalMemory(Clock())
    for number in range(MAX_PER_MODEL + 10):
        memory.refuse("a", "m", f"p{number}")
    assert list(memory.lasting("a", "m")) == [f"p{number}" for number in range(10, MAX_PER_MODEL + 10)]
    for number in range(MAX_MODELS):
        memory.refuse("b", f"m{number}", "p")
    assert memory.refusals("a", "m") == ()


def test_stored_refusals_replace_permanent_refusals_in_memory() -> None:
    memory = RefusalMemory(Clock())
    memory.refuse("a", "m", "temperature")
    memory.refuse("a", "m", "reasoning_effort", value_only=True)
    memory.take_over("a", "m", {OLD: NEW})
    assert [(refusal.param, refusal.sent_as) for refusal in memory.refusals("a", "m")] == [
        (OLD, NEW),
        ("reasoning_effort", None),
    ]


def test_token_limit_name_accepted_again_is_no_longer_remembered_as_rejected() -> None:
    """Requests must not alternate between the two names of a limit."""
    memory = RefusalMemory(Clock())
    memory.refuse("a", "m", OLD, NEW)
    memory.refuse("a", "m", NEW, OLD)
    assert [(refusal.param, refusal.sent_as) for refusal in memory.refusals("a", "m")] == [(NEW, OLD)]


def test_forgetting_one_parameter_refusal_keeps_the_others() -> None:
    memory = RefusalMemory(Clock())
    memory.refuse("a", "m", "temperature")
    memory.refuse("a", "m", "top_p")
    memory.forget("a", "m", "temperature")
    assert [refusal.param for refusal in memory.refusals("a", "m")] == ["top_p"]


def test_refusal_memory_copy_on_another_clock_keeps_the_remaining_times() -> None:
    """A simulation starts with a copy of the memory and does not change the original."""
    memory = RefusalMemory(clock := Clock(5000.0))
    memory.refuse("a", "m", "temperature", value_only=True)
    clock.sleep(600)
    memory.refuse("a", "m", "seed")
    copy = memory.copy(lambda: 0.0)
    assert [refusal.until for refusal in copy.refusals("a", "m")] == [VALUE_SECONDS - 600, None]
    copy.refuse("a", "m", "top_p")
    assert [refusal.param for refusal in memory.refusals("a", "m")] == ["temperature", "seed"]


def test_rejected_token_limit_is_renamed_and_never_dropped() -> None:
    """The next call uses the limit name that the model accepted."""
    stage, upstream = Stage(), FakeUpstream({"a": [make_refusal(OLD), "ok", "ok"]})
    for _ in range(2):
        stage.run(Plan(chain("a")), upstream)
    assert [call.limit_name for call in upstream.calls] == [None, NEW, NEW]
    assert {call.without_params for call in upstream.calls} == {frozenset()}


def test_token_limit_name_follows_a_provider_that_changes_the_name() -> None:
    stage, upstream = Stage(), FakeUpstream({"a": [make_refusal(OLD), "ok", make_refusal(NEW), "ok", "ok"]})
    for _ in range(3):
        stage.run(Plan(chain("a")), upstream)
    assert [call.limit_name for call in upstream.calls] == [None, NEW, NEW, OLD, OLD]


def test_token_limit_rejected_under_both_names_is_not_remembered() -> None:
    """If both names of a limit are refused, the next request tries both again."""
    stage, upstream = Stage(), FakeUpstream({"a": [make_refusal(OLD), make_refusal(NEW)]})
    assert isinstance(stage.run(Plan(chain("a")), upstream), UpstreamRefused)
    assert [call.limit_name for call in upstream.calls] == [None, NEW]
    assert stage.run_context.memory.refusals("a", "m") == ()


def test_rejected_token_limit_is_not_retried_with_one_name_or_on_a_strict_route() -> None:
    stage = Stage()
    for candidate, preset in (
        (PlannedCandidate(0, "a", "m", protocol="gemini"), ErrorPreset.SEED),
        (chain("a")[0], ErrorPreset.STRICT),
    ):
        upstream = FakeUpstream({"a": [make_refusal(OLD)]})
        assert isinstance(stage.run(Plan((candidate,), policy=Policy(preset)), upstream), UpstreamRefused)
        assert upstream.called == ["a"]
    assert stage.run_context.memory.refusals("a", "m") == ()
