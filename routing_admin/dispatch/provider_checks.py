"""Call providers on behalf of administrators: connection tests, model lists and probes."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Collection, Coroutine, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from capabilities.core.delivery.adaptation import CannotRead, TextStyle
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared, prepare
from capabilities.core.json_codec import read_repaired_json
from capabilities.core.message import ChatRequest, Message, Role, TextPart
from capabilities.core.protocols.echo import embedded
from capabilities.core.protocols.openai import replies
from capabilities.core.providers.origins import is_embedded
from capabilities.core.providers.quirks import LIMIT_FIELD, quirks_without
from capabilities.core.translatable import translatable
from capabilities.core.wire import Answer, Failure, Fault, UpstreamRequest
from capabilities.errors import NotFoundError
from capabilities.runtime import owned
from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import KeyFrom, NamedKey
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import ProviderSpec
from routing_admin.core.fallback.chain import PoolKey, Timeouts
from routing_admin.core.files.endpoints import base_url
from routing_admin.dispatch.model_endpoints import endpoint_at, with_key
from routing_admin.dispatch.send import NetworkTransport, process_run_context
from routing_admin.upstream import process_upstream, run_sync

T = TypeVar("T", bound=Hashable)

QUICK_TIMEOUTS = Timeouts(connect=5, first_content=20, between=10, total=30)
PATIENT_TIMEOUTS = Timeouts(connect=5, first_content=60, between=30, total=90)
"""Longer timeouts, for requests that may make a model reason before it answers."""
GREETING = ChatRequest((Message(Role.USER, (TextPart("Say hello."),)),), max_tokens=64)
MAX_MODELS = 5000
MAX_OPTIONS = 4
"""Maximum number of quirks that a test tries after refusals before it gives up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """Result of a call to a provider; `fault` is empty if the provider answered, and `ms` is the duration of the call.

    `models` are the ids in the provider's model list, `entries` its raw entries. `quirks` are the compatibility options
    that the provider needed in order to answer.
    """

    ms: float
    fault: str = ""
    status: int | None = None
    message: str = ""
    models: tuple[str, ...] = ()
    text: str = ""
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    entries: tuple[Any, ...] = ()
    quirks: Mapping[str, Any] = field(default_factory=dict)


class ModelList:
    """Protocol of the call `GET …/models`. The text of the answer contains the entries as JSON."""

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        """Return the entries in `data` (OpenAI, Anthropic) or in `models` (Gemini), or the failure."""
        try:
            value = read_repaired_json(body) if status == 200 else None
        except (ValueError, RecursionError):
            return Failure(Fault.BAD_JSON, translatable("the list of models is not JSON"), status)
        if value is None:
            failed = replies.decode(status, headers, body)
            return failed if isinstance(failed, Failure) else _no_list(translatable("not a list of models"), status)
        entries = [entry for entry in _entries(value) if _id(entry)]
        return Answer(json.dumps(entries)) if entries else _no_list(translatable("the list of models is empty"), status)


def _no_list(message: str, status: int) -> Failure:
    return Failure(Fault.BAD_SHAPE, message, status)


def _entries(value: Any) -> list[Any]:
    entries = (value.get("data") or value.get("models")) if isinstance(value, dict) else value
    return entries[:MAX_MODELS] if isinstance(entries, list) else []


def _id(entry: Any) -> str:
    name = (entry.get("id") or entry.get("name")) if isinstance(entry, dict) else entry
    return name.removeprefix("models/")[:200] if isinstance(name, str) else ""


