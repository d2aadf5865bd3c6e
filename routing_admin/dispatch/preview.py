"""Preview how an artifact would be delivered to each model service, with the decision and payload of a real request.

The previewed request has one user message that contains only the file. It is built as if the model `auto` had been
requested and the default route led to the service, with that route's language directive and parameters. The preview
also contains the result of get_artifact for the same service. Nothing is sent, and `<N bytes>` replaces file data.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property, partial
from typing import Any

from artifacts.core.artifact import StoredArtifact
from artifacts.core.delivery.content_router import ArtifactContentRouter, ContentRouteResult
from artifacts.extract.drawing import NotDrawnError, disable_drawing
from artifacts.models import Artifact
from artifacts.storage.content import open_artifact
from capabilities.core.delivery.adaptation import Adapted, CannotRead, PartDelivery, TextStyle, adapt, text_style_for
from capabilities.core.delivery.decision import DeliveryForm, Loss, Outcome
from capabilities.core.delivery.model_description import DescriptionState, FindDescription
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared, encode_adapted
from capabilities.core.delivery.obstacles import Reason, ReasonCode
from capabilities.core.delivery.prefix import describe_prediction, predict_break
from capabilities.core.delivery.reader import ContentPolicy, Reader
from capabilities.core.delivery.tokens import Estimate, estimate_delivery, text_tokens
from capabilities.core.message import (
    Blob,
    ChatRequest,
    Content,
    Converted,
    ConvertTo,
    Drawable,
    Inspectable,
    Inspection,
    Message,
    Rendered,
    Role,
    Text,
    make_blob,
)
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.planning.language import inject_directive
from routing_admin.core.planning.plan import RoutingQuery, default_route_to, plan_route
from routing_admin.dispatch import description_preview
from routing_admin.dispatch.model_endpoints import build_registry, default_endpoints, default_language, list_readers

REQUEST = "one user message that holds this file and nothing else, sent on as model auto"
"""Description of the previewed request, for pages and the API."""

TYPE_MISMATCH = "type_mismatch"
"""Code of the warning that the detected type of the content differs from the declared type."""


@dataclass(frozen=True, slots=True)
class DescriptionPreview:
    """A description by a model: the model's name, the state, and the estimated number of tokens.

    If the last attempt failed, `fault` is the reason.
    """

    describer: str
    state: DescriptionState
    estimate: Estimate | None = None
    fault: str = ""

    @property
    def is_cached(self) -> bool:
        return self.state is DescriptionState.BY_MODEL

    def as_json(self) -> dict[str, Any]:
        return {
            "describer": self.describer,
            "state": self.state.value,
            "cached": self.is_cached,
            "estimatedTokens": self.estimate.tokens if self.estimate else None,
            "estimatedBy": self.estimate.rule if self.estimate else None,
            "fault": self.fault or None,
        }


@dataclass(frozen=True, slots=True)
class DeliveryPreview:
    """How a file is delivered to one service.

    `result` is the result of get_artifact for the same service, without data. `text` replaces the file in the message;
    it is None for media. `bytes` is the length of the request body. `estimate` counts the tokens of the file or its
    text, or is None if unknown. `loss` says what is not delivered. `images` is the number of images made from the file.
    `payload` is the request body without file data. `prefix` says how another such file would change the prompt of the
    next turn. If the service would be skipped, `payload` is None and `prefix` is empty. `description` is set if a model
    describes the file, `not_described` if a model should describe it but cannot.
    """

    service_id: str
    provider: str
    model: str
    wire: str
    outcome: Outcome
    form: DeliveryForm
    reason: Reason
    text: str | None
    payload: Any
    bytes: int
    estimate: Estimate | None
    result: ContentRouteResult
    warnings: tuple[str, ...] = ()
    prefix: str = ""
    loss: Loss | None = None
    images: int = 0
    policies: frozenset[ContentPolicy] = frozenset()
    description: DescriptionPreview | None = None
    not_described: Reason | None = None

    def as_json(self) -> dict[str, Any]:
        """Return the delivery as JSON.

        `contentType`, `routing` and `content` are taken from the result of get_artifact.
        """
        content = {} if self.result.content is None else {"content": self.result.content}
        text = {} if self.text is None else {"text": self.text}
        return {
            "serviceId": self.service_id,
            "contentType": self.result.content_type,
            "routing": self.result.routing,
            "outcome": self.outcome.value,
            "shown": self.form.value,
            "reason": self.reason.sentence(),
            "reasonCode": self.reason.code.value,
            "loss": loss_as_json(self.loss),
            **content,
            **text,
            "payload": self.payload,
            "wire": self.wire,
            "bytes": self.bytes,
            "estimatedTokens": self.estimate.tokens if self.estimate else None,
            "estimatedBy": self.estimate.rule if self.estimate else None,
            "getArtifact": self.result.as_json(),
            "description": self.description.as_json() if self.description else None,
            "notDescribed": self.not_described.sentence() if self.not_described else None,
            "prefix": self.prefix,
            "warnings": list(self.warnings),
        }


@dataclass(frozen=True, slots=True)
class Preview:
    """How an artifact is delivered to all services, in display order.

    `readers` are the agents whose models can read the artifact.
    """

    artifact: StoredArtifact
    deliveries: tuple[DeliveryPreview, ...]
    readers: tuple[str, ...] = ()
    request: str = REQUEST
    evidence: tuple[Mapping[str, str], ...] = field(default=())

    @property
    def best(self) -> DeliveryPreview | None:
        """The delivery to the first service that receives the file itself instead of a description."""
        return next((delivery for delivery in self.deliveries if delivery.form is not DeliveryForm.DESCRIBED), None)


def loss_as_json(loss: Loss | None) -> dict[str, Any] | None:
    """Return as JSON how content is lost, the lost share in percent, and the number of replaced bytes.

    Content is lost by being `cut`, `scaled` or `replaced`. A number is null if it is unknown or 0.
    """
    return {"kind": loss.kind.value, "percent": loss.percent, "replaced": loss.count or None} if loss else None


def preview(row: Artifact, *, language: str | None = None, agent: str | None = None) -> Preview:
    """Preview how the artifact is delivered to all enabled services; `agent` is never listed among the readers."""
    previewer = Previewer(row, language=language, agent=agent)
    return previewer.preview(previewer.endpoints)


class Previewer:
    """Previews how one artifact is delivered.

    Services whose models can read the same content share one adapted request.
    """

    def __init__(self, row: Artifact, *, language: str | None = None, agent: str | None = None) -> None:
        self._state = snapshot.current()
        self.artifact = read_once(open_artifact(row))
        self.endpoints: Sequence[ModelEndpoint] = default_endpoints(self._state)
        self._row, self._agent = row, agent
        self._chat = lead_by_default(self._state, request_for(self.artifact), language)
        self._language = language or default_language()
        configured = partial(list_readers, self._state, but=agent, only_configured=True)
        self._style = text_style_for(self._chat, self._language, configured)
        self._estimate_text = cache(text_tokens)
        self._estimate_describing = cache(
            partial(
                description_preview.estimate_description,
                self._state,
                file=self.artifact.part(),
                language=self._language,
            )
        )
        self._asked_language = language
        self._adapted: dict[Hashable, Adapted | CannotRead] = {}
        self._predictions: dict[Hashable, str] = {}

    def form_at(self, endpoint: ModelEndpoint) -> DeliveryForm:
        return _first_delivery(self._adapt(endpoint)).delivery.form

    def must_draw(self, endpoint: ModelEndpoint) -> bool:
        """Return whether `form_at` must first draw a document's pages, which can take seconds."""
        try:
            with disable_drawing():
                self._adapt(endpoint)
        except NotDrawnError:
            return True
        return False

    @cached_property
    def readers(self) -> tuple[str, ...]:
        return tuple(list_readers(self._state, self.artifact.part(), but=self._agent))

    def preview(self, endpoints: Iterable[ModelEndpoint]) -> Preview:
        deliveries = tuple(self._preview_at(endpoint) for endpoint in endpoints)
        return Preview(self.artifact, deliveries, self.readers, evidence=tuple(self._row.evidence))

    def _preview_at(self, endpoint: ModelEndpoint) -> DeliveryPreview:
        adapted = self._adapt(endpoint)
        refused = isinstance(adapted, CannotRead)
        prepared = adapted if isinstance(adapted, CannotRead) else encode_adapted(adapted, endpoint, stream=False)
        mismatch = (TYPE_MISMATCH,) if self._row.mismatch else ()
        delivery = _delivery(self.artifact, prepared, endpoint, self._language, mismatch, self._estimate_text)
        if refused:
            return delivery
        sent = _first_delivery(adapted)
        return replace(
            delivery,
            prefix=self._predict(endpoint, adapted),
            description=self._describe(sent),
            not_described=self._find_refusal(endpoint.reader, sent),
        )

    def _find_refusal(self, reader: Reader, sent: PartDelivery) -> Reason | None:
        delivery = sent.delivery
        is_facts = delivery.outcome is Outcome.DESCRIBED and delivery.description is None
        if (
            ContentPolicy.DESCRIBER not in reader.policies
            or not is_facts
            # No model can describe a file whose bytes cannot be read.
            or delivery.reason.code is ReasonCode.UNREADABLE
        ):
            return None
        return self._refusal

    @cached_property
    def _refusal(self) -> Reason | None:
        return description_preview.find_refusal(self.artifact.part())

    def _describe(self, delivery: PartDelivery) -> DescriptionPreview | None:
        description = delivery.delivery.description
        if description is None:
            return None
        estimate = (
            None
            if description.state is DescriptionState.BY_MODEL
            else self._estimate_describing(delivery.delivery.describer)
        )
        return DescriptionPreview(description.describer, description.state, estimate, description.fault)

    def _adapt(self, endpoint: ModelEndpoint) -> Adapted | CannotRead:
        key = _adaptation_key(endpoint.reader)
        if key not in self._adapted:
            self._adapted[key] = adapt(self._chat, endpoint.reader, self._style_for(endpoint.reader))
        return self._adapted[key]

    def _style_for(self, reader: Reader) -> TextStyle:
        if ContentPolicy.DESCRIBER not in reader.policies:
            return self._style
        return replace(self._style, description_of=self._find_descriptions(reader))

    @cached_property
    def _find_descriptions(self) -> Callable[[Reader], FindDescription]:
        return description_preview.find_descriptions(request_for(self.artifact), self._asked_language)

    def _predict(self, endpoint: ModelEndpoint, adapted: Adapted | CannotRead) -> str:
        key = _adaptation_key(endpoint.reader)
        if key not in self._predictions and isinstance(adapted, Adapted):
            prefix_break = predict_break(self._chat, adapted, endpoint.reader, self._style_for(endpoint.reader))
            self._predictions[key] = describe_prediction(prefix_break)
        return self._predictions[key]


