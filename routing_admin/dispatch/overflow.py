"""Passing by the candidates that a request is too long for, where its route says so and another candidate takes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from capabilities.core.delivery.adaptation import Adapted, TextStyle, adapt
from capabilities.core.delivery.model_description import without_describer
from capabilities.core.delivery.receiver import Receiver
from capabilities.core.message import ChatRequest
from capabilities.core.worded import Worded
from routing_admin.core.fallback.chain import Call, Plan, PlannedCandidate, SkipReason, Timeouts
from routing_admin.core.planning.params import apply_params


def pass_overflowed_by(plan: Plan, chat: ChatRequest, words: TextStyle, receiver: Callable[[int], Receiver]) -> Plan:
    """The plan without the candidates that the request does not fit, each of which says why.

    An estimate refuses nobody: where it fits none, the plan stays as it is, and the models judge for themselves.
    """
    called = [each for each in plan.candidates if each.skip is None]
    obstacles = {each.index: _find_obstacle(each, chat, words, receiver(each.index)) for each in called}
    if all(obstacles.values()):
        return plan
    candidates = tuple(_judge(each, obstacles.get(each.index)) for each in plan.candidates)
    return replace(plan, candidates=candidates)


def _find_obstacle(candidate: PlannedCandidate, chat: ChatRequest, words: TextStyle, to: Receiver) -> Worded | None:
    adapted = adapt(apply_params(chat, Call(candidate, 1, Timeouts())), without_describer(to.reader), words)
    return to.tokens.obstacle(adapted, to.target.model) if isinstance(adapted, Adapted) else None


def _judge(candidate: PlannedCandidate, obstacle: Worded | None) -> PlannedCandidate:
    return candidate if obstacle is None else replace(candidate, skip=SkipReason.TOO_LONG, skip_detail=obstacle)
