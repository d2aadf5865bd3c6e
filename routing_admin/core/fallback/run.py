"""The fallback loop: a generator that yields `Call` and `Wait`, and receives an answer or a `Failure`.

The asynchronous driver, the synchronous driver and the tests all run this code. It performs no I/O: it uses only a
clock, randomness and the cooldowns. For a stream, the answer is the stream with its first content. From then on no
further candidate is called, whatever happens to the stream.
"""

from __future__ import annotations

import logging
from collections.abc import Generator
from dataclasses import replace
from typing import Any, Generic, TypeVar

from capabilities.core.providers.quirks import LIMIT_NAMES
from capabilities.core.translatable import translatable
from capabilities.core.wire import Failure, Fault
from routing_admin.core.fallback.candidate_run import CandidateRun, cooling_attempt
from routing_admin.core.fallback.chain import (
    ABORTED,
    CANCELLED,
    OK,
    Attempt,
    Call,
    Plan,
    PlannedCandidate,
    PoolKey,
    Reply,
    RunResult,
    SkipReason,
    Step,
    Timeouts,
    Try,
    Wait,
    cut_short,
    skip_attempt,
)
from routing_admin.core.fallback.context import RunContext
from routing_admin.core.fallback.errors import AggregateRouterError, UpstreamRefused, exhaustion_error
from routing_admin.core.fallback.policy import ErrorPreset, pause, refine_wait
from routing_admin.core.fallback.table import TABLE, Action, is_key_fault

logger = logging.getLogger("routing_admin.routing")

T = TypeVar("T")

CLOCK_SLACK = 0.02
"""Tolerance in seconds, because a timer may fire slightly before the clock reaches its time."""


