"""A request that is planned and not yet sent: the snapshot it keeps, its route, its plan, its canonical form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from capabilities.core.delivery.adaptation import CannotRead, TextStyle, adapt, text_style_for
from capabilities.core.delivery.reader import ContentPolicy
from capabilities.core.delivery.receiver import Receiver, prepare
from capabilities.core.message import ChatRequest, FilePart
from capabilities.core.protocols.parameters import brief_names
from capabilities.core.values import value_class
from capabilities.core.wire import WireProtocol
from capabilities.core.worded import worded
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.core.configuration.specs import REFUSE, SKIP, RouteSpec, ServiceSpec
from routing_admin.core.fallback.chain import Call, Plan, PlannedCandidate, SkipReason, Timeouts
from routing_admin.core.planning.affinity import opening_of
from routing_admin.core.planning.language import inject_directive
from routing_admin.core.planning.params import Params, apply_params
from routing_admin.core.planning.plan import RoutingQuery, Unusable, plan_route
from routing_admin.dispatch.decisions import decisions_of
from routing_admin.dispatch.overflow import pass_overflowed_by
from routing_admin.dispatch.receivers import readers_of, without_describing

WOULD_DROP = worded("It would leave out %(names)s.")
"""Why a candidate is passed by where nothing may be left out."""

Keep = Callable[[FilePart], FilePart]
"""Stores media that came inside a request, so that its description can carry a reference; gives the part with it."""


@value_class
class PlannedRequest:
    """A request that is decided and not yet sent; `chat` is canonical, its language directive in place.

    `passing` reads and writes in place of the candidates' own protocols, where the call is not a chat's. `agent` asks.
    """

    state: Snapshot
    route: RouteSpec
    plan: Plan
    chat: ChatRequest
    words: TextStyle
    stream: bool = False
    keep: Keep | None = None
    service: ServiceSpec | None = None
    passing: WireProtocol | None = None
    agent: str = ""

    def proxy(self, provider: str) -> str:
        """The provider's proxy setting."""
        found = self.state.configuration.provider(provider)
        return found.proxy if found else "default"

    def receiver(self, index: int) -> Receiver:
        """Who the candidate at that place of the chain is. Raises `LookupError` when its provider is not there."""
        found = decisions_of(self.state).receiver(self.route, self.plan.candidates[index], self.service)
        return found if self.passing is None else replace(found, protocol=self.passing)

    def with_affinity(self, word: str, agent: str) -> PlannedRequest:
        """The request, asked with one key as long as its conversation goes on: by its agent's `word` for that, else by
        how it begins.
        """
        opening = "" if self.plan.verbatim else opening_of(self.chat)  # what passes through is no conversation
        name = f"{agent} {word}" if word else opening
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
    """The plan of a request along a route, which may be a draft; nothing is called.

    `agent` asks, so it is never named as another reader. `unusable` replaces what the keys say, for simulations.
    `service` is the one that was asked for by name, where several share its provider and model; `direct` says that the
    request names a model and no route. `refuses_drops` passes candidates by that would leave something out. With
    `passing` nothing is decided that only a chat's content decides.
    """
    asked = RoutingQuery(route.task_type, language, Params(chat.temperature, chat.max_tokens), direct)
    decisions = decisions_of(state)
    plan_with = partial(plan_route, state.configuration, route, asked, matched=matched, pools=decisions.pools)
    plan = decisions.plan(route, asked, matched=matched) if unusable is None else plan_with(unusable=unusable)
    words = text_style_for(chat, plan.language, partial(readers_of, state, but=agent, only_configured=True))
    led = inject_directive(chat, plan.directive)
    planned = PlannedRequest(state, route, plan, led, words, stream, keep, service, passing, agent or "")
    if passing is not None:
        return planned
    if chat.has_files and decisions.can_refuse_files(route):
        known = decisions.unusable if unusable is None else unusable
        planned = replace(planned, plan=plan_with(unusable=known, cannot_read=partial(_cannot_read, planned)))
    if route.on_overflow == SKIP:
        planned = replace(planned, plan=pass_overflowed_by(planned.plan, planned.chat, words, planned.receiver))
    return _pass_droppers_by(planned) if refuses_drops or route.on_drop == REFUSE else planned


def _pass_droppers_by(planned: PlannedRequest) -> PlannedRequest:
    """The plan without the candidates that would leave something out, each of which says what."""
    candidates = tuple(_judge(planned, candidate) for candidate in planned.plan.candidates)
    return replace(planned, plan=replace(planned.plan, candidates=candidates, refuses_drops=True))


def _judge(planned: PlannedRequest, candidate: PlannedCandidate) -> PlannedCandidate:
    if candidate.skip is not None:
        return candidate
    chat = apply_params(planned.chat, Call(candidate, 1, Timeouts()))
    to = without_describing(planned.receiver(candidate.index))
    prepared = prepare(chat, to, planned.words, stream=planned.stream)
    names = () if isinstance(prepared, CannotRead) else prepared.request.dropped_params
    if not names:
        return candidate
    detail = worded(WOULD_DROP, names=tuple(brief_names(names)))
    return replace(candidate, skip=SkipReason.WOULD_DROP, skip_detail=detail, skip_param=names[0])


def _cannot_read(planned: PlannedRequest, provider: str, model: str) -> str | None:
    """Why a model that takes files natively or not at all is passed by; None where it is not (policy `native_only`)."""
    index = next(
        at for at, each in enumerate(planned.plan.candidates) if (each.provider, each.model) == (provider, model)
    )
    if planned.plan.candidates[index].skip is not None:
        return None
    reader = planned.receiver(index).reader
    if ContentPolicy.NATIVE_ONLY not in reader.policies:
        return None
    adapted = adapt(planned.chat, reader, planned.words)
    return adapted.reason.sentence() if isinstance(adapted, CannotRead) else None