def _adaptation_key(reader: Reader) -> Hashable:
    slots = reader.slots
    # Slots contain dictionaries, which are not hashable, so use the dictionaries' items.
    parts = (slots.name, slots.max_request_bytes, slots.tool_media, *slots.by_kind.items())
    own = (reader.policies, reader.tool_media, reader.text_limit, reader.html_source, reader.window)
    return parts, reader.capabilities, *own


def _first_delivery(prepared: Prepared | Adapted | CannotRead) -> PartDelivery:
    return prepared.delivery if isinstance(prepared, CannotRead) else prepared.deliveries[0]


def lead_by_default(state: Snapshot, chat: ChatRequest, language: str | None) -> ChatRequest:
    """Return the request with the language directive and the parameters of the default route."""
    route = default_route_to(state.configuration)
    plan = plan_route(state.configuration, route, RoutingQuery(language=language))
    return inject_directive(replace(chat, temperature=route.temperature, max_tokens=route.max_tokens), plan.directive)


def request_for(artifact: StoredArtifact) -> ChatRequest:
    return ChatRequest((Message(Role.USER, (artifact.part(),)),))


def _delivery(
    artifact: StoredArtifact,
    prepared: Prepared | CannotRead,
    endpoint: ModelEndpoint,
    language: str,
    warnings: tuple[str, ...],
    estimate_text: Callable[[str], Estimate],
) -> DeliveryPreview:
    refused = isinstance(prepared, CannotRead)
    delivery = _first_delivery(prepared)
    result = route_without_data(artifact, endpoint.service_id or "", language)
    return DeliveryPreview(
        service_id=endpoint.name,
        provider=endpoint.target.provider,
        model=endpoint.target.model,
        wire=endpoint.protocol.name,
        outcome=delivery.delivery.outcome,
        form=delivery.delivery.form,
        reason=delivery.delivery.reason,
        text=delivery.text,
        payload=None if isinstance(prepared, CannotRead) else prepared.request.elide(),
        bytes=0 if isinstance(prepared, CannotRead) else prepared.request.content_length,
        estimate=None if refused else estimate_delivery(delivery, endpoint.target.model, estimate_text),
        result=result,
        warnings=(*result.warnings, *warnings),
        loss=delivery.delivery.loss,
        images=len(delivery.natives) if delivery.delivery.outcome is Outcome.CONVERTED else 0,
        policies=endpoint.reader.policies,
    )


