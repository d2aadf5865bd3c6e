"""Pass on a call to an operation, with the caller's model name replaced by the candidate model's name."""

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

# Only providers with this protocol receive calls to operations.
REQUIRED_PROTOCOL = "openai"


@dataclass(frozen=True, kw_only=True)
class PassthroughCall:
    """A caller's call to an operation. It implements `WireProtocol`.

    `answer_format` and `count` are the fields `response_format` and `n` of the caller's request. `ChatRequest.extra`
    contains all fields of the request, as a JSON object or as `FormFields`.
    """

    operation: Operation
    shape: BodyShape = BodyShape.JSON
    stream: bool = False
    answer_format: str = ""
    count: int = 1
    name: str = REQUIRED_PROTOCOL
    clock: Callable[[], float] = time.time

    def encode(self, chat: ChatRequest, target: Target, *, stream: bool) -> UpstreamRequest:
        url = sibling_url(target.endpoint, CALL, self.operation.path)
        headers = headers_for(target, "authorization", stream=stream)
        if self.operation.answer is not AnswerShape.JSON and not stream:
            headers["accept"] = "*/*"
        if self.shape is BodyShape.JSON:
            # All fields except the model are passed on unchanged, unless the provider's `extra_body` replaces them.
            return UpstreamRequest(url, headers, merge({**chat.extra, "model": target.model}, target.extra_body))
        boundary = secrets.token_hex(16)
        headers["content-type"] = f"multipart/form-data; boundary={boundary}"
        fields = {**chat.extra, "model": (target.model,), **_as_fields(target.extra_body)}
        return FormRequest(url, headers, fields, boundary=boundary)

    def decode(self, status: int, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
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
        # The caller requested a stream, but the provider sent a complete response.
        if self.stream and not isinstance(outcome, Failure):
            return replace(outcome, text=whole_as_events(self.operation, outcome))
        return outcome

    def decoder(self) -> StreamDecoder:
        sound_type = SOUND_TYPES.get(self.answer_format or "mp3", "audio/mpeg")
        reader = OperationReader(self.operation, sound_type, self.count)
        return EventStream(reader, lambda body: self.decode(200, {}, body))


def _as_fields(extra: Mapping[str, Any]) -> FormFields:
    # A form contains only strings, so write all other values as JSON.
    return {name: (value if isinstance(value, str) else json.dumps(value),) for name, value in extra.items()}
