"""The panel on an agent's page that polls for a new key's first call and shows its result."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_GET

from routing_admin.configuration.agents.queries import find_key
from routing_admin.console.agents.first_call.queries import (
    FirstCall,
    find_directive,
    find_first_call,
    list_nearest_names,
)
from routing_admin.console.base.page_responses import require_found
from routing_admin.console.requests.advice import advise
from routing_admin.console.requests.story import build_steps
from routing_admin.platform.server.rejected_calls import KeyShape
from routing_admin.request_log.search import LoggedRequest
from routing_admin.request_log.sentences import render_logged

if TYPE_CHECKING:
    from capabilities.models import AgentKey
    from routing_admin.models import RejectedCall

MAX_WAIT = timedelta(minutes=5)
"""Maximum time for which the panel polls."""
# htmx leaves the page unchanged if the response is 204 No Content.
NO_CONTENT = 204


@require_GET
def first_call(request: HttpRequest, public_id: str, agent_id: str) -> HttpResponse:
    """Render the panel, or return 204 if its content has not changed since the version `mark`.

    `since` is the time at which the panel began to poll.
    """
    key = require_found(find_key(agent_id, public_id))
    now = timezone.now()
    since = parse_time(request.GET.get("since", ""), now)
    first = find_first_call(key, since)
    is_paused = now - since > MAX_WAIT
    mark = panel_version(first, is_paused=is_paused)
    if request.GET.get("mark") == mark:
        return HttpResponse(status=NO_CONTENT)
    return render(
        request,
        "first_call/state.html",
        {**build_context(key, first), "since": since, "mark": mark, "is_paused": is_paused},
    )


def parse_time(text: str, now: datetime) -> datetime:
    """Parse Unix seconds. Return `now` if the text is not a number or the time is in the future."""
    # Twelve digits suffice for any real time and cannot overflow a timestamp.
    seconds = int(text[:12]) if text.isdecimal() else now.timestamp()
    return min(datetime.fromtimestamp(min(seconds, now.timestamp()), UTC), now)


def panel_version(first: FirstCall, *, is_paused: bool) -> str:
    """Return a short string that changes whenever the panel's content changes."""
    row = first.request.row.pk if first.request else ""
    newest_rejected = max((call.pk for call in (*first.own, *first.others)), default=0)
    return "-".join((row, str(newest_rejected), str(len(first.own) + len(first.others)), "p" if is_paused else "w"))


def build_context(key: AgentKey, first: FirstCall) -> dict[str, Any]:
    request = first.request
    return {
        "key": key,
        "call": request.row if request else None,
        "is_answered": first.is_answered,
        "refusal": explain_refusal(request) if request and not first.is_answered else None,
        "own": [describe_own(call) for call in first.own],
        "others": [describe_other(call) for call in first.others],
        "directive": find_directive(request.row) if request and first.is_answered else "",
    }


def explain_refusal(request: LoggedRequest) -> dict[str, Any]:
    row = request.row
    names = list_nearest_names(row.asked_model) if row.outcome == "model_not_found" else []
    return {"error": render_logged(row), "advice": advise(row, build_steps(request.attempts)), "names": names}


UNKNOWN_URL, KEY_MISSING, SCOPE_MISSING, KEY_IN_URL = "unknown_url", "key_missing", "scope_missing", "key_in_url"

OWN_CALL_SENTENCES: Mapping[str, str | Promise] = {
    UNKNOWN_URL: gettext_lazy(
        "A call with this key went to %(path)s, which does not exist here. The base URL is %(base)s."
    ),
    SCOPE_MISSING: gettext_lazy(
        "A call with this key went to %(path)s, for which the key lacks the scope. Issue a key that has it."
    ),
}
"""Maps error codes to sentences that explain why a call with this key was rejected."""
WRONG_SECRET = gettext_lazy(
    "A call used this key's id, but the rest of the key is wrong. It may have been cut off when copied, or it "
    "no longer works."
)

OTHER_CALL_SENTENCES: Mapping[str, str | Promise] = {
    UNKNOWN_URL: gettext_lazy("A call went to %(path)s, which does not exist here. The base URL is %(base)s."),
    KEY_MISSING: gettext_lazy("A call arrived without a key. Send it as “Authorization: Bearer ra_…”."),
    KEY_IN_URL: gettext_lazy("A call had its key in the URL. Send it as “Authorization: Bearer ra_…”."),
    SCOPE_MISSING: gettext_lazy("A call used another key (ra_%(key)s…), which lacks the scope for %(path)s."),
}
"""Maps error codes to sentences that explain why a call without this key was rejected."""
KEY_SHAPE_SENTENCES: Mapping[KeyShape, str | Promise] = {
    KeyShape.OURS: gettext_lazy("A call used another key (ra_%(key)s…), which is unknown, revoked or expired."),
    KeyShape.SCRIPTS: gettext_lazy("A call used a token for scripts (rat_…), which cannot call models."),
    KeyShape.VENDORS: gettext_lazy("A call used a vendor's key (sk-…). Keys here begin with ra_."),
}
"""Maps what a caller sent as its key, such as another vendor's key, to a sentence that explains the rejection."""
NOT_A_KEY = gettext_lazy("A call used something that is not a key of this installation. Keys begin with ra_.")


def describe_own(call: RejectedCall) -> str:
    return str(OWN_CALL_SENTENCES.get(call.code, WRONG_SECRET)) % call_facts(call)


def describe_other(call: RejectedCall) -> str:
    if call.code in OTHER_CALL_SENTENCES:
        return str(OTHER_CALL_SENTENCES[call.code]) % call_facts(call)
    shape = KeyShape(call.shape) if call.shape in set(KeyShape) else KeyShape.OTHER
    return str(KEY_SHAPE_SENTENCES.get(shape, NOT_A_KEY)) % call_facts(call)


def call_facts(call: RejectedCall) -> dict[str, str]:
    return {"path": call.path, "base": base_url(), "key": call.key}


def base_url() -> str:
    # OpenAI's clients expect the API version in the base URL. Anthropic's and Google's clients append it themselves.
    return f"{settings.PUBLIC_URL.rstrip('/')}/v1"