class ProviderChecker:
    def test(self, provider: str, model: str) -> CheckResult:
        """Send a minimal chat request to one of the provider's models."""
        return run_sync(self._greet(*_find_provider(provider), model))

    def test_each(self, models: Mapping[str, str]) -> Mapping[str, CheckResult]:
        """Send a minimal chat request to one model of each provider, all at the same time."""
        targets = {provider: _find_provider(provider) for provider in models}
        return _run_concurrently({name: self._greet(*targets[name], model) for name, model in models.items()})

    def test_keys(self, provider: str, model: str, names: Collection[str] = ()) -> Mapping[str, CheckResult]:
        """Send a minimal chat request with each key, and update the cooldowns of the keys according to the results."""
        state, spec = _find_provider(provider)
        every = state.provider_keys[provider].every
        keys = [key for key in every if not names or key.name in names]
        return _run_concurrently({key.name: self._greet_with(state, spec, model, key) for key in keys})

    async def _greet_with(self, state: Snapshot, spec: ProviderSpec, model: str, key: NamedKey) -> CheckResult:
        if key.state.reason:
            fault = Fault.KEY_MISSING if key.state.source is KeyFrom.MISSING else Fault.ORIGIN_REFUSED
            return CheckResult(ms=0, fault=fault.value, message=key.state.reason)
        choice = PoolKey(key.name, key.mark)
        endpoint = with_key(endpoint_at(state, spec, model), state, choice)
        prepared = prepare(GREETING, endpoint, TextStyle())
        if isinstance(prepared, CannotRead):  # This never happens, because every model can read text.
            return CheckResult(ms=0, fault=prepared.reason.code.value)
        began = time.monotonic()
        outcome = await NetworkTransport().call(prepared, endpoint, QUICK_TIMEOUTS, spec.proxy)
        failure = outcome if isinstance(outcome, Failure) else None
        process_run_context().pools.record(spec.name, choice, failure)
        return build_check_result(outcome, began)

    async def _greet(self, state: Snapshot, spec: ProviderSpec, model: str) -> CheckResult:
        if isinstance(refused := _refusal(state, spec), CheckResult):
            return refused
        endpoint = endpoint_at(state, spec, model or spec.default_model)
        result = await self._greet_with_options(endpoint, spec)
        # A successful test ends the cooldown, like any successful request.
        if not result.fault:
            process_run_context().cooldowns.record_success(spec.name, model or spec.default_model)
        return result

    async def _greet_with_options(self, endpoint: ModelEndpoint, spec: ProviderSpec) -> CheckResult:
        # After a refusal, send the test message again with another quirk. The result lists all quirks that were needed.
        options: dict[str, Any] = {}
        while True:
            adjusted = replace(endpoint, target=replace(endpoint.target, quirks={**endpoint.target.quirks, **options}))
            prepared = prepare(GREETING, adjusted, TextStyle())
            if isinstance(prepared, CannotRead):  # This never happens, because every model can read text.
                return CheckResult(ms=0, fault=prepared.reason.code.value)
            began = time.monotonic()
            outcome = await NetworkTransport().call(prepared, adjusted, QUICK_TIMEOUTS, spec.proxy)
            if isinstance(outcome, Answer):
                return replace(build_check_result(outcome, began), quirks=options)
            refused_param = outcome.param if outcome.fault is Fault.UNSUPPORTED_PARAMETER else None
            new_options = quirks_without(adjusted.target.quirks, spec.protocol, refused_param) if refused_param else {}
            if not new_options or new_options.keys() & options.keys() == {LIMIT_FIELD} or len(options) >= MAX_OPTIONS:
                return build_check_result(outcome, began)
            options |= new_options

    def ask_each(self, provider: str, model: str, chats: Sequence[ChatRequest]) -> Sequence[CheckResult]:
        """Send the requests of capability probes unchanged, whatever capabilities the model declares."""
        state, spec = _find_provider(provider)
        if isinstance(refused := _refusal(state, spec), CheckResult):
            return [refused] * len(chats)
        endpoint = endpoint_at(state, spec, model)
        prepared = [Prepared(endpoint.protocol.encode(chat, endpoint.target, stream=False), chat, ()) for chat in chats]
        checks = (self._time(request, endpoint, spec.proxy) for request in prepared)
        return list(_run_concurrently(dict(enumerate(checks))).values())

    def models(self, provider: str) -> CheckResult:
        """Return the provider's own list of models."""
        state, spec = _find_provider(provider)
        if is_embedded(spec.endpoint):
            return CheckResult(ms=0, models=embedded.MODELS)
        if isinstance(refused := _refusal(state, spec), CheckResult):
            return refused
        endpoint = endpoint_at(state, spec, spec.default_model)
        headers = dict(endpoint.protocol.encode(GREETING, endpoint.target, stream=False).headers)
        # A GET request has no body and needs no content type.
        headers.pop("content-type", None)
        request = UpstreamRequest(models_url(spec), headers, method="GET")
        began = time.monotonic()
        outcome = process_upstream().call_sync(request, ModelList(), QUICK_TIMEOUTS, spec.proxy)
        entries = tuple(json.loads(outcome.text)) if isinstance(outcome, Answer) else ()
        ids = tuple(_id(entry) for entry in entries)
        return replace(build_check_result(outcome, began, ids), entries=entries, text="")

    async def _time(self, prepared: Prepared, endpoint: ModelEndpoint, proxy: str) -> CheckResult:
        began = time.monotonic()
        return build_check_result(await NetworkTransport().call(prepared, endpoint, PATIENT_TIMEOUTS, proxy), began)


def _run_concurrently(checks: Mapping[T, Coroutine[None, None, CheckResult]]) -> dict[T, CheckResult]:
    async def run() -> dict[T, CheckResult]:
        async with asyncio.TaskGroup() as group:
            tasks = {name: group.create_task(check) for name, check in checks.items()}
        return {name: task.result() for name, task in tasks.items()}

    return run_sync(run())


provider_checker = owned(ProviderChecker)


def models_url(provider: ProviderSpec) -> str:
    base, _, query = base_url(provider.endpoint).partition("?")
    root = base.split("/models", 1)[0].rstrip("/")
    return f"{root}/models" + (f"?{query}" if query else "")


def build_check_result(outcome: Answer | Failure, began: float, models: tuple[str, ...] = ()) -> CheckResult:
    took = (time.monotonic() - began) * 1000
    if isinstance(outcome, Failure):
        return CheckResult(ms=took, fault=outcome.fault.value, status=outcome.status, message=outcome.message)
    usage = outcome.usage
    return CheckResult(
        ms=took,
        status=200,
        models=models,
        text=outcome.text,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
    )


def _find_provider(name: str) -> tuple[Snapshot, ProviderSpec]:
    state = snapshot.current()
    spec = state.configuration.provider(name)
    if spec is None:
        raise NotFoundError(f"There is no provider {name}.")
    return state, spec


def _refusal(state: Snapshot, provider: ProviderSpec) -> CheckResult | None:
    key = state.keys[provider.name]
    if key.usable:
        return None
    fault = Fault.KEY_MISSING if key.source is KeyFrom.MISSING else Fault.ORIGIN_REFUSED
    return CheckResult(ms=0, fault=fault.value, message=key.reason)
