"""A simulated model that calls the tools named by the user one after another, and then repeats the last tool result.

If the request forces a tool, as for typed output, the model calls this tool with the text of the user's message.
"""

from __future__ import annotations

import re

from tests.lab.capable_model import Schema, example
from tests.lab.received_requests import ReceivedRequest
from tests.lab.shapes import ReplyText

NAME_OF_TOOL = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
REFERENCE = re.compile(r"artifact:[\w-]+")


def next_reply(request: ReceivedRequest) -> ReplyText | None:
    """Return a call of the next tool that the user named, or the last result if all were called.

    Return None if the user named no tool.
    """
    files = "".join(f" [{media.mime_type}, {len(media.data)} bytes]" for media in request.media)
    if request.tool_choice in request.parameters:
        required = str(request.tool_choice)
        typed = dict.fromkeys(request.parameters[required]["required"], f"The file says: {request.question}{files}")
        return ReplyText("", tool=(required, typed), finish="tool_calls")
    named = _named_tools(request)
    called = [name for name, _ in request.calls]
    for tool in named:
        if tool not in called:
            return ReplyText("", tool=(tool, _arguments(request, tool)), finish="tool_calls", call=len(called) + 1)
    if not named or not request.results:
        return None
    return ReplyText(f"The tool said: {request.results[-1][1]}{files}")


def _named_tools(request: ReceivedRequest) -> list[str]:
    """Return the offered tools that the user's text names, in order. Some clients add a prefix to tool names."""
    words = (word for role, text in request.turns if role == "user" for word in NAME_OF_TOOL.findall(text))
    offered = (
        next((tool for tool in request.tools if tool == word or tool.endswith(f"_{word}")), "") for word in words
    )
    return [tool for tool in dict.fromkeys(offered) if tool]


def _arguments(request: ReceivedRequest, tool: str) -> dict[str, object]:
    """Return arguments for the tool. Nullable ones are null, and `ref` is the first artifact reference in the last
    result.
    """
    schema = request.parameters[tool]
    properties = {
        name: {"const": None} if _is_nullable(subschema) else subschema
        for name, subschema in schema["properties"].items()
    }
    arguments = dict(example({**schema, "properties": properties}, request.question))
    reference = REFERENCE.search(request.results[-1][1]) if request.results else None
    return arguments | ({"ref": reference[0]} if reference and "ref" in arguments else {})


def _is_nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())
