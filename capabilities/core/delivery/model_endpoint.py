"""Model endpoints: a model at a provider, its protocol, and the content that it accepts.

Previews, simulations and request attempts all call `prepare`, so previews match requests.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import field, replace
from typing import Any

from capabilities.core.delivery.adaptation import Adapted, CannotRead, PartDelivery, TextStyle, adapt
from capabilities.core.delivery.decision import Delivery
from capabilities.core.delivery.model_description import DescriptionState
from capabilities.core.delivery.reader import DEFAULT_TEXT_LIMIT, ContentPolicy, Reader, parse_policies
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.text_limit import TextLimit, read_text_limit
from capabilities.core.delivery.token_limits import UNKNOWN, TokenLimits
from capabilities.core.delivery.vendor_items import NO_NAMES, fit_tools, fit_vendor_items
from capabilities.core.message import ChatRequest
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.custom_tools import AS_FUNCTIONS
from capabilities.core.protocols.vendor_tools import allowed_tool_names
from capabilities.core.providers.presets import limits_template, quirks_for
from capabilities.core.providers.quirks import LIMIT_FIELD, LIMIT_NAMES, passed_headers
from capabilities.core.values import value_class
from capabilities.core.vocabulary import Capabilities
from capabilities.core.wire import Target, UpstreamRequest, WireProtocol

ALL_CAPABILITIES = "*"
"""In a list of withheld capabilities, this entry means all capabilities except text."""


@value_class
class ModelEndpoint:
    """A model that can receive requests: its wire protocol, its target, and the `Reader` for delivery decisions.

    `service_id` is None for a model that is not configured as a service, which is treated as text-only. `passes` maps
    the name of each caller header that is forwarded to its name in the provider request. `vendor_tools` contains the
    names of the vendor's own tools that may be used.
    """

    protocol: WireProtocol
    target: Target
    reader: Reader
    service_id: str | None = None
    tokens: TokenLimits = UNKNOWN
    passes: Mapping[str, str] = field(default_factory=dict)
    vendor_tools: frozenset[str] = frozenset()

    @property
    def origin(self) -> str:
        """Return the id that identifies this model's reasoning (see `capabilities.core.thoughts`)."""
        return self.target.origin(self.protocol.name)

    @property
    def name(self) -> str:
        return self.service_id or f"{self.target.provider}/{self.target.model}"


@value_class
class Prepared:
    """A request encoded for one endpoint, with the deliveries of its files.

    `tool_names` maps the tool names in the encoded request to the caller's names. `custom_tools` are the caller's tools
    with free-text input, which are sent as functions.
    """

    request: UpstreamRequest
    chat: ChatRequest
    deliveries: tuple[PartDelivery, ...]
    tool_names: Mapping[str, str] = field(default_factory=lambda: NO_NAMES)
    custom_tools: frozenset[str] = frozenset()

    @property
    def to_describe(self) -> tuple[PartDelivery, ...]:
        return tuple(part_delivery for part_delivery in self.deliveries if needs_description(part_delivery.delivery))


def needs_description(delivery: Delivery) -> bool:
    description = delivery.description
    return description is not None and description.state is DescriptionState.NOT_ASKED


def model_endpoint(
    protocol: str,
    target: Target,
    capabilities: Capabilities,
    *,
    service_id: str | None = None,
    limits: Mapping[str, Any] | None = None,
    content: Mapping[str, Any] | None = None,
    tokens: TokenLimits = UNKNOWN,
    vendor_tools: Collection[str] | None = None,
) -> ModelEndpoint:
    """Return the endpoint for a target, with the slots of its protocol and host and the administrator's limits.

    `content` contains the settings of the route or, if it has none, of the service: the delivery policy, the text limit
    for files, and the form of web pages, as in `{"policy": "extract+convert", "text": "30%", "html": "source"}`.
    `vendor_tools` is the provider's list of permitted vendor tools, or None for the default.
    """
    quirks = quirks_for(target.endpoint, target.quirks)
    template = limits_template(target.endpoint, protocol)
    slots = slots_for(protocol, template, limits or None, quirks, target.model)
    reader = Reader(
        slots=slots,
        capabilities=capabilities,
        policies=content_policies(content or {}),
        text_limit=content_text_limit(content or {}),
        html_source=(content or {}).get("html") == "source",
        window=tokens.context.tokens if tokens.context else None,
        model=target.model,
    )
    # The embedded echo provider runs in this process, so no headers are forwarded to it.
    passes = passed_headers(quirks, protocol) if protocol != "echo" else {}
    tool_words = allowed_tool_names(protocol, target.endpoint, vendor_tools)
    return ModelEndpoint(PROTOCOLS[protocol], target, reader, service_id, tokens, passes, tool_words)


