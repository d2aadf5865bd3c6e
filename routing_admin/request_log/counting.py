"""Count each log entry in the metrics exactly once, after it has been written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from itertools import islice
from operator import attrgetter

from django.conf import settings

from capabilities.core.wire import Usage
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import EMPTY, Configuration
from routing_admin.core.fallback.chain import OK
from routing_admin.core.planning.model_names import provider_and_model
from routing_admin.platform.server.metrics import CALL_LABELS, OTHER, MetricFamily, request_metrics
from routing_admin.request_log.costs import cost_columns
from routing_admin.request_log.entries import Entry, find_answering

# Callers can make up names, so in metrics and totals only configured routes and models have their own names, and all
# others are counted together. The names are read from the newest configuration, so a model that has just been added is
# immediately counted under its name.


class CountedNames:
    """The names in one configuration. Any other name is counted as `other`."""

    def __init__(self, configuration: Configuration, other: str, agents: tuple[str, ...] = ()) -> None:
        self._other, self.agents = other, agents
        self._providers = {"", *(provider.name for provider in configuration.providers)}
        self._models = {*_models_in(configuration), ("", "")}
        self._routes = {
            "",
            *(route.task_type for route in configuration.routes),
            *(service.id for service in configuration.services),
            *(alias.name for alias in configuration.aliases),
            *(f"{provider}/{model}" for provider, model in self._models),
        }

    def model(self, provider: str, model: str) -> str:
        return model if not model or (provider, model) in self._models else self._other

    def model_labels(self, provider: str, model: str) -> tuple[str, str]:
        return (provider, self.model(provider, model)) if provider in self._providers else (self._other, self._other)

    def route(self, task_type: str) -> str:
        return task_type if task_type in self._routes else self._other

    def agent(self, name: str) -> str:
        return name if name in self.agents else self._other

    def is_known(self, route: str, provider: str, model: str) -> bool:
        """Return whether the route, the provider and the model all appear in the metrics under their own names."""
        return self.route(route) == route and self.model_labels(provider, model) == (provider, model)


def _models_in(configuration: Configuration) -> Iterator[tuple[str, str]]:
    yield from ((service.provider, service.model) for service in configuration.services)
    yield from ((provider.name, provider.default_model) for provider in configuration.providers)
    for route in configuration.routes:
        yield from ((candidate.provider, candidate.model) for candidate in route.candidates if candidate.model)
    for alias in configuration.aliases:
        if pair := provider_and_model(configuration, alias.target):
            yield pair


def _build(state: Snapshot, other: str) -> CountedNames:
    agents = islice((agent.id for agent in state.configured), settings.METRICS_AGENTS)
    return CountedNames(state.configuration, other, tuple(agents))


_names_of: Callable[[Snapshot, str], CountedNames] = lru_cache(maxsize=4)(_build)


def current_names(other: str) -> CountedNames:
    """Return the names in the newest configuration; raise an error if no configuration has ever been read."""
    return _names_of(snapshot.current(), other)


KINDS = {
    "input": "prompt_tokens",
    "output": "completion_tokens",
    "cache_read": "cached_tokens",
    "cache_write": "cache_write_tokens",
    "input_audio": "prompt_audio_tokens",
    "input_image": "prompt_image_tokens",
    "output_audio": "completion_audio_tokens",
    "output_image": "completion_image_tokens",
    "reasoning": "reasoning_tokens",
}
"""Maps the metrics' token types to fields of `Usage`."""
_read_counts = attrgetter(*KINDS.values())
OPERATIONS = {"v1/embeddings": "embeddings", "v1/completions": "text_completion", "v1/images": "generate_content"}
"""Maps surfaces to OpenTelemetry's operation names; all other surfaces are `chat`."""


NAMED = frozenset({"agent", "route", "provider", "model", *CALL_LABELS})
"""Labels whose values are names in the configuration."""


def metric_operation(surface: str) -> str:
    return OPERATIONS.get(surface, "chat")


def count_entries(entries: Iterable[Entry]) -> None:
    """Count the requests, attempts, tokens and costs of log entries in this process's metrics."""
    names = _names()
    for entry in entries:
        _count(entry, names)


def _names() -> CountedNames:
    try:
        return current_names(OTHER)
    except Exception:  # No configuration has ever been loaded; the reason has been logged.
        return CountedNames(EMPTY, OTHER)


def without_former_names(family: MetricFamily) -> MetricFamily:
    """Return a metric family, excluding the series for routes, providers and models that are no longer configured."""
    if NAMED.isdisjoint(family.labels):
        return family
    names, columns = _names(), family.labels

    def is_known(labels: tuple[str, ...]) -> bool:
        found = dict(zip(columns, labels, strict=True))
        model_labels = (
            found.get("provider") or found.get(CALL_LABELS[1], ""),
            found.get("model") or found.get(CALL_LABELS[2], ""),
        )
        agent = found.get("agent", OTHER)
        return names.agent(agent) == agent and names.is_known(found.get("route", ""), *model_labels)

    return replace(family, values={labels: value for labels, value in family.values.items() if is_known(labels)})


def _count(entry: Entry, names: CountedNames) -> None:
    facts, route = entry.facts, names.route(entry.facts.task_type)
    operation = metric_operation(facts.surface)
    request_metrics().count_request(route, facts.surface, facts.outcome, facts.duration_ms / 1000)
    if names.agents:
        request_metrics().count_agent_request(names.agent(facts.agent), facts.outcome)
    for attempt in entry.attempts:
        model_labels = names.model_labels(attempt.provider, attempt.model)
        request_metrics().count_attempt(route, *model_labels, attempt.outcome)
        if attempt.tries:
            error = "" if attempt.outcome == OK else attempt.outcome
            request_metrics().observe_call(operation, *model_labels, error, attempt.duration_ms / 1000)
        for call in attempt.tries:
            if call.usage is not None:  # The provider billed the call although it gave no answer.
                request_metrics().count_tokens(route, operation, *model_labels, _tokens_by_type(call.usage))
    answered = find_answering(entry)
    if answered is not None:
        model_labels = names.model_labels(answered.provider, answered.model)
        request_metrics().count_tokens(route, operation, *model_labels, _tokens_by_type(facts.usage))
        if facts.first_content_ms is not None:
            seconds = (facts.first_content_ms - answered.started_ms) / 1000
            request_metrics().observe_first_content(operation, *model_labels, seconds)
    _count_costs(entry, names)


def _count_costs(entry: Entry, names: CountedNames) -> None:
    try:
        rows = cost_columns(entry)[1]
    except Exception:  # Prices cannot be read; the reason has been logged.
        return
    for attempt, row in zip(entry.attempts, rows, strict=True):
        if row["cost_nanos"]:
            labels = (names.route(entry.facts.task_type), *names.model_labels(attempt.provider, attempt.model))
            request_metrics().count_cost(*labels, row["currency"], row["cost_nanos"])


def _tokens_by_type(usage: Usage) -> dict[str, int]:
    return {kind: count for kind, count in zip(KINDS, _read_counts(usage), strict=True) if count}
