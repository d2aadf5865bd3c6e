"""Tools and the choice among them: functions, tools of free text, and functions in the old way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from capabilities.core.message import Tool
from capabilities.core.worded import worded
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.fields import (
    TRUE_OR_FALSE,
    Object,
    check_list,
    check_object,
    read_text,
    refusal_of_choice,
    refusal_of_missing,
    refusal_of_type,
    require_text,
)
from routing_admin.gateway.inner_fields import other_fields, read_mark

CHOICES = ("none", "auto", "required")
MODES = ("auto", "required")
FUNCTION, CUSTOM, ALLOWED = "function", "custom", "allowed_tools"
_OF_FUNCTION = frozenset({"name", "description", "parameters"})


@dataclass(frozen=True, slots=True)
class Choice:
    """The choice among tools: a word, one tool's name, or the names it is limited to."""

    word: str | None = None
    name: str | None = None
    allowed: tuple[str, ...] = ()


NO_CHOICE = Choice()


def read_tools(body: Object, inner: list[str]) -> tuple[Tool, ...]:
    """The tools; `inner` gets the places that not every protocol has. Raises `BadRequestError` with `param`."""
    if body.get("tools") is None:
        if body.get("functions") is None:
            return ()
        listed = check_list(body["functions"], "functions")
        return tuple(_read_function(each, f"functions[{at}]", inner) for at, each in enumerate(listed))
    return tuple(
        _read_tool(check_object(each, f"tools[{at}]"), f"tools[{at}]", inner)
        for at, each in enumerate(check_list(body["tools"], "tools"))
    )


def _read_tool(value: Object, at: str, inner: list[str]) -> Tool:
    kind = require_text(value, "type", at)
    if kind not in (FUNCTION, CUSTOM):
        message = worded("%(param)s must be function or custom. Other tools are not supported.", param=f"{at}.type")
        raise BadRequestError(message, f"{at}.type")
    inner += other_fields(value, {"type", kind}, at)
    place = f"{at}.{kind}"
    if value.get(kind) is None:
        raise refusal_of_missing(place)
    return (_read_function if kind == FUNCTION else _read_custom)(value[kind], place, inner, value, at)


def _read_function(value: Any, place: str, inner: list[str], tool: Object | None = None, at: str = "") -> Tool:
    function = check_object(value, place)
    strict = function.get("strict")
    if strict is not None and not isinstance(strict, bool):
        raise refusal_of_type(TRUE_OR_FALSE, f"{place}.strict")
    parameters = check_object(function.get("parameters") or {}, f"{place}.parameters")
    inner += other_fields(function, _OF_FUNCTION if strict else _OF_FUNCTION | {"strict"}, place)
    mark = read_mark(tool or {}, at) or read_mark(function, place)
    name = require_text(function, "name", place)
    return Tool(name, read_text(function, "description", place) or "", parameters, strict, cache=mark)


def _read_custom(value: Any, place: str, inner: list[str], tool: Object, at: str) -> Tool:
    custom = check_object(value, place)
    inner += [place, *other_fields(custom, {"name", "description", "format"}, place)]
    shape = check_object(custom.get("format") or {}, f"{place}.format")
    name = require_text(custom, "name", place)
    return Tool(name, read_text(custom, "description", place) or "", custom=shape)


def read_choice(body: Object) -> Choice:
    """The choice among tools, in the new way or the old one. Raises `BadRequestError` with `param`."""
    param = "tool_choice" if body.get("tool_choice") is not None else "function_call"
    value = body.get(param)
    if value is None:
        return NO_CHOICE
    if isinstance(value, str):
        if value not in CHOICES:
            message = worded("tool_choice must be one of %(choices)s, or name a function.", choices=CHOICES)
            raise BadRequestError(message, param)
        return Choice(value)
    choice = check_object(value, param)
    if param == "function_call":
        return Choice(name=require_text(choice, "name", param))
    if choice.get("type") == ALLOWED:
        return _read_allowed(choice)
    return Choice(name=_read_name(choice, param))


def _read_name(value: Object, at: str) -> str:
    kind = CUSTOM if value.get("type") == CUSTOM else FUNCTION
    return require_text(check_object(value.get(kind), f"{at}.{kind}"), "name", f"{at}.{kind}")


def _read_allowed(choice: Object) -> Choice:
    """The tools that are allowed, which may be named flat, as Responses does."""
    place = f"tool_choice.{ALLOWED}"
    allowed = check_object(choice.get(ALLOWED) or choice, place)
    mode = require_text(allowed, "mode", place)
    if mode not in MODES:
        raise refusal_of_choice(MODES, f"{place}.mode")
    named = check_list(allowed.get("tools"), f"{place}.tools")
    return Choice(mode, None, tuple(_read_name(check_object(each, place), f"{place}.tools") for each in named))
