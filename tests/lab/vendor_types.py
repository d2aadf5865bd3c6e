"""Check with a vendor's SDK types whether its SDK could have produced a request."""

from __future__ import annotations

import types
import typing
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from anthropic.types import message_create_params
from google.genai import types as gemini
from openai.types.chat import completion_create_params
from openai.types.responses import response_create_params
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.alias_generators import to_camel
from typing_extensions import is_typeddict

PLAIN: Mapping[Any, tuple[type, ...]] = {
    str: (str,),
    bool: (bool,),
    int: (int,),
    float: (int, float),
    type(None): (type(None),),
}


class GeminiRequest(BaseModel):
    """The payload of `generateContent`, for which the SDK has no single type."""

    model_config = ConfigDict(extra="forbid", alias_generator=to_camel)
    contents: list[gemini.Content] = Field(min_length=1)
    system_instruction: gemini.Content | None = None
    tools: list[gemini.Tool] | None = None
    tool_config: gemini.ToolConfig | None = None
    generation_config: gemini.GenerationConfig | None = None


TYPES: Mapping[str, Any] = {
    "openai": completion_create_params.CompletionCreateParams,
    "openai-responses": response_create_params.ResponseCreateParams,
    "anthropic": message_create_params.MessageCreateParams,
}


def literals_in(annotation: Any) -> set[str]:
    """Return the strings of all `Literal` types that the annotation contains."""
    arguments = typing.get_args(annotation)
    return {argument for argument in arguments if isinstance(argument, str)}.union(*map(literals_in, arguments))


def find_misfit(protocol: str, body: Any) -> str:
    """Return the path and the error of the first invalid value in the request body, or an empty string if it is
    valid.
    """
    if protocol != "gemini":
        return misfit(body, TYPES[protocol])
    try:
        GeminiRequest.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return ""


def misfit(value: Any, kind: Any, at: str = "") -> str:
    """Return the reason why the value does not have the type, or an empty string if it does."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin in (typing.Required, typing.NotRequired, typing.Annotated):
        return misfit(value, inner[0], at)
    if origin in (typing.Union, types.UnionType):
        return _best(misfit(value, member, at) for member in inner)
    if origin is typing.Literal:
        return "" if value in inner else f"{at}: {value!r} is none of {inner}"
    if is_typeddict(kind):
        return _misfit_of_fields(value, kind, at)
    if isinstance(origin, type) and issubclass(origin, dict | Mapping):
        if not isinstance(value, dict):
            return f"{at}: not an object"
        return next(filter(None, (misfit(item, inner[1], f"{at}.{name}") for name, item in value.items())), "")
    if isinstance(origin, type) and issubclass(origin, Iterable):
        if not isinstance(value, list):
            return f"{at}: not a list"
        return next(filter(None, (misfit(item, inner[0], f"{at}[{n}]") for n, item in enumerate(value))), "")
    allowed = PLAIN.get(kind)
    return "" if allowed is None or type(value) in allowed else f"{at}: {value!r} is not of type {kind.__name__}"


def _misfit_of_fields(value: Any, kind: Any, at: str) -> str:
    if not isinstance(value, dict):
        return f"{at}: not an object"
    hints = _hints(kind)
    if unknown := set(value) - set(hints):
        return f"{at}.{min(unknown)}: Extra inputs are not permitted"
    for name, hint in hints.items():
        if name in value and (mismatch := misfit(value[name], hint, f"{at}.{name}")):
            return mismatch
        if name not in value and typing.get_origin(hint) is typing.Required:
            return f"{at}.{name}: Field required"
    return ""


@cache
def _hints(kind: Any) -> Mapping[str, Any]:
    return typing.get_type_hints(kind, include_extras=True)


def _best(mismatches: Iterable[str]) -> str:
    """Return an empty string if any alternative of a union fits.

    Otherwise, return the mismatch at the deepest path, because it most likely belongs to the intended alternative.
    """
    messages = list(mismatches)
    return "" if not all(messages) else max(messages, key=lambda sentence: sentence.partition(":")[0].count("."))
