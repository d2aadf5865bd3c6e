"""`LLMRouter`: the original program's interface to routing (seed 003), with the gateway's planning and fallback."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.wire import Answer, Failure
from routing_admin.core.configuration.specs import (
    DEFAULT_ROUTE,
    Configuration,
)
from routing_admin.core.fallback.chain import Attempt, Call, Plan, RunResult
from routing_admin.core.fallback.context import RunContext, process_context
from routing_admin.core.fallback.run import FallbackRun
from routing_admin.core.fallback.scripts import Outcome, drive
from routing_admin.core.files.keys import configuration_from_env
from routing_admin.core.planning.language import inject_directive
from routing_admin.core.planning.params import Params, apply_params
from routing_admin.core.planning.plan import RoutingQuery, Unusable, make_plan, resolve_route


@dataclass(frozen=True, slots=True)
class LLMRequest:
    """A request; only `prompt` is required."""

    prompt: str
    system_prompt: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None
    task_type: str | None = None
    language: str | None = None

    @property
    def query(self) -> RoutingQuery:
        return RoutingQuery(self.task_type, self.language, Params(self.temperature, self.max_tokens))


@dataclass(frozen=True, slots=True, kw_only=True)
class LLMResponse:
    content: str
    provider: str
    model: str
    task_type: str
    language: str
    answer: Answer
    attempts: tuple[Attempt, ...]


Caller = Callable[[Call, ChatRequest], Outcome[Answer]]
"""Function that sends a request, already adapted for a candidate, to that candidate."""


@dataclass(slots=True)
class LLMRouter:
    """Routes requests; `unusable` maps each provider that cannot be called to the reason."""

    configuration: Configuration
    call: Caller
    unusable: Mapping[str, Unusable] = field(default_factory=dict)
    run_context: RunContext = field(default_factory=process_context)
    sleep: Callable[[float], object] = time.sleep

    def send(self, request: LLMRequest) -> LLMResponse:
        """Return the answer; raise `AggregateRouterError` (MMR-P9) or `UpstreamRefused` (MMR-P10) if there is none."""
        plan = self.resolve(request)
        run: FallbackRun[Answer] = FallbackRun(plan, self.run_context)
        result = drive(run, lambda call: self.call(call, chat_for(request, plan, call)), self.sleep)
        return _response(plan, result)

    def resolve(self, request: LLMRequest) -> Plan:
        """Plan the request without calling a provider."""
        return make_plan(self.configuration, request.query, unusable=self.unusable)

    def get_provider_name(self) -> str:
        """Return the provider of the default route's first candidate (MMR-E5)."""
        return resolve_route(self.configuration, DEFAULT_ROUTE)[0].primary.provider

    def get_default_model(self) -> str:
        """Return the model of the default route's first candidate, or its provider's default model (MMR-E5)."""
        primary = resolve_route(self.configuration, DEFAULT_ROUTE)[0].primary
        provider = self.configuration.provider(primary.provider)
        return primary.model or (provider.default_model if provider else "")

    @classmethod
    def from_env(cls, env: Mapping[str, str], call: Caller) -> LLMRouter:
        """Return a router with the single provider that environment variables describe (MMR-E2)."""
        return cls(configuration_from_env(env), call)


def chat_for(request: LLMRequest, plan: Plan, call: Call) -> ChatRequest:
    """Return the request for one candidate, with the language directive, the prompts and the effective parameters."""
    system = (Message(Role.SYSTEM, (TextPart(request.system_prompt),)),) if request.system_prompt else ()
    messages = (*system, Message(Role.USER, (TextPart(request.prompt),)))
    return apply_params(inject_directive(ChatRequest(messages), plan.directive), call)


def _response(plan: Plan, result: RunResult[Answer]) -> LLMResponse:
    candidate = result.candidate
    return LLMResponse(
        content=result.answer.text,
        provider=candidate.provider,
        model=candidate.model,
        task_type=plan.task_type,
        language=plan.language,
        answer=result.answer,
        attempts=result.attempts,
    )


__all__ = ["Failure", "LLMRequest", "LLMResponse", "LLMRouter"]
