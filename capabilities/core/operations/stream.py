"""What an operation answers event by event: each goes on as it came, and what it makes is picked out beside."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from typing import Any

from capabilities.core.operations.replies import PassedAnswer
from capabilities.core.operations.table import Operation
from capabilities.core.operations.usage import usage_of
from capabilities.core.protocols.answer_media import media_of_base64
from capabilities.core.protocols.errors import failure_inside
from capabilities.core.protocols.fields import filled
from capabilities.core.protocols.openai.replies import is_error
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import json_event
from capabilities.core.wire import Delta, Failure, Finish, Media, Supplement, Usage

SOUND_DELTA = "speech.audio.delta"


class OperationReader:
    """Reads events; a piece of the answer is a whole event as it is written. `expected` last events end the stream."""

    def __init__(self, operation: Operation, sound_type: str, expected: int = 1) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self._operation, self._sound_type, self._expected = operation, sound_type, expected

    @property
    def usage(self) -> Usage:
        """Nothing: the count comes with the end."""
        return Usage()

    def read(self, event: SseEvent) -> list[Delta | Supplement | Failure]:
        """The event, and the file in it. Raises `MalformedEventError`."""
        if event.data.strip() == "[DONE]":
            self.finished = True
            return [Delta(frame_of(event))]
        value = json_event(event)
        kind = filled(value.get("type")) or event.event
        if kind == "error" or is_error(value):
            return [failure_inside(value)]
        media = tuple(self._media(kind, value))
        if kind == self._operation.last_event:
            self._expected -= 1
            if self._expected <= 0:
                self.finish = Finish("", usage_of(value), filled(value.get("model")), explains_silence=True)
        said: list[Delta | Supplement | Failure] = [Delta(frame_of(event))]
        return [*said, Supplement(media)] if media else said

    def _media(self, kind: str, value: Mapping[str, Any]) -> Iterator[Media]:
        """The image of a last event, or a piece of a sound; what is sketched on the way is nothing made."""
        if kind == self._operation.last_event:
            found = media_of_base64(f"image/{filled(value.get('output_format')) or 'png'}", value.get("b64_json"))
        else:
            found = media_of_base64(self._sound_type, value.get("audio")) if kind == SOUND_DELTA else None
        if found is not None:
            yield found


def frame_of(event: SseEvent) -> str:
    """The event as it is written."""
    name = f"event: {event.event}\n" if event.event else ""
    return name + "".join(f"data: {line}\n" for line in event.data.split("\n")) + "\n"


def whole_as_events(operation: Operation, answer: PassedAnswer) -> str:
    """A whole answer of a provider that does not stream, as the events that were asked for."""
    if answer.value is None and not answer.text:
        sound = {"type": SOUND_DELTA, "audio": base64.b64encode(answer.body).decode()}
        return _write(sound) + _write({"type": operation.last_event})
    value = dict(answer.value or {"text": answer.text})
    listed = value.pop("data", None)
    images = [each for each in listed if isinstance(each, dict)] if isinstance(listed, list) else [{}]
    return "".join(_write({"type": operation.last_event, **value, **each}) for each in images)


def _write(value: Mapping[str, Any]) -> str:
    return frame_of(SseEvent(json.dumps(value, ensure_ascii=False), str(value["type"])))
