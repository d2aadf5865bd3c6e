"""Pass on the events of an operation's stream, and collect the files in them."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from capabilities.core.json_codec import read_repaired_json
from capabilities.core.operations.replies import PassthroughAnswer, answer_text, parse_usage
from capabilities.core.operations.table import DONE, Operation
from capabilities.core.protocols.answer_fields import non_empty_text
from capabilities.core.protocols.errors import parse_inner_failure
from capabilities.core.protocols.media import parse_base64_media
from capabilities.core.protocols.openai.replies import is_error
from capabilities.core.protocols.sse import SseEvent
from capabilities.core.protocols.stream import json_event
from capabilities.core.wire import Delta, Failure, Finish, Media, Supplement, Usage

SOUND_DELTA = "speech.audio.delta"


class OperationReader:
    """Reads stream events and passes each of them on unchanged.

    The stream ends after `expected` final events, one for each choice or image that the caller requested.
    """

    def __init__(self, operation: Operation, sound_type: str, expected: int = 1) -> None:
        self.finish: Finish | None = None
        self.finished = False
        self.usage = Usage()
        self._operation, self._sound_type, self._expected = operation, sound_type, max(expected, 1)
        self._ended = 0

    def read(self, event: SseEvent) -> list[Delta | Supplement | Failure]:
        if event.data.strip() == DONE:
            self.finished = True
            if self._ended:  # The stream has ended with fewer choices than the caller requested.
                self._expected = self._ended
                self._note_end({})
            return [Delta(format_frame(event))]
        value = json_event(event)
        kind = non_empty_text(value.get("type")) or event.event
        if kind == "error" or is_error(value):
            return [parse_inner_failure(value)]
        media = tuple(self._media(kind, value))
        self._ended += self._count_ends(kind, value)
        self._note_end(value)
        events: list[Delta | Supplement | Failure] = [Delta(format_frame(event))]
        return [*events, Supplement(media)] if media else events

    def _count_ends(self, kind: str, value: Mapping[str, Any]) -> int:
        if self._operation.last_event != DONE:
            return int(kind == self._operation.last_event)
        choices = value.get("choices")
        choice_list = choices if isinstance(choices, list) else []
        return sum(1 for choice in choice_list if isinstance(choice, dict) and choice.get("finish_reason"))

    def _note_end(self, value: Mapping[str, Any]) -> None:
        # The usage of a completion arrives only after its choices have ended.
        if value.get("usage"):
            self.usage = parse_usage(value)
        if self._ended >= self._expected:
            model = non_empty_text(value.get("model")) or (self.finish.model if self.finish else None)
            self.finish = Finish("", self.usage, model, explains_silence=True)

    def _media(self, kind: str, value: Mapping[str, Any]) -> Iterator[Media]:
        if kind == self._operation.last_event:
            media = parse_base64_media(
                f"image/{non_empty_text(value.get('output_format')) or 'png'}", value.get("b64_json")
            )
        else:
            # All image events but the last contain only partial images, which are not collected.
            media = parse_base64_media(self._sound_type, value.get("audio")) if kind == SOUND_DELTA else None
        if media is not None:
            yield media


def format_frame(event: SseEvent) -> str:
    name = f"event: {event.event}\n" if event.event else ""
    return name + "".join(f"data: {data_line}\n" for data_line in event.data.split("\n")) + "\n"


def rename_model(frames: str, model: str) -> str:
    """Return the stream frames, with the caller's name for the model instead of the provider's."""
    if '"model"' not in frames:
        return frames
    return "".join(_rename(frame, model) + "\n\n" for frame in frames.split("\n\n") if frame)


def _rename(frame: str, model: str) -> str:
    value = _parse_frame(frame) if '"model"' in frame else {}
    if not isinstance(value.get("model"), str) or value["model"] == model:
        return frame
    head = frame.partition("data: ")[0]
    return f"{head}data: {json.dumps({**value, 'model': model}, ensure_ascii=False)}"


def join_frames(deltas: Iterable[str]) -> str:
    frames = (frame for delta in deltas if '"choices"' in delta for frame in delta.split("\n\n"))
    return "".join(answer_text(_parse_frame(frame)) for frame in frames if '"choices"' in frame)


def _parse_frame(frame: str) -> dict[str, Any]:
    value: dict[str, Any] = read_repaired_json(frame.partition("data: ")[2].replace("\ndata: ", "\n"))
    return value


def whole_as_events(operation: Operation, answer: PassthroughAnswer) -> str:
    """Return a complete response as stream events.

    This is for callers that request a stream although the provider does not stream this operation.
    """
    if operation.last_event == DONE:
        whole = json.dumps(answer.value, ensure_ascii=False)
        return format_frame(SseEvent(whole)) + format_frame(SseEvent(DONE))
    if answer.value is None and not answer.text:
        sound = {"type": SOUND_DELTA, "audio": base64.b64encode(answer.body).decode()}
        return _write(sound) + _write({"type": operation.last_event})
    value = dict(answer.value or {"text": answer.text})
    data = value.pop("data", None)
    images = [image for image in data if isinstance(image, dict)] if isinstance(data, list) else [{}]
    return "".join(_write({"type": operation.last_event, **value, **image}) for image in images)


def _write(value: Mapping[str, Any]) -> str:
    return format_frame(SseEvent(json.dumps(value, ensure_ascii=False), str(value["type"])))
