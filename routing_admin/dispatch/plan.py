"""Plan a request and prepare it for each candidate."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from capabilities.core.delivery.adaptation import Adapted, CannotRead, PartDelivery, TextStyle, adapt, text_style_for
from capabilities.core.delivery.decision import Outcome
from capabilities.core.delivery.model_description import without_describer
from capabilities.core.delivery.model_endpoint import ModelEndpoint, Prepared, prepare, rename_limit
from capabilities.core.delivery.reader import ContentPolicy
from capabilities.core.message import ChatRequest, FilePart, UnreadableError
from capabilities.core.protocols.parameters import abbreviate_names
from capabilities.core.translatable import Translatable, translatable
from capabilities.core.values import value_class
from capabilities.core.wire import WireProtocol
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import REFUSE, SKIP, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import Call, Plan, PlannedCandidate, SkipReason, Timeouts
from routing_admin.core.planning.language import inject_directive
from routing_admin.core.planning.params import Params, apply_params, list_dropped_params
from routing_admin.core.planning.plan import RoutingQuery, Unusable, opening_text, plan_route
from routing_admin.dispatch.decisions import cached_decisions
from routing_admin.dispatch.model_endpoints import list_readers, without_describing
from routing_admin.request_log.recorder import RequestRecorder

# If the route allows it, skip candidates whose context window is too small for a request, provided that another
# candidate's is large enough.


def pass_overflowed_by(
    plan: Plan, chat: ChatRequest, style: TextStyle, endpoint: Callable[[int], ModelEndpoint]
) -> Plan:
    """Return the plan with a skip reason for each candidate whose context window is too small for the request."""
    called = [candidate for candidate in plan.candidates if candidate.skip is None]
    obstacles = {
        candidate.index: _find_obstacle(candidate, chat, style, endpoint(candidate.index)) for candidate in called
    }
    # An estimate alone must not make a request fail: if it seems too large for all candidates, let the models decide.
    if all(obstacles.values()):
        return plan
    candidates = tuple(_judge_overflow(candidate, obstacles.get(candidate.index)) for candidate in plan.candidates)
    return replace(plan, candidates=candidates)


def _find_obstacle(
    candidate: PlannedCandidate, chat: ChatRequest, style: TextStyle, endpoint: ModelEndpoint
) -> Translatable | None:
    adapted = adapt(apply_params(chat, Call(candidate, 1, Timeouts())), without_describer(endpoint.reader), style)
    return endpoint.tokens.obstacle(adapted, endpoint.target.model) if isinstance(adapted, Adapted) else None


def _judge_overflow(candidate: PlannedCandidate, obstacle: Translatable | None) -> PlannedCandidate:
    return candidate if obstacle is None else replace(candidate, skip=SkipReason.TOO_LONG, skip_detail=obstacle)


WOULD_DROP = translatable("It would leave out %(names)s.")
"""Template of the reason for skipping a candidate on a route that forbids dropping anything."""

Keep = Callable[[FilePart], FilePart]
"""Function that stores a file of a request and returns it with its artifact id, so that a description can
refer to it.
"""


@value_class
class PlannedRequest:
    """A planned request that has not been sent.

    `chat` is in the canonical format and contains the language directive. For calls that are not chats, `passing`
    replaces the protocols of the candidates. `agent` is the caller.
    """

    state: Snapshot
    route: RouteSpec
    plan: Plan
    chat: ChatRequest
    style: TextStyle
    stream: bool = False
    keep: Keep | None = None
    service: ServiceSpec | None = None
    passing: WireProtocol | None = None
    agent: str = ""

    def proxy(self, provider: str) -> str:
        spec = self.state.configuration.provider(provider)
        return spec.proxy if spec else "default"

    def endpoint(self, index: int) -> ModelEndpoint:
        """Return the endpoint of the candidate at `index`; raise `LookupError` if its provider does not exist."""
        endpoint = cached_decisions(self.state).endpoint(self.route, self.plan.candidates[index], self.service)
        return endpoint if self.passing is None else replace(endpoint, protocol=self.passing)

    def with_affinity(self, conversation: str, agent: str) -> PlannedRequest:
        """Return the request with the id of its conversation, so that all its turns use the same provider key.

        If the agent names its conversation, the id is derived from `conversation`, otherwise from the conversation's
        opening.
        """
        opening = "" if self.plan.verbatim else opening_text(self.chat)  # Only chat requests belong to conversations.
        name = f"{agent} {conversation}" if conversation else opening
        return replace(self, plan=replace(self.plan, affinity=name))


def plan_request(
    state: Snapshot,
    route: RouteSpec,
    chat: ChatRequest,
    *,
    matched: bool = True,
    language: str | None = None,
    agent: str | None = None,
    stream: bool = False,
    keep: Keep | None = None,
    unusable: Mapping[str, Unusable] | None = None,
    service: ServiceSpec | None = None,
    direct: bool = False,
    refuses_drops: bool = False,
    passing: WireProtocol | None = None,
) -> PlannedRequest:
    """Plan a request along a route, which may be stored or a draft, without calling any provider.

    `agent` is the caller, and is therefore never suggested as another agent that can read a file. For simulations,
    `unusable` replaces the providers that cannot be called because of their keys. `service` is the service that the
    request names, needed if several share a provider and model. With `direct`, the request names a model instead of a
    route. With `refuses_drops`, candidates that would drop something are skipped. With `passing`, decisions that depend
    on the content of a chat are omitted.
    """
    query = RoutingQuery(route.task_type, language, Params(chat.temperature, chat.max_tokens), direct)
    decisions = cached_decisions(state)
    plan_with = partial(plan_route, state.configuration, route, query, matched=matched, pools=decisions.pools)
    plan = decisions.plan(route, query, matched=matched) if unusable is None else plan_with(unusable=unusable)
    style = text_style_for(chat, plan.language, partial(list_readers, state, but=agent, only_configured=True))
    directed = inject_directive(chat, plan.directive)
    planned = PlannedRequest(state, route, plan, directed, style, stream, keep, service, passing, agent or "")
    if passing is not None:
        return planned
    if chat.has_files and decisions.can_refuse_files(route):
        unusable_providers = decisions.unusable if unusable is None else unusable
        planned = replace(
            planned, plan=plan_with(unusable=unusable_providers, cannot_read=partial(_cannot_read, planned))
        )
    if route.on_overflow == SKIP:
        planned = replace(planned, plan=pass_overflowed_by(planned.plan, planned.chat, style, planned.endpoint))
    return _pass_droppers_by(planned) if refuses_drops or route.on_drop == REFUSE else planned


def _pass_droppers_by(planned: PlannedRequest) -> PlannedRequest:
    candidates = tuple(_judge(planned, candidate) for candidate in planned.plan.candidates)
    return replace(planned, plan=replace(planned.plan, candidates=candidates, refuses_drops=True))


def _judge(planned: PlannedRequest, candidate: PlannedCandidate) -> PlannedCandidate:
    if candidate.skip is not None:
        return candidate
    chat = apply_params(planned.chat, Call(candidate, 1, Timeouts()))
    endpoint = without_describing(planned.endpoint(candidate.index))
    prepared = prepare(chat, endpoint, planned.style, stream=planned.stream)
    names = () if isinstance(prepared, CannotRead) else prepared.request.dropped_params
    if not names:
        return candidate
    detail = translatable(WOULD_DROP, names=tuple(abbreviate_names(names)))
    return replace(candidate, skip=SkipReason.WOULD_DROP, skip_detail=detail, skip_param=names[0])


def _cannot_read(planned: PlannedRequest, provider: str, model: str) -> str | None:
    """If the policy `native_only` skips this model because it cannot read the files, return the reason, else None."""
    index = next(
        number
        for number, candidate in enumerate(planned.plan.candidates)
        if (candidate.provider, candidate.model) == (provider, model)
    )
    if planned.plan.candidates[index].skip is not None:
        return None
    reader = planned.endpoint(index).reader
    if ContentPolicy.NATIVE_ONLY not in reader.policies:
        return None
    adapted = adapt(planned.chat, reader, planned.style)
    return adapted.reason.sentence() if isinstance(adapted, CannotRead) else None


def record_plan(recorder: RequestRecorder, planned: PlannedRequest, task_type: str) -> None:
    """Log the plan, with the text of the request only if bodies are recorded."""
    recorder.add_plan(
        planned.plan,
        task_type=task_type,
        stream=planned.stream,
        revision=planned.state.revision,
        words=planned.chat if planned.state.record_bodies else None,
        chat=planned.chat,
    )


def prepare_for(
    planned: PlannedRequest, chat: ChatRequest, endpoint: ModelEndpoint, call: Call
) -> Prepared | CannotRead:
    prepare_chat = partial(
        prepare,
        endpoint=rename_limit(endpoint, call.limit_name),
        style=planned.style,
        stream=planned.stream,
        without_capabilities=call.without_capabilities,
    )
    # A file that becomes text must be stored first, so that the text can refer to it. Only preparing the request shows
    # whether any file becomes text, so the request may be prepared twice.
    prepared = prepare_chat(chat)
    if isinstance(prepared, CannotRead) or planned.keep is None:
        return prepared
    nameless = [delivery for delivery in prepared.deliveries if _needs_name(delivery)]
    return prepare_chat(_keep_files(chat, nameless, planned.keep)) if nameless else prepared


def list_dropped(chat: ChatRequest, prepared: Prepared, call: Call) -> tuple[str, ...]:
    """Return the names of everything that this call drops: fields unknown to the protocol, and refused parameters."""
    names = prepared.request.dropped_params + list_dropped_params(chat, call)
    return abbreviate_names(names) if names else names


def _needs_name(delivery: PartDelivery) -> bool:
    if delivery.file.artifact_id or delivery.file.content is None or delivery.file.unreadable:
        return False
    # A description or an excerpt must refer to the complete file, which therefore needs an id.
    is_cut = delivery.delivery.loss is not None
    return delivery.delivery.outcome in (Outcome.DESCRIBED, Outcome.EXTRACTED) or is_cut


def _keep_files(chat: ChatRequest, nameless: list[PartDelivery], keep: Keep) -> ChatRequest:
    stored_files = {(delivery.message, delivery.part): keep(delivery.file) for delivery in nameless}
    messages = tuple(
        replace(
            message,
            parts=tuple(
                stored_files.get((message_index, part_index), part) for part_index, part in enumerate(message.parts)
            ),
        )
        for message_index, message in enumerate(chat.messages)
    )
    return replace(chat, messages=messages)


def mark_unreadable(chat: ChatRequest) -> ChatRequest:
    """Return the request with a flag on each file whose bytes cannot be read."""
    messages = tuple(
        replace(
            message, parts=tuple(_mark_file(part) if isinstance(part, FilePart) else part for part in message.parts)
        )
        for message in chat.messages
    )
    return replace(chat, messages=messages)


def _mark_file(file: FilePart) -> FilePart:
    try:
        for _ in file.content.blob().blocks() if file.content else ():
            pass
    except UnreadableError as error:
        return replace(file, unreadable=error.reason)
    return file
