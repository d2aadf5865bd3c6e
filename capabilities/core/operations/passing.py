"""An operation's call, read and written as a protocol does: the caller's fields with the candidate's model in them."""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from capabilities.core.message import ChatRequest
from capabilities.core.operations import replies
from capabilities.core.operations.replies import SOUND_TYPES, OperationReply
from capabilities.core.operations.stream import OperationReader, whole_as_events
from capabilities.core.operations.table import AnswerShape, BodyShape, FormFields, FormRequest, Operation
from capabilities.core.protocols.answer_fields import headers_for, merge
from capabilities.core.protocols.openai.requests import CALL
from capabilities.core.protocols.stream import EventStream
from capabilities.core.protocols.urls import sibling_url
from capabilities.core.wire import Answer, Failure, StreamDecoder, Target, UpstreamRequest

SPEAKS = "openai"
"""The protocol of the providers that operations pass through to."""


@dataclass(frozen=True, kw_only=True)
class Passing:
    """One caller's call of an operation, as a `WireProtocol`.

    `answer_format` is its `response_format`, `count` its `n`. What it says stands in `ChatRequest.extra`, a JSON object
    or `FormFields`.
    """

    operation: Operation
    shape: BodyShape = BodyShape.JSON
    stream: bool = False
    answer_format: str = ""
    count: int = 1
    name: str = SPEAKS
    clock: Callable[[], float] = time.time

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        """The call: all fields as they came but the model's, and the provider's own over them."""
        url = sibling_url(target.endpoint, CALL, self.operation.path)
        headers = headers_for(target, "authorization", stream=stream)
        if self.operation.answer is not AnswerShape.JSON and not stream:
            headers["accept"] = "*/*"
        if self.shape is BodyShape.JSON:
            return UpstreamRequest(url, headers, merge({**chat.extra, "model": target.model}, target.extra_body))
        boundary = secrets.token_hex(16)
        headers["content-type"] = f"multipart/form-data; boundary={boundary}"
        fields = {**chat.extra, "model": (target.model,), **_as_fields(target.extra_body)}
        return FormRequest(url, headers, fields, boundary=boundary)

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        """The outcome of a whole response."""
        outcome = replies.decode(
            OperationReply(
                operation=self.operation,
                answer_format=self.answer_format,
                status=status,
                headers=headers,
                body=body,
                now=self.clock(),
            )
        )
        if self.stream and not isinstance(outcome, Failure):
            return replace(outcome, text=whole_as_events(self.operation, outcome))
        return outcome

    def decoder(self) -> StreamDecoder:
        """A fresh decoder for one streamed response with status 200."""
        sound_type = SOUND_TYPES.get(self.answer_format or "mp3", "audio/mpeg")
        reader = OperationReader(self.operation, sound_type, self.count)
        return EventStream(reader, lambda body: self.decode(200, {}, body))


def _as_fields(extra: Mapping[str, Any]) -> FormFields:
    """A provider's own fields as a form has them; what is no text is written as JSON."""
    return {name: (value if isinstance(value, str) else json.dumps(value),) for name, value in extra.items()}
