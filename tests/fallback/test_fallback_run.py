"""The fallback run, which calls one candidate after another."""

from __future__ import annotations

import asyncio

import pytest

from capabilities.core.message import UnreadableError
from capabilities.core.wire import Answer, Failure, Fault
from routing_admin.core.fallback.chain import Plan, PlannedCandidate, RunResult, SkipReason, Timeouts
from routing_admin.core.fallback.errors import AggregateRouterError, RouterError, UpstreamRefused, retry_headers
from routing_admin.core.fallback.policy import ErrorPreset, Policy
from routing_admin.core.fallback.run import FallbackRun, end_stream
from routing_admin.core.fallback.scripts import drive, drive_async
from routing_admin.core.fallback.table import Action
from tests.fallback.scripted_runs import FakeUpstream, Stage, chain


def outcomes(end: RunResult | RouterError) -> list[str]:
    return [attempt.outcome for attempt in end.attempts]


@pytest.mark.requirement("MMR-P8")
def test_rate_limited_provider_is_retried_before_the_next_one_answers():
    """All calls to a candidate form one attempt."""
    upstream = FakeUpstream({"deepseek": [429], "gemini": ["hello"]})
    end = Stage().run(Plan(chain("deepseek", "gemini")), upstream)
    assert isinstance(end, RunResult)
    assert end.answer.text == "hello"
    assert upstream.called == ["deepseek"] * 3 + ["gemini"]
    assert outcomes(end) == ["http_429", "ok"]
    assert [attempt.retry_attempts for attempt in end.attempts] == [2, 0]


def test_answer_on_a_retry_is_attributed_to_the_retried_candidate():
    end = Stage().run(Plan(chain("a", "b")), FakeUpstream({"a": [503, "late"], "b": ["no"]}))
    assert isinstance(end, RunResult)
    assert (end.candidate.provider, end.attempts[0].retry_attempts) == ("a", 1)


def test_backoff_grows_with_each_retry_and_is_omitted_after_the_last_try():
    """The backoff before retry n is random · min(2, 0.2·2ⁿ) seconds."""
    stage = Stage(random=0.5)
    stage.run(Plan(chain("a", "b"), policy=Policy(retries=4)), FakeUpstream({"a": [500], "b": ["ok"]}))
    assert stage.waits == [0.2, 0.4, 0.8, 1.0]


@pytest.mark.parametrize("fault", [Fault.READ_TIMEOUT, Fault.BAD_SHAPE, Fault.HTTP_501, Fault.HTTP_529, Fault.REDIRECT])
def test_fault_without_retries_falls_back_immediately(fault):
    stage, upstream = Stage(), FakeUpstream({"a": [Failure(fault)], "b": ["ok"]})
    stage.run(Plan(chain("a", "b")), upstream)
    assert upstream.called == ["a", "b"]
    assert stage.waits == []


def test_short_retry_after_sets_the_exact_wait_before_the_retry():
    """A Retry-After of at most five seconds replaces the random backoff."""
    stage = Stage()
    stage.run(Plan(chain("a")), FakeUpstream({"a": [Failure(Fault.HTTP_429, "", 429, retry_after=3), "ok"]}))
    assert stage.waits == [3]


def test_long_retry_after_falls_back_and_sets_the_exact_cooldown():
    stage = Stage()
    upstream = FakeUpstream(
        {"a": [Failure(Fault.HTTP_429, "slow down", 429, retry_after=60), "back"], "b": ["ok"]}, seconds=0
    )
    plan = Plan(chain("a", "b"))
    assert outcomes(stage.run(plan, upstream)) == ["http_429_wait", "ok"]
    assert stage.waits == []
    stage.clock.now += 59.9
    assert outcomes(stage.run(plan, upstream)) == ["skipped_cooling", "ok"]
    stage.clock.now += 0.1
    assert outcomes(stage.run(plan, upstream)) == ["ok"]


@pytest.mark.parametrize("nonsense", [-1.0, 0.0, float("nan"), float("inf")])
def test_invalid_retry_after_is_ignored(nonsense):
    """A negative, zero, NaN or infinite Retry-After is invalid."""
    stage = Stage()
    failed = Failure(Fault.HTTP_429, "", 429, retry_after=nonsense)
    assert outcomes(stage.run(Plan(chain("a")), FakeUpstream({"a": [failed, failed, "ok"]}))) == ["ok"]
    assert stage.waits == [0.2, 0.4]


