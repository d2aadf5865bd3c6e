"""An operation's request: which model it names, which files it brings; all else is left to whoever answers."""

from __future__ import annotations

from typing import Any

from artifacts.core.detection.extensions import EXTENSIONS_OF_MIME
from capabilities.core.message import ChatRequest
from capabilities.core.operations.passing import Passing
from capabilities.core.operations.table import BodyShape, FormFile, Operation
from capabilities.core.worded import worded
from routing_admin.gateway.chat_api import ChatCall, read_wishes
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import Object
from routing_admin.gateway.media import Find, find_by_either_id
from routing_admin.gateway.passthrough.bodies import FormBody

OURS = frozenset({"model", "task_type"})
"""Fields that are read here and not passed on; the model's is written anew."""
FORMAT, COUNT = "response_format", "n"
"""Fields by which an answer is read; they go along, too."""


def parse(operation: Operation, body: Object, find: Find) -> ChatCall:
    """The call. Raises `BadRequestError` for one that names no model, or lacks the file that it is about."""
    wishes = read_wishes({name: _value(body, name) for name in OURS})
    fields = {name: value for name, value in body.items() if name not in OURS}
    shape = BodyShape.FORM if isinstance(body, FormBody) else BodyShape.JSON
    if shape is BodyShape.FORM:
        fields = _with_files(operation, fields, find)
    stream = operation.is_streamed(_value(body, operation.stream[0]))
    answer_format, count = str(_value(body, FORMAT) or ""), str(_value(body, COUNT) or "")
    results = int(count) if count.isdecimal() and len(count) < 4 else 1
    passing = Passing(operation, shape, stream, answer_format, results * _count_prompts(body))
    return ChatCall(ChatRequest((), extra=fields), wishes.model, wishes.task_type, stream=stream, passing=passing)


def _count_prompts(body: Object) -> int:
    """How many prompts a completion is asked for, each of which gets its own choices; a list of numbers is one."""
    prompt = body.get("prompt")
    return len(prompt) if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int) else 1


def needs_thread(operation: Operation, body: Object) -> bool:
    """Whether a file is named by its artifact, which is looked up."""
    values = (value for name in operation.files for value in body.get(name) or ())
    return isinstance(body, FormBody) and any(isinstance(value, str) for value in values)


def _value(body: Object, name: str) -> Any:
    """The value of a field; of a form's the last one."""
    value = body.get(name)
    return value[-1] if isinstance(value, tuple) else value


def _with_files(operation: Operation, fields: Object, find: Find) -> dict[str, Any]:
    """The fields, those for files with their files. Raises `BadRequestError`."""
    first = operation.files[0]
    if not any(fields.get(name) for name in (first, f"{first}[]")):
        message = worded("%(param)s is required: a file, or the id of one (GET /v1/files lists yours).", param=first)
        raise BadRequestError(message, first, "missing_required_parameter")
    return {
        name: tuple(_file(value, name, find) for value in values) if name in operation.files else values
        for name, values in fields.items()
    }


def _file(value: str | FormFile, param: str, find: Find) -> FormFile:
    """The file of a field, which may name an artifact instead."""
    if isinstance(value, FormFile):
        return value
    part = find_by_either_id(find, value.strip())
    if part is None or part.content is None or part.unreadable:
        message = worded("%(param)s is not a file, and this agent has no artifact with that id.", param=param)
        raise BadRequestError(message, param, "artifact_not_found")
    extension = EXTENSIONS_OF_MIME.get(part.mime_type, "").partition(" ")[0]
    return FormFile(part.filename or f"file.{extension}".rstrip("."), part.mime_type, part.content.blob())