class FallbackRun(Generic[T]):
    """A request's run along its chain; each completed attempt is appended to `attempts`, which can be read at any time.

    With `stream`, the first content does not count as a success yet: `end_stream` later reports how the stream ended.
    """

    def __init__(self, plan: Plan, run_context: RunContext, *, stream: bool = False) -> None:
        self.plan = plan
        self._stream = stream
        self.attempts: list[Attempt] = []
        self._context = run_context
        self._began = run_context.clock()

    def elapsed_ms(self) -> float:
        return self._ms(self._context.clock())

    def steps(self) -> Generator[Step, Any, RunResult[T]]:
        """Yield `Call` and `Wait` steps.

        The driver must send a `T`, a `Failure`, or a `Reply` that contains one of them, in response to a `Call`; what
        it sends in response to a `Wait` is ignored. Return a `RunResult`. Raise `UpstreamRefused` for a failure that
        ends the run immediately, or `AggregateRouterError` if no candidate or no time is left.
        """
        last_resort = self._find_last_resort()
        seen: set[tuple[str, str]] = set()
        for candidate in self.plan.candidates:
            attempt = self._skip_or_claim(candidate, seen, last_resort)
            if attempt is not None:
                self._record_and_continue(attempt)
                continue
            if self.attempts and self._time_left() <= 0:
                raise AggregateRouterError(self.attempts, Fault.DEADLINE.value)
            # The last resort is a candidate that is called although it is cooling down. It is not retried.
            retries = 0 if candidate == last_resort else self.plan.policy.retries
            result = yield from self._ask(candidate, retries)
            if result is not None:
                return result
        raise exhaustion_error(self.attempts, refuses_drops=self.plan.refuses_drops)

    def _skip_or_claim(
        self, candidate: PlannedCandidate, seen: set[tuple[str, str]], last_resort: PlannedCandidate | None
    ) -> Attempt | None:
        now = self._ms(self._context.clock())
        model_key = (candidate.provider, candidate.model)
        if candidate.skip is not None:
            return skip_attempt(candidate, candidate.skip, now)
        if model_key in seen:
            return skip_attempt(candidate, SkipReason.DUPLICATE, now)
        seen.add(model_key)
        if candidate == last_resort:
            return None
        cooling = self._context.cooldowns.enter(*model_key)
        return None if cooling is None else cooling_attempt(candidate, cooling, now)

    def _find_last_resort(self) -> PlannedCandidate | None:
        # If every callable candidate is cooling down, the first one to recover is called once as a last resort. A
        # candidate with an exhausted quota is not called, because the call would fail again.
        cooling_down: list[tuple[float, PlannedCandidate]] = []
        for candidate in self.plan.candidates:
            if candidate.skip is not None:
                continue
            cooling = self._context.cooldowns.look(candidate.provider, candidate.model)
            if cooling is None:
                return None
            if not TABLE[cooling.failure.fault].is_out_of_quota and not cooling.probing:
                cooling_down.append((cooling.seconds, candidate))
        return min(cooling_down, key=lambda pair: pair[0])[1] if cooling_down else None

    def _ask(self, candidate: PlannedCandidate, retries: int) -> Generator[Step, Any, RunResult[T] | None]:
        run_context, model_key = self._context, (candidate.provider, candidate.model)
        current = CandidateRun.from_memory(run_context.memory, candidate, run_context.clock(), retries)
        if self.plan.refuses_drops or self.plan.verbatim:
            # No parameter of this request may be omitted, so parameters are sent even if the model is known to refuse
            # them.
            current.without_params = frozenset()
        try:
            call, outcome = yield from self._tries(current)
        except BaseException as error:
            run_context.cooldowns.release_probe(*model_key)
            run_context.pools.release(candidate.provider, current.key)
            self.attempts.append(self._attempt(current, CANCELLED if isinstance(error, GeneratorExit) else ABORTED))
            raise
        if isinstance(outcome, Failure):
            self._record_failure(current, outcome)
            return None
        # Whether a stream succeeds is known only at its end, so `end_stream` reports it.
        if self._stream:
            run_context.cooldowns.release_probe(*model_key)
        else:
            run_context.cooldowns.record_success(*model_key)
        run_context.budget.refund(candidate.provider, current.retried)
        self.attempts.append(self._attempt(current, OK))
        return RunResult(outcome, call, tuple(self.attempts))

    def _tries(self, current: CandidateRun) -> Generator[Step, Any, tuple[Call, T | Failure]]:
        while True:
            call = self._call(current)
            if call.timeouts.total <= 0:
                return call, Failure(Fault.DEADLINE, translatable("The request ran out of time."))
            began = self._context.clock()
            outcome = self._record_try(current, began, (yield call))
            if not isinstance(outcome, Failure):
                if current.key is not None:
                    self._context.pools.record(current.candidate.provider, current.key, None)
                return call, outcome
            failure = self._refine(self._own_time(outcome))
            if current.key is not None:
                # If the key was refused, another key is tried within the same attempt, so the candidate does not fail.
                of_all_keys = self._next_key(current, current.key, failure)
                if of_all_keys is None:
                    continue
                failure = of_all_keys
            if self._may_adjust(failure) and current.adjust(failure, self._context.memory):
                continue
            waiting = self._pause(current, failure)
            if waiting is None:
                return call, failure
            current.retried += 1
            if waiting > 0:
                current.waits.append(waiting)
                yield Wait(waiting, failure.fault.value)

    def _refine(self, failure: Failure) -> Failure:
        return refine_wait(failure, self.plan.policy.preset, self._time_left())

    def _next_key(self, current: CandidateRun, key: PoolKey, failure: Failure) -> Failure | None:
        """Choose the provider's next key and return None, or return the failure to report if no key is left."""
        pools, candidate = self._context.pools, current.candidate
        pools.record(candidate.provider, key, failure)
        if not is_key_fault(failure.fault):
            return failure
        current.refused_keys |= {key.mark}
        current.key = pools.choose(candidate.provider, candidate.keys, self.plan.affinity, current.refused_keys)
        if current.key is not None:
            logger.info("provider %s: key %s: %s; its next key is asked", candidate.provider, key.name, failure.fault)
            return None
        current.refused_keys = frozenset()
        return self._refine(pools.last_word(candidate.provider, candidate.keys, failure))

    def _may_adjust(self, failure: Failure) -> bool:
        if self.plan.verbatim:
            return False
        # Every adjusted parameter counts as dropped, except the token limit, which is only renamed.
        drops_param = failure.fault is Fault.UNSUPPORTED_PARAMETER and failure.param not in LIMIT_NAMES
        return self.plan.policy.preset is not ErrorPreset.STRICT and not (drops_param and self.plan.refuses_drops)

    def _call(self, current: CandidateRun) -> Call:
        if current.candidate.keys and current.key is None:
            current.key = self._context.pools.choose(
                current.candidate.provider, current.candidate.keys, self.plan.affinity, frozenset()
            )
        own = current.candidate.timeouts or self.plan.timeouts
        total = min(own.total, self._time_left())
        return current.call(Timeouts(min(own.connect, total), min(own.first_content, total), own.between, total))

    def _record_try(self, current: CandidateRun, began: float, reply_or_outcome: Any) -> T | Failure:
        reply: Reply[T] = reply_or_outcome if isinstance(reply_or_outcome, Reply) else Reply(reply_or_outcome)
        outcome = reply.outcome
        current.adaptation, current.dropped = reply.adaptation, reply.dropped_params
        duration_ms = (self._context.clock() - began) * 1000
        name = current.key.name if current.key is not None else ""
        if isinstance(outcome, Failure):
            record = Try(self._ms(began), duration_ms, outcome.fault.value, outcome.status, name, outcome.usage)
        else:
            record = Try(self._ms(began), duration_ms, OK, None, name)
        current.tries.append(record)
        return outcome

    def _own_time(self, failure: Failure) -> Failure:
        # The candidate exceeded its own total timeout, which is shorter than that of the request, so there is still
        # time for other candidates.
        if failure.fault is Fault.DEADLINE and self._time_left() > CLOCK_SLACK:
            return replace(failure, fault=Fault.READ_TIMEOUT)
        return failure

    def _pause(self, current: CandidateRun, failure: Failure) -> float | None:
        policy = self.plan.policy
        if policy.verdict(failure).action is not Action.RETRY or current.retried >= current.retries:
            return None
        waiting = pause(failure, current.retried + 1, policy.preset, self._time_left(), self._context.random)
        if waiting is None or self._context.budget.take(current.candidate.provider):
            return waiting
        logger.info(
            "provider %s: its retry budget is exhausted; calling the next candidate", current.candidate.provider
        )
        return None

    def _record_failure(self, current: CandidateRun, failure: Failure) -> None:
        candidate, verdict = current.candidate, self.plan.policy.verdict(failure)
        self._context.cooldowns.record_failure(candidate.provider, candidate.model, failure, verdict)
        attempt = self._attempt(current, failure.fault.value, failure, alert=verdict.alert)
        if failure.fault is Fault.DEADLINE:
            self.attempts.append(attempt)
            raise AggregateRouterError(self.attempts, Fault.DEADLINE.value)
        # If the candidate refuses a parameter that may not be dropped, call the next candidate.
        refused = self.plan.refuses_drops and failure.fault is Fault.UNSUPPORTED_PARAMETER
        if verdict.action is Action.RAISE and not refused:
            self.attempts.append(attempt)
            raise UpstreamRefused(failure, self.attempts)
        self._record_and_continue(attempt)

    def _record_and_continue(self, attempt: Attempt) -> None:
        self.attempts.append(attempt)
        following = self.plan.candidates[len(self.attempts) :]
        logger.log(
            # Log the switch to the next candidate (MMR-E4). Skipped candidates are logged only at DEBUG level, because
            # during an outage every request would repeat the message.
            logging.WARNING if attempt.tries else logging.DEBUG,
            "route %s: %s/%s %s after %d tries; %s",
            *(self.plan.task_type, attempt.provider, attempt.model, attempt.outcome, len(attempt.tries)),
            f"going on to {following[0].name}" if following else "no candidate is left",
        )

    def _attempt(
        self, current: CandidateRun, outcome: str, failure: Failure | None = None, alert: bool = False
    ) -> Attempt:
        began = current.tries[0].started_ms if current.tries else self._ms(current.began)
        message = (failure.message or failure.fault.value) if failure is not None else None
        return Attempt(
            current.candidate.provider,
            current.candidate.model,
            outcome,
            status_code=failure.status if failure is not None else None,
            error=message,
            retry_attempts=max(0, len(current.tries) - 1),
            duration_ms=self._ms(self._context.clock()) - began,
            started_ms=began,
            waits=tuple(current.waits),
            tries=tuple(current.tries),
            adaptation=current.adaptation,
            dropped_params=tuple(dict.fromkeys((*current.dropped, *current.stripped))),
            cause=failure.fault if failure is not None else None,
            retry_after=failure.retry_after if failure is not None else None,
            alert=alert,
            param=failure.param if failure is not None else None,
        )

    def _time_left(self) -> float:
        return self._began + self.plan.timeouts.total - self._context.clock()

    def _ms(self, moment: float) -> float:
        return (moment - self._began) * 1000


def end_stream(
    result: RunResult[T], failure: Failure | None, duration_ms: float, plan: Plan, run_context: RunContext
) -> tuple[Attempt, ...]:
    """Return the attempts of a request whose stream has ended, and report the stream's result to the cooldowns.

    `failure` is None if the stream ended normally or the caller disconnected. `duration_ms` is the duration of the
    attempt that answered, up to the end of the stream.
    """
    *before, last = result.attempts
    model_key = (result.candidate.provider, result.candidate.model)
    if failure is None:
        run_context.cooldowns.record_success(*model_key)
    else:
        run_context.cooldowns.record_failure(*model_key, failure, plan.policy.verdict(failure))
    return (*before, cut_short(last, failure, duration_ms))
