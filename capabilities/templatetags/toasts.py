"""A message as a toast, with Undo where a revision was made.

`messages.success(request, _("3 artifacts deleted"), extra_tags="undo:41")` becomes a toast whose Undo button
posts to the URL named `undo` for revision 41.
"""

from __future__ import annotations

from django.contrib.messages.storage.base import Message
from django.urls import NoReverseMatch, reverse

UNDO = "undo:"


def undo_url(extra_tags: str) -> str:
    """Where Undo posts to, or the empty string when the message has none."""
    revision = next((tag[len(UNDO) :] for tag in extra_tags.split() if tag.startswith(UNDO)), "")
    if not revision.isdecimal():
        return ""
    try:
        return reverse("undo", args=[int(revision)])
    except NoReverseMatch:
        return ""


def toast_of(message: Message) -> dict[str, str]:
    """The message as the browser's script takes it: text, level and, when there is something to undo, the URL."""
    return {"text": str(message), "level": message.level_tag, "undo": undo_url(message.extra_tags or "")}
