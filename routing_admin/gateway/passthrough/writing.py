"""An operation's answer on its way to the caller: as it came, whole or event by event."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import orjson

from artifacts.core.artifact import REF_PREFIX
from capabilities.core.operations.replies import PassedAnswer
from capabilities.core.operations.stream import rename_model
from capabilities.core.wire import Annotation, Answer, Delta, Finish, Media
from routing_admin.dispatch.reasoning_cache import AnsweredTurn
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import GatewayError, body_of
from routing_admin.gateway.http import HttpReply

ARTIFACTS = "x-routing-artifacts"
"""The header that names what was made and is kept."""


def write_answer(answer: Answer, _call: ChatCall, name: str, _origin: str) -> HttpReply:
    """A whole answer; what it made stands in it as it came, and in a header as artifacts."""
    passed = cast(PassedAnswer, answer)
    reply = HttpReply(200, {"Content-Type": passed.content_type}, passed.body_for(name))
    made = [REF_PREFIX + each.artifact_id for each in passed.media if each.artifact_id]
    if made:
        reply.headers[ARTIFACTS] = ", ".join(made)
    return reply


class PassedEvents:
    """Writes events as they came but for their model's name; a piece of the answer is one, so all else is said."""

    def __init__(self, name: str, origin: str) -> None:
        self._name, self.origin = name, origin
        self.turn = AnsweredTurn()

    def write_delta(self, delta: Delta) -> bytes:
        """An event."""
        return rename_model(delta.text, self._name).encode()

    def write_media(self, media: Sequence[Media]) -> bytes:
        """Nothing: it stood in an event."""
        return b""

    def write_sound(self, sound: Media, reference: bool = False) -> bytes:
        """Nothing: it stood in an event."""
        return b""

    def write_annotations(self, annotations: Sequence[Annotation]) -> bytes:
        """Nothing: there are none."""
        return b""

    def write_finish(self, finish: Finish) -> bytes:
        """Nothing: the last event was one of those passed on."""
        return b""

    def write_error(self, error: GatewayError, request_id: str) -> bytes:
        """That the answer broke off."""
        return b"event: error\ndata: " + orjson.dumps(body_of(error, request_id)) + b"\n\n"
