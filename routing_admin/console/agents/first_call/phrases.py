"""Sentences that say why a call was rejected and what to do about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.conf import settings
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from routing_admin.platform.server.rejected_calls import KeyShape

if TYPE_CHECKING:
    from routing_admin.models import RejectedCall

UNKNOWN_URL, KEY_MISSING, SCOPE_MISSING, KEY_IN_URL = "unknown_url", "key_missing", "scope_missing", "key_in_url"

OWN: Mapping[str, str | Promise] = {
    UNKNOWN_URL: gettext_lazy(
        "A call with this key went to %(path)s, which does not exist here. The base URL is %(base)s."
    ),
    SCOPE_MISSING: gettext_lazy(
        "A call with this key went to %(path)s, for which the key lacks the scope. Issue a key that has it."
    ),
}
"""Sentences for a call that named the key, by error code."""
WRONG_SECRET = gettext_lazy(
    "A call used this key's id, but the rest of the key is wrong. It may have been cut off when copied, or it "
    "no longer works."
)

OTHERS: Mapping[str, str | Promise] = {
    UNKNOWN_URL: gettext_lazy("A call went to %(path)s, which does not exist here. The base URL is %(base)s."),
    KEY_MISSING: gettext_lazy("A call arrived without a key. Send it as “Authorization: Bearer ra_…”."),
    KEY_IN_URL: gettext_lazy("A call had its key in the URL. Send it as “Authorization: Bearer ra_…”."),
    SCOPE_MISSING: gettext_lazy("A call used another key (ra_%(key)s…), which lacks the scope for %(path)s."),
}
"""Sentences for a call whose sender is unknown, by error code."""
SHAPES: Mapping[KeyShape, str | Promise] = {
    KeyShape.OURS: gettext_lazy("A call used another key (ra_%(key)s…), which is unknown, revoked or expired."),
    KeyShape.SCRIPTS: gettext_lazy("A call used a token for scripts (rat_…), which cannot call models."),
    KeyShape.VENDORS: gettext_lazy("A call used a vendor's key (sk-…). Keys here begin with ra_."),
}
"""Sentences for a call with an unknown key, by what was sent as the key."""
NO_KEY_OF_OURS = gettext_lazy("A call used something that is not a key of this installation. Keys begin with ra_.")


def describe_own(call: RejectedCall) -> str:
    return str(OWN.get(call.code, WRONG_SECRET)) % facts_of(call)


def describe_other(call: RejectedCall) -> str:
    if call.code in OTHERS:
        return str(OTHERS[call.code]) % facts_of(call)
    shape = KeyShape(call.shape) if call.shape in set(KeyShape) else KeyShape.OTHER
    return str(SHAPES.get(shape, NO_KEY_OF_OURS)) % facts_of(call)


def facts_of(call: RejectedCall) -> dict[str, str]:
    return {"path": call.path, "base": base_url(), "key": call.key}


def base_url() -> str:
    # OpenAI's clients expect the version in the base URL. Anthropic's and Google's add it themselves.
    return f"{settings.PUBLIC_URL.rstrip('/')}/v1"