@pytest.mark.requirement("MMR-P10")
@pytest.mark.parametrize(
    ("status", "caller", "code"),
    [(400, 400, "upstream_400"), (401, 502, "upstream_auth"), (403, 502, "upstream_forbidden")],
)
def test_rejected_request_is_raised_immediately_with_previous_attempts(status, caller, code):
    upstream = FakeUpstream({"a": [503], "b": [status], "c": ["never"]})
    end = Stage().run(Plan(chain("a", "b", "c")), upstream)
    assert isinstance(end, UpstreamRefused)
    assert (end.status, end.code) == (caller, code)
    assert "c" not in upstream.called
    assert [attempt.status_code for attempt in end.attempts] == [503, status]


def test_route_can_fall_back_after_a_rejected_request():
    for policy in (Policy(on_error={"404": Action.NEXT}), Policy(fallback_on=("4xx",)), Policy(ErrorPreset.RESILIENT)):
        end = Stage().run(Plan(chain("a", "b"), policy=policy), FakeUpstream({"a": [404], "b": ["ok"]}))
        assert outcomes(end) == ["http_404", "ok"]
        assert end.attempts[0].alert


@pytest.mark.parametrize(
    ("script", "status"),
    [
        ({"a": [429], "b": [429]}, 429),
        ({"a": [Failure(Fault.READ_TIMEOUT)], "b": [Failure(Fault.CONNECT_TIMEOUT)]}, 504),
        ({"a": [429], "b": [503]}, 502),
        ({"a": [500], "b": [Failure(Fault.DNS_ERROR)]}, 502),
    ],
)
@pytest.mark.requirement("MMR-P9")
def test_exhausted_chain_is_reported_as_429_504_or_502(script, status):
    """The status is 429 if all candidates were rate limited, 504 if all timed out, and otherwise 502."""
    end = Stage().run(Plan(chain("a", "b")), FakeUpstream(script))
    assert isinstance(end, AggregateRouterError)
    assert (end.status, end.code, end.should_retry) == (status, "all_providers_failed", False)
    assert [attempt.provider for attempt in end.attempts] == ["a", "b"]
    assert all(attempt.error for attempt in end.attempts)


def test_exhausted_chain_reports_the_shortest_retry_after():
    named = {name: [Failure(Fault.HTTP_429, "", 429, retry_after=wait)] for name, wait in (("a", 90), ("b", 30))}
    end = Stage().run(Plan(chain("a", "b")), FakeUpstream(named))
    assert isinstance(end, AggregateRouterError)
    assert end.retry_after == 30


def test_uncallable_candidates_are_recorded_as_attempts_with_a_message():
    reasons = [
        SkipReason.MISSING,
        SkipReason.DISABLED,
        SkipReason.NO_KEY,
        SkipReason.CANNOT_READ,
        SkipReason.ORIGIN_REFUSED,
    ]
    skips = [PlannedCandidate(at, f"p{at}", "m", skip=reason) for at, reason in enumerate(reasons)]
    end = Stage().run(Plan((*skips, PlannedCandidate(9, "z", "m"))), FakeUpstream({"z": ["ok"]}))
    assert outcomes(end) == [*reasons, "ok"]
    assert all(attempt.error for attempt in end.attempts[:-1])


def test_repeated_candidate_is_skipped_as_duplicate():
    """The repetition is logged as a skipped attempt."""
    end = Stage().run(Plan(chain("a", "b", "a")), FakeUpstream({"a": [500], "b": [500]}))
    assert outcomes(end) == ["http_500", "http_500", "skipped_duplicate"]


def test_unsupported_parameter_is_dropped_for_a_retry_and_in_later_requests():
    """The candidate is called once more, without the parameter."""
    stage = Stage()
    refused = Failure(Fault.UNSUPPORTED_PARAMETER, "no temperature", 400, param="temperature")
    upstream = FakeUpstream({"a": [refused, "ok"]})
    assert outcomes(stage.run(Plan(chain("a")), upstream)) == ["ok"]
    stage.run(Plan(chain("a")), upstream)
    assert [call.without_params for call in upstream.calls] == [frozenset(), {"temperature"}, {"temperature"}]
    again = Stage().run(Plan(chain("a", "b")), FakeUpstream({"a": [refused], "b": ["no"]}))
    assert isinstance(again, UpstreamRefused)
    assert again.attempts[0].retry_attempts == 1