class ContentReadOnce:
    """Content whose text and conversions are computed only once for all services."""

    def __init__(self, content: Content) -> None:
        self.blob, self.text, self.convert = content.blob, cache(content.text), cache(content.convert)
        # Stored descriptions are found by this hash.
        if sha256 := getattr(content, "sha256", ""):
            self.sha256 = sha256
        if isinstance(content, Rendered):
            self.render = cache(content.render)
        if isinstance(content, Drawable):
            self.draw = cache(content.draw)
        if isinstance(content, Inspectable):
            self.inspect = cache(content.inspect)


def read_once(artifact: StoredArtifact) -> StoredArtifact:
    return replace(artifact, content=ContentReadOnce(artifact.content) if artifact.content else None)


@dataclass(frozen=True, slots=True)
class _WithoutData:
    """Content whose bytes are hidden, but whose text is available."""

    content: Content

    def blob(self) -> Blob:
        return make_blob(b"")

    def text(self) -> Text | None:
        return self.content.text()

    def convert(self, target: ConvertTo) -> Converted | None:
        return self.content.convert(target)

    def inspect(self) -> Inspection:
        return self.content.inspect() if isinstance(self.content, Inspectable) else Inspection()


def route_without_data(artifact: StoredArtifact, service_id: str, language: str | None) -> ContentRouteResult:
    """Return the result of get_artifact for a service, with `<N bytes>` instead of file data."""
    artifact_without_data = replace(artifact, content=_WithoutData(artifact.content) if artifact.content else None)
    result = ArtifactContentRouter(build_registry(snapshot.current())).route_content(
        artifact_without_data, service_id, language=language
    )
    placeholder = f"<{artifact.size} bytes>"
    if result.image_url is not None:
        url = result.image_url["image_url"]["url"] + placeholder
        return replace(result, image_url={"type": "image_url", "image_url": {"url": url}})
    if result.file is not None:
        return replace(result, file={"type": "file", "file": {**result.file["file"], "data": placeholder}})
    return result