def content_policies(content: Mapping[str, Any]) -> frozenset[ContentPolicy]:
    """Return the policies in `content`. An unknown policy (from an old configuration) is treated as `describe`."""
    try:
        return parse_policies(content.get("policy"))
    except (ValueError, AttributeError):
        return parse_policies(None)


def content_text_limit(content: Mapping[str, Any]) -> TextLimit:
    """Return the text limit in `content`, or the default if it is missing or invalid."""
    try:
        return read_text_limit(str(content.get("text") or ""))
    except ValueError:
        return DEFAULT_TEXT_LIMIT


def prepare(
    chat: ChatRequest,
    endpoint: ModelEndpoint,
    style: TextStyle,
    *,
    stream: bool = False,
    without_capabilities: Collection[str] = (),
) -> Prepared | CannotRead:
    """Encode the request for this endpoint, or return `CannotRead` if the policy `native_only` excludes the endpoint.

    `without_capabilities` lists capabilities to treat as missing because the model has rejected such content.
    """
    adapted = adapt(chat, withhold(endpoint.reader, without_capabilities), style)
    if isinstance(adapted, CannotRead):
        return adapted
    return encode_adapted(adapted, endpoint, stream=stream, language=style.language)


def with_forwarded_headers(prepared: Prepared, passes: Mapping[str, str], headers: Mapping[str, str]) -> Prepared:
    # A provider may have another name for a header: OpenAI, for example, receives x-request-id as X-Client-Request-Id.
    forwarded = {
        provider_name: headers[caller_name] for caller_name, provider_name in passes.items() if headers.get(caller_name)
    }
    if not forwarded:
        return prepared
    return replace(prepared, request=replace(prepared.request, headers={**prepared.request.headers, **forwarded}))


def encode_adapted(adapted: Adapted, endpoint: ModelEndpoint, *, stream: bool, language: str | None = None) -> Prepared:
    chat, left_out = fit_vendor_items(adapted.chat, endpoint.protocol.name, endpoint.vendor_tools, language)
    chat, tool_names = fit_tools(chat, endpoint.protocol.name)
    request = endpoint.protocol.encode(chat, endpoint.target, stream=stream)
    if left_out:
        request = replace(request, dropped_params=(*request.dropped_params, *left_out))
    custom = frozenset(tool.name for tool in adapted.chat.tools if tool.custom is not None)
    as_functions = custom if endpoint.protocol.name in AS_FUNCTIONS else frozenset()
    return Prepared(request, adapted.chat, adapted.deliveries, tool_names, as_functions)


def rename_limit(endpoint: ModelEndpoint, name: str | None) -> ModelEndpoint:
    """Return the endpoint with its token limit parameter renamed to `name`, or unchanged if `name` is None."""
    if name is None:
        return endpoint
    quirks = {**endpoint.target.quirks, LIMIT_FIELD: name}
    # The limit may also be in the service's extra request fields.
    extra = {name if key in LIMIT_NAMES else key: value for key, value in endpoint.target.extra_body.items()}
    return replace(endpoint, target=replace(endpoint.target, quirks=quirks, extra_body=extra))


def withhold(reader: Reader, capabilities: Collection[str]) -> Reader:
    if not capabilities:
        return reader
    remaining = tuple(
        name
        for name in reader.capabilities.input
        if name == "text" or (ALL_CAPABILITIES not in capabilities and name not in capabilities)
    )
    return replace(reader, capabilities=Capabilities(remaining, reader.capabilities.output))