def test_parameters_rejected_one_after_another_are_dropped_in_one_attempt():
    refusals = [
        Failure(Fault.UNSUPPORTED_PARAMETER, "no", 400, param="temperature", further_params=("top_p",)),
        Failure(Fault.UNSUPPORTED_PARAMETER, "no", 400, param="seed"),
    ]
    stage, upstream = Stage(), FakeUpstream({"a": [*refusals, "ok"]})
    assert outcomes(stage.run(Plan(chain("a")), upstream)) == ["ok"]
    stage.run(Plan(chain("a")), upstream)
    refused = [set(), {"temperature", "top_p"}, {"temperature", "top_p", "seed"}, {"temperature", "top_p", "seed"}]
    assert [call.without_params for call in upstream.calls] == refused


def test_candidate_that_rejects_ever_new_parameters_is_retried_at_most_twelve_times():
    names = iter(range(100))
    upstream = FakeUpstream({"a": [Failure(Fault.UNSUPPORTED_PARAMETER, "", 400, param=f"p{n}") for n in names]})
    assert isinstance(Stage().run(Plan(chain("a")), upstream), UpstreamRefused)
    # The thirteen calls are the first call and a dozen adjusted ones.
    assert len(upstream.called) == 13


def test_capability_mismatch_is_retried_with_a_description_before_fallback():
    refused = Failure(Fault.CAPABILITY_MISMATCH, "no images", 404, param="vision")
    upstream = FakeUpstream({"a": [refused], "b": ["ok"]})
    end = Stage().run(Plan(chain("a", "b")), upstream)
    assert outcomes(end) == ["capability_mismatch", "ok"]
    assert [call.without_capabilities for call in upstream.calls] == [frozenset(), {"vision"}, frozenset()]


def test_provider_is_not_called_when_no_time_is_left():
    upstream = FakeUpstream({"a": ["ok"]})
    end = Stage().run(Plan(chain("a"), timeouts=Timeouts(total=0)), upstream)
    assert isinstance(end, AggregateRouterError)
    assert (end.code, upstream.calls) == ("deadline_exceeded", [])


def test_deadline_ends_the_run_with_504():
    """Only the candidates that were reached have attempts."""
    upstream = FakeUpstream({"a": [500], "b": ["late"]}, seconds=6)
    end = Stage().run(Plan(chain("a", "b"), timeouts=Timeouts(total=10)), upstream)
    assert isinstance(end, AggregateRouterError)
    assert (end.status, end.code) == (504, "deadline_exceeded")
    # Each call takes six of the ten seconds, so the second call reaches the deadline.
    assert upstream.called == ["a", "a"]


def test_each_call_gets_the_remaining_time_as_its_timeout():
    upstream = FakeUpstream({"a": [Failure(Fault.BAD_SHAPE)], "b": ["ok"]}, seconds=100)
    Stage().run(Plan(chain("a", "b"), timeouts=Timeouts(total=110)), upstream)
    assert [call.timeouts.total for call in upstream.calls] == [110, 10]
    assert upstream.calls[1].timeouts.first_content == 10


def test_run_with_all_candidates_rate_limited_returns_429_without_calling_a_provider():
    stage, plan = Stage(), Plan(chain("a", "b"))
    limited = {name: [Failure(Fault.HTTP_429, "", 429, retry_after=wait)] for name, wait in (("a", 90), ("b", 40))}
    stage.run(plan, FakeUpstream(limited, seconds=0))
    upstream = FakeUpstream(limited)
    end = stage.run(plan, upstream)
    assert isinstance(end, AggregateRouterError)
    assert (end.status, end.retry_after, upstream.called) == (429, 40, [])
    assert outcomes(end) == ["skipped_cooling", "skipped_cooling"]


def test_run_with_all_candidates_in_outage_cooldown_calls_the_first_to_recover():
    stage, plan = Stage(), Plan(chain("a", "b"))
    down = {"a": [Failure(Fault.CONNECT_REFUSED)], "b": [Failure(Fault.DNS_ERROR)]}
    stage.run(plan, FakeUpstream(down))
    upstream = FakeUpstream({"a": ["back"], "b": ["back"]})
    end = stage.run(plan, upstream)
    assert isinstance(end, RunResult)
    assert upstream.called == ["a"]


