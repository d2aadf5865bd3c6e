"""Convert Django messages to toasts, with an Undo button if the change can be undone.

`messages.success(request, _("3 artifacts deleted"), extra_tags="undo:41")` becomes a toast whose Undo button posts to
the URL named `undo` for revision 41. A change that created no revision names the URL that reverts it:
`extra_tags="undo-url:/artifacts/restore/?at=…"`. With the additional tag `redo`, the button reverts an undo.
"""

from __future__ import annotations

from django.contrib.messages.storage.base import Message
from django.contrib.messages.storage.session import SessionStorage
from django.urls import NoReverseMatch, reverse

REDO, UNDO = "redo", "undo:"
UNDO_URL = "undo-url:"


class ToastStorage(SessionStorage):
    """Keeps messages in the session, and can return only those of the current request."""

    _queued_messages: list[Message]
    added_new: bool

    def take_new(self) -> list[Message]:
        """Remove and return the messages of this request. Messages of earlier requests are kept for the next page."""
        new, self._queued_messages, self.added_new = self._queued_messages, [], False
        return new


def undo_url(extra_tags: str) -> str:
    """Return the URL that the Undo button posts to, or an empty string if the message names none."""
    address = next((tag[len(UNDO_URL) :] for tag in extra_tags.split() if tag.startswith(UNDO_URL)), "")
    # A path that begins with two slashes would lead to another host.
    if address.startswith("/") and not address.startswith("//"):
        return address
    revision = next((tag[len(UNDO) :] for tag in extra_tags.split() if tag.startswith(UNDO)), "")
    if not revision.isdecimal():
        return ""
    try:
        return reverse("undo", args=[int(revision)])
    except NoReverseMatch:
        return ""


def build_toast(message: Message) -> dict[str, str]:
    tags = message.extra_tags or ""
    redo = {"redo": "1"} if REDO in tags.split() else {}
    return {"text": str(message), "level": message.level_tag, "undo": undo_url(tags), **redo}
