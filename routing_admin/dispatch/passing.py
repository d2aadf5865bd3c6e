"""A planned request as one that passes through: who of its chain may be asked, and why the others are passed by."""

from __future__ import annotations

import json
from dataclasses import replace

from artifacts.core.detection.kinds import kind_of
from capabilities.core.message import ChatRequest, Message, NativePart, Role, TextPart
from capabilities.core.operations.forms import FormFile
from capabilities.core.operations.passing import SPEAKS, Passing
from capabilities.core.worded import worded
from routing_admin.core.fallback.chain import PlannedCandidate, SkipReason
from routing_admin.dispatch.plan import PlannedRequest

OTHER_PROTOCOL = worded("%(call)s only works with providers that speak openai; %(provider)s speaks %(protocol)s.")
OTHER_MODEL = worded("%(call)s must stay on %(model)s, at any provider: results of different models cannot be mixed.")
"""Why a candidate is passed by, as templates."""


def pass_through(planned: PlannedRequest, passing: Passing) -> PlannedRequest:
    """The request, which goes as its caller wrote it to candidates that have the call.

    Where only the same model may answer, it is that of the first candidate that has the call, be it callable now or
    not: so the same route always gives what the same model made. Nobody is told a language.
    """
    having = (each for each in planned.plan.candidates if each.protocol == SPEAKS)
    first = next(having, None)
    only = first.model if first is not None and passing.operation.same_model else None
    candidates = tuple(_judge(each, passing, only) for each in planned.plan.candidates)
    plan = replace(planned.plan, candidates=candidates, verbatim=True, language="")
    chat = _in_words(planned.chat) if planned.state.record_bodies else planned.chat
    return replace(planned, plan=plan, chat=chat)


def _in_words(chat: ChatRequest) -> ChatRequest:
    """The request with its fields as a message, and its files as facts beside them: what the log may record."""
    values = [(name, value if isinstance(value, tuple) else (value,)) for name, value in chat.extra.items()]
    texts = {name: kept for name, each in values if (kept := [one for one in each if not isinstance(one, FormFile)])}
    files = (one for _, each in values for one in each if isinstance(one, FormFile))
    plain = {name: kept[0] if len(kept) == 1 else kept for name, kept in texts.items()}
    facts = (NativePart(kind_of(one.mime_type), one.mime_type, filename=one.filename) for one in files)
    return replace(chat, messages=(Message(Role.USER, (TextPart(json.dumps(plain, ensure_ascii=False)), *facts)),))


def _judge(candidate: PlannedCandidate, passing: Passing, only: str | None) -> PlannedCandidate:
    """The candidate, passed by where it lacks the call, or is another model than the only one."""
    call = f"/v1{passing.operation.path}"
    if candidate.skip is SkipReason.MISSING:
        return candidate
    if candidate.protocol != SPEAKS:
        facts = {"call": call, "provider": candidate.provider, "protocol": candidate.protocol}
        return replace(
            candidate, skip=SkipReason.OTHER_PROTOCOL, skip_detail=worded(OTHER_PROTOCOL, **facts), skip_param="model"
        )
    if only is not None and candidate.model != only:
        detail = worded(OTHER_MODEL, call=call, model=only)
        return replace(candidate, skip=SkipReason.OTHER_MODEL, skip_detail=detail, skip_param="model")
    return candidate