def test_last_resort_candidate_is_tried_only_once():
    """A last resort is not retried, so that requests do not overload a provider during an outage."""
    stage, plan = Stage(), Plan(chain("a", "b"))
    down = {name: [Failure(Fault.CONNECT_REFUSED)] for name in ("a", "b")}
    stage.run(plan, FakeUpstream(down))
    upstream = FakeUpstream(down)
    end = stage.run(plan, upstream)
    assert (upstream.called, outcomes(end)) == (["a"], ["connect_refused", "skipped_cooling"])


def test_retry_budget_of_a_failing_provider_is_exhausted_after_many_failures():
    """Each provider has its own retry budget, and answers refill it."""
    stage = Stage()
    plan = Plan(chain("a", "b"))
    stage.run_context.budget.refund("b", 0)
    for _ in range(50):
        upstream = FakeUpstream({"a": [500], "b": ["ok"]})
        stage.run(plan, upstream)
        assert upstream.called == ["a", "a", "a", "b"]
        # Repeated failures would start a cooldown, and the candidate would be skipped.
        stage.run_context.cooldowns.record_success("a", "m")
    upstream = FakeUpstream({"a": [500], "b": [500]})
    end = stage.run(plan, upstream)
    assert (upstream.called, end.attempts[0].retry_attempts) == (["a", "b", "b", "b"], 0)
    for _ in range(5):
        stage.run_context.cooldowns.record_success("a", "m")
        stage.run(plan, FakeUpstream({"a": ["back"]}))
    upstream = FakeUpstream({"a": [500], "b": ["ok"]})
    stage.run(plan, upstream)
    assert upstream.called == ["a", "a", "b"]


def test_answer_refunds_the_retry_budget():
    stage = Stage()
    for _ in range(120):
        assert isinstance(stage.run(Plan(chain("a")), FakeUpstream({"a": [500, "ok"]})), RunResult)


def test_dropped_parameter_is_listed_in_the_attempt():
    refusal = Failure(Fault.UNSUPPORTED_PARAMETER, "no", 400, param="temperature")
    end = Stage().run(Plan(chain("a")), FakeUpstream({"a": [refusal, "ok"]}))
    assert end.attempts[0].dropped_params == ("temperature",)


def test_strict_preset_raises_a_400_regardless_of_its_fault():
    """`strict` decides by status alone, even if a retry without a parameter or another candidate might succeed."""
    for fault in (Fault.HTTP_429_QUOTA, Fault.CAPABILITY_MISMATCH, Fault.UNSUPPORTED_PARAMETER, Fault.CONTEXT_LENGTH):
        upstream = FakeUpstream({"a": [Failure(fault, "", 400, param="vision")], "b": ["ok"]})
        end = Stage().run(Plan(chain("a", "b"), policy=Policy(ErrorPreset.STRICT)), upstream)
        assert isinstance(end, UpstreamRefused)
        assert upstream.called == ["a"]


def test_rejected_request_has_no_retry_after_from_another_candidate():
    """Waiting would not help a caller whose request was refused."""
    limited = Failure(Fault.HTTP_429_WAIT, "later", 429, retry_after=30)
    end = Stage().run(Plan(chain("a", "b")), FakeUpstream({"a": [limited], "b": [400]}))
    assert isinstance(end, UpstreamRefused)
    assert "Retry-After" not in retry_headers(end)


def test_strict_preset_retries_every_429_and_5xx_before_fallback():
    for fault, status in ((Fault.HTTP_501, 501), (Fault.HTTP_529, 529), (Fault.HTTP_429_QUOTA, 429)):
        upstream = FakeUpstream({"a": [Failure(fault, "", status)], "b": ["ok"]})
        Stage().run(Plan(chain("a", "b"), policy=Policy(ErrorPreset.STRICT)), upstream)
        assert upstream.called == ["a", "a", "a", "b"]


@pytest.mark.requirement("MMR-E4")
def test_each_switch_of_provider_is_logged(caplog):
    with caplog.at_level("WARNING", logger="routing_admin.routing"):
        Stage().run(
            Plan(chain("a", "b", "c"), task_type="planning"), FakeUpstream({"a": [500], "b": [429], "c": ["ok"]})
        )
    assert [record.getMessage() for record in caplog.records] == [
        "route planning: a/m http_500 after 3 tries; going on to b/m",
        "route planning: b/m http_429 after 3 tries; going on to c/m",
    ]


