"""A model that calls the tools a user names, one after the other, and then repeats the last tool's result.

If a tool is required, as for typed output, it is called with what the user's message contains.
"""

from __future__ import annotations

import re

from tests.lab.capable_model import Schema, example
from tests.lab.received_requests import ReceivedRequest
from tests.lab.shapes import ReplyText

NAME_OF_TOOL = re.compile(r"\b[a-z]+(?:_[a-z]+)+\b")
REFERENCE = re.compile(r"artifact:[\w-]+")


def next_reply(heard: ReceivedRequest) -> ReplyText | None:
    """Return a call of the next tool the user named, or else the last result; None if no tool was named."""
    files = "".join(f" [{media.mime_type}, {len(media.data)} bytes]" for media in heard.media)
    if heard.tool_choice in heard.parameters:
        forced = str(heard.tool_choice)
        typed = dict.fromkeys(heard.parameters[forced]["required"], f"The file says: {heard.question}{files}")
        return ReplyText("", tool=(forced, typed), finish="tool_calls")
    wanted = _named_tools(heard)
    called = [name for name, _ in heard.calls]
    for tool in wanted:
        if tool not in called:
            return ReplyText("", tool=(tool, _arguments(heard, tool)), finish="tool_calls", call=len(called) + 1)
    if not wanted or not heard.results:
        return None
    return ReplyText(f"The tool said: {heard.results[-1][1]}{files}")


def _named_tools(heard: ReceivedRequest) -> list[str]:
    """Return the tools named in the user's text, in order; some clients add a prefix to the names."""
    words = (word for role, text in heard.turns if role == "user" for word in NAME_OF_TOOL.findall(text))
    offered = (next((each for each in heard.tools if each == word or each.endswith(f"_{word}")), "") for word in words)
    return [tool for tool in dict.fromkeys(offered) if tool]


def _arguments(heard: ReceivedRequest, tool: str) -> dict[str, object]:
    """Fill the schema with null where allowed; a reference is the first one in the last result."""
    schema = heard.parameters[tool]
    properties = {name: {"const": None} if _is_nullable(kind) else kind for name, kind in schema["properties"].items()}
    arguments = dict(example({**schema, "properties": properties}, heard.question))
    found = REFERENCE.search(heard.results[-1][1]) if heard.results else None
    return arguments | ({"ref": found[0]} if found and "ref" in arguments else {})


def _is_nullable(schema: Schema) -> bool:
    return {"type": "null"} in schema.get("anyOf", ())
