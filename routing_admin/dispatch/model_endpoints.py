"""Build model endpoints from a snapshot, for each model service and for any provider and model in a chain."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

from capabilities.core.delivery import decision
from capabilities.core.delivery.model_description import without_describer
from capabilities.core.delivery.model_endpoint import ModelEndpoint, model_endpoint
from capabilities.core.delivery.reader import DEFAULT_POLICY, ContentPolicy
from capabilities.core.delivery.token_limits import token_limits
from capabilities.core.describing.describable import obstacle_to_describing
from capabilities.core.message import FilePart
from capabilities.core.services.agents import AgentProfile
from capabilities.core.services.registry import LlmServiceConfig, LlmServiceRegistry
from capabilities.core.vocabulary import TEXT_ONLY
from capabilities.core.wire import Target
from routing_admin.configuration import snapshot
from routing_admin.configuration.keys import KeyState
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import DESCRIBE_ROUTE, ProviderSpec, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import PoolKey
from routing_admin.core.files.endpoints import service_base_url
from routing_admin.core.planning.plan import default_route_to, disabled_service


def endpoint_at(
    state: Snapshot,
    provider: ProviderSpec,
    model: str,
    *,
    service: ServiceSpec | None = None,
    extra_body: Mapping[str, Any] | None = None,
    content: Mapping[str, Any] | None = None,
) -> ModelEndpoint:
    """Return a model's endpoint at a provider, with its service's capabilities, or only text if it has no service.

    `content` is the route's content policy. It overrides the service's, which overrides the installation's.
    `extra_body` contains the candidate's extra body fields, which override those of the service.
    """
    service = service or state.configuration.service_at(provider.name, model)
    entry = state.catalogue.entry_at(provider.name, provider.endpoint, model)
    tokens = token_limits(service.limits if service else {}, entry)
    target = Target(
        provider=provider.name,
        endpoint=provider.endpoint,
        model=model,
        api_key=state.keys[provider.name].value,
        quirks=provider.quirks,
        extra_body={**(service.extra_body if service else {}), **(extra_body or {})},
        max_output_tokens=tokens.output.tokens if tokens.output else None,
    )
    layers = (content, service.content if service else None)
    installation = state.configuration
    endpoint = model_endpoint(
        provider.protocol,
        target,
        service.effective_capabilities if service else TEXT_ONLY,
        service_id=service.id if service else None,
        limits=service.limits if service else None,
        content={
            "policy": _find_word("policy", installation.content_policy or DEFAULT_POLICY, *layers),
            "text": _find_word("text", installation.content_text, *layers),
            "html": _find_word("html", installation.content_html, *layers),
        },
        tokens=tokens,
        vendor_tools=provider.vendor_tools,
    )
    if ContentPolicy.DESCRIBER not in endpoint.reader.policies:
        return endpoint
    return replace(endpoint, reader=replace(endpoint.reader, describer_for=partial(find_describer, state)))


def find_describer(state: Snapshot, file: FilePart) -> str:
    """Return the name of the first model on the route `describe` that can read the file, or an empty string."""
    return next(
        (endpoint.name for endpoint in list_describers(state) if obstacle_to_describing(file, endpoint.reader) is None),
        "",
    )


def without_describing(endpoint: ModelEndpoint) -> ModelEndpoint:
    return replace(endpoint, reader=without_describer(endpoint.reader))


DESCRIBER_CONTENT = {"policy": "convert+native_only"}
"""Content policy for describing models: a file is sent unchanged, converted or as page images, and a model that can
read none of these is skipped."""


@lru_cache(maxsize=2)
def describing_route(state: Snapshot) -> RouteSpec | None:
    """Return the route that describes files, or None if it is missing or disabled.

    Unlike for other task types, the route `default` does not replace it.
    """
    route = state.configuration.route(DESCRIBE_ROUTE)
    return replace(route, content=DESCRIBER_CONTENT) if route is not None and route.enabled else None


@lru_cache(maxsize=2)
def list_describers(state: Snapshot) -> tuple[ModelEndpoint, ...]:
    """Return the endpoints of the describing route that can be called, in the order of its chain."""
    route = describing_route(state)
    endpoints = []
    for candidate in route.candidates if route else ():
        provider = state.configuration.provider(candidate.provider)
        if provider is None or not provider.enabled or not state.keys[provider.name].usable:
            continue
        model = candidate.model or provider.default_model
        if disabled_service(state.configuration, provider.name, model) is None:
            endpoints.append(
                endpoint_at(state, provider, model, extra_body=candidate.extra_body, content=DESCRIBER_CONTENT)
            )
    return tuple(endpoints)


def with_key(endpoint: ModelEndpoint, state: Snapshot, key: PoolKey) -> ModelEndpoint:
    keys = state.provider_keys[endpoint.target.provider].every
    value = next(
        named_key.state.value for named_key in keys if (named_key.name, named_key.mark) == (key.name, key.mark)
    )
    return replace(endpoint, target=replace(endpoint.target, api_key=value))


def _find_word(name: str, default: str | None, *layers: Mapping[str, Any] | None) -> str:
    words = (str(layer.get(name) or "") for layer in layers if layer)
    return next(filter(None, words), default or "")


@lru_cache(maxsize=2)
def list_endpoints(state: Snapshot) -> Mapping[str, ModelEndpoint]:
    return _list_endpoints(state, {})


def _list_endpoints(state: Snapshot, content: Mapping[str, Any]) -> dict[str, ModelEndpoint]:
    endpoints = {}
    for service in state.configuration.services:
        provider = state.configuration.provider(service.provider)
        if provider is not None and service.enabled:
            endpoints[service.id] = endpoint_at(
                state, provider, service.model, service=service, content=content or None
            )
    return endpoints


@lru_cache(maxsize=2)
def build_registry(state: Snapshot) -> LlmServiceRegistry:
    """Return the services, without keys, as an `LlmServiceRegistry`, a type that the requirements define."""
    return LlmServiceRegistry(
        LlmServiceConfig(
            id=service.id,
            name=service.name,
            base_url=service_base_url(service, state.configuration.provider(service.provider)),
            model=service.model,
            api_key="",
            capability_tags=tuple(service.capability_tags),
            capabilities=service.effective_capabilities,
            description=service.description,
        )
        for service in state.configuration.services
        if service.enabled
    )


@dataclass(frozen=True, slots=True)
class KeyNote:
    """Information about a provider's key for display, without the key.

    `source` is not_needed, override, environment, stored or missing. `reason` says why the provider cannot be called.
    `unconfirmed` is the origin to which the key in `variable` is not sent until an administrator allows it.
    """

    source: str
    variable: str = ""
    last_four: str = ""
    reason: str = ""
    unconfirmed: str = ""


def build_key_note(key: KeyState) -> KeyNote:
    return KeyNote(key.source.value, key.variable, key.last_four, key.reason, key.unconfirmed)


def list_key_notes() -> Mapping[str, KeyNote]:
    """Return information about each provider's key, by provider name."""
    return {name: build_key_note(key) for name, key in snapshot.current().keys.items()}


def default_language() -> str:
    return snapshot.current().configuration.default_language or "en"


def default_endpoints(state: Snapshot) -> tuple[ModelEndpoint, ...]:
    """Return an endpoint for each enabled service, with the default route's content policy."""
    content = default_route_to(state.configuration).content
    return tuple((_list_endpoints(state, content) if content else list_endpoints(state)).values())


def list_readers(
    state: Snapshot, file: FilePart, but: str | None = None, *, only_configured: bool = False
) -> list[str]:
    """Return the ids of agents whose model can read the file itself, except for the requesting agent `but`.

    With `only_configured`, agents created at run time are left out, because they come and go frequently.
    """
    endpoints = list_endpoints(state)

    def can_read(agent: AgentProfile, file: FilePart) -> bool:
        endpoint = endpoints.get(agent.service_id or "")
        return endpoint is not None and decision.can_read(file, endpoint.reader)

    return (state.configured if only_configured else state.directory).find_readers(file, can_read, exclude=but)