def test_skipped_candidate_is_logged_below_warning(caplog):
    """During an outage, every request would log another warning about skipped candidates."""
    stage, plan = Stage(), Plan(chain("a", "b"))
    slow_down = Failure(Fault.HTTP_429, "slow down", 429, retry_after=60)
    stage.run(plan, FakeUpstream({"a": [slow_down], "b": ["ok"]}, seconds=0))
    caplog.clear()
    with caplog.at_level("INFO", logger="routing_admin.routing"):
        assert outcomes(stage.run(plan, FakeUpstream({"b": ["ok"]}, seconds=0))) == ["skipped_cooling", "ok"]
    assert caplog.records == []


def test_closed_run_records_the_attempt_in_progress_as_cancelled():
    """A run is closed if the caller disconnects."""
    stage = Stage()
    run: FallbackRun[object] = FallbackRun(Plan(chain("a")), stage.run_context)
    steps = run.steps()
    next(steps)
    steps.close()
    assert [attempt.outcome for attempt in run.attempts] == ["client_cancelled"]


def test_attempt_json_has_the_field_names_of_the_api():
    """Fields without a value are omitted from an attempt's JSON."""
    end = Stage().run(Plan(chain("a", "b")), FakeUpstream({"a": [Failure(Fault.HTTP_529, "busy", 529)], "b": ["ok"]}))
    assert [attempt.as_json() for attempt in end.attempts] == [
        {
            "provider": "a",
            "model": "m",
            "statusCode": 529,
            "error": "busy",
            "retryAttempts": 0,
            "outcome": "http_529",
            "durationMs": 10,
        },
        {"provider": "b", "model": "m", "retryAttempts": 0, "outcome": "ok", "durationMs": 10},
    ]


def test_broken_stream_is_recorded_and_counts_as_a_failure_of_the_candidate():
    stage, plan = Stage(), Plan(chain("a"))
    for _ in range(3):
        done = stage.run(plan, FakeUpstream({"a": ["once"]}), stream=True)
        assert isinstance(done, RunResult)
        broken = end_stream(done, Failure(Fault.STREAM_STALL, "silence"), 250, plan, stage.run_context)
        assert (broken[-1].outcome, broken[-1].error, broken[-1].duration_ms) == ("stream_stall", "silence", 250)
    assert stage.run_context.cooldowns.look("a", "m") is not None
    assert end_stream(done, None, 99, plan, stage.run_context)[-1].outcome == "ok"
    assert stage.run_context.cooldowns.look("a", "m") is None


def test_router_error_has_attempts_and_retry_headers():
    """The headers disable the client's own retries, and contain Retry-After in whole seconds."""
    end = Stage().run(Plan(chain("a")), FakeUpstream({"a": [Failure(Fault.HTTP_429, "slow", 429, retry_after=29.2)]}))
    assert isinstance(end, AggregateRouterError)
    assert retry_headers(end) == {"x-should-retry": "false", "Retry-After": "30"}
    written = end.as_json()
    assert written["error"] == "all_providers_failed"
    assert "slow" in written["message"]
    assert [attempt["statusCode"] for attempt in written["attempts"]] == [429]
    refused = Stage().run(Plan(chain("a")), FakeUpstream({"a": [401]}))
    assert isinstance(refused, UpstreamRefused)
    assert retry_headers(refused) == {"x-should-retry": "false"}
    assert refused.as_json()["error"] == "upstream_auth"


def test_candidate_that_exceeds_its_own_timeout_falls_back():
    """The candidate's fault is the read timeout, and the next candidate is called."""
    short = PlannedCandidate(0, "a", "m", timeouts=Timeouts(total=10))
    upstream = FakeUpstream({"a": [Failure(Fault.DEADLINE)], "b": ["ok"]}, seconds=10)
    end = Stage().run(Plan((short, PlannedCandidate(1, "b", "m")), timeouts=Timeouts(total=60)), upstream)
    assert outcomes(end) == ["read_timeout", "ok"]
    assert [call.timeouts.total for call in upstream.calls] == [10, 50]


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_gateway_exception_is_raised_and_recorded_as_aborted(mode):
    """An exception in the gateway is not the provider's fault."""
    run: FallbackRun[Answer] = FallbackRun(Plan(chain("a", "b")), Stage().run_context)

    def call(step):
        raise UnreadableError("artifact_missing")

    async def ask(step):
        return call(step)

    with pytest.raises(UnreadableError):
        drive(run, call, print) if mode == "sync" else asyncio.run(drive_async(run, ask, asyncio.sleep))
    assert [attempt.outcome for attempt in run.attempts] == ["aborted"]
