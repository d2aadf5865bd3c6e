"""The labels that a call's body says: OpenAI's `user` and `metadata`, Anthropic's `user_id`, Gemini's `labels`.

They are a caller's words: bounded, kept as text, believed only where the key says nothing itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from capabilities.core.services.agents import NO_LABELS, LabelKind, Labels, clean_label
from routing_admin.gateway.fields import Object

SESSION = "_session_"
"""What stands in Claude Code's `user_id` before the part that changes with every session."""
PERSON = ("account_uuid", "device_id")
"""What names the person in its newer ids, which are JSON."""


def labels_of_call(key: Labels, body: Object) -> Labels:
    """The labels of a call: the key's, and what the body says of those that the key has not."""
    asked = read_labels(body)
    return key if asked is NO_LABELS else asked if key is NO_LABELS else key.over(asked)


def read_labels(body: Object) -> Labels:
    """What a body says; `NO_LABELS` itself for nothing."""
    user, metadata = body.get("safety_identifier") or body.get("user"), body.get("metadata") or body.get("labels")
    if user is None and metadata is None:
        return NO_LABELS
    said: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    found = Labels(
        clean_label(LabelKind.TEAM, said.get("team")),
        clean_label(LabelKind.PROJECT, said.get("project")),
        clean_label(LabelKind.USER, user or said.get("user") or _person(said.get("user_id"))),
    )
    return NO_LABELS if found == NO_LABELS else found


def _person(user_id: Any) -> Any:
    """Whom an id means without the session it was made for."""
    if not isinstance(user_id, str):
        return None
    if user_id.startswith("{") and len(user_id) < 2000:
        try:
            said = orjson.loads(user_id)
        except orjson.JSONDecodeError:
            return user_id
        return next((said[name] for name in PERSON if said.get(name)), user_id)
    return user_id.partition(SESSION)[0] or user_id
