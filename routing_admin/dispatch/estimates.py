"""About how many tokens a planned request takes: what its agent's limits have to have left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capabilities.core.delivery.tokens import text_tokens
from routing_admin.core.limits.estimates import estimate_call
from routing_admin.dispatch.plan import PlannedRequest


def estimate_planned(planned: PlannedRequest) -> tuple[int, int]:
    """Those of the request, and the most that its answer may have; of what passes through those of its words."""
    if planned.plan.verbatim:
        return sum(text_tokens(each).tokens for each in _texts_of(planned.chat.extra)), 0
    most = planned.chat.max_tokens or planned.route.max_tokens
    return estimate_call(planned.chat, planned.plan.candidates[0].model, most)


def _texts_of(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting.extend(each.values())
        elif isinstance(each, list | tuple):
            waiting.extend(each)
