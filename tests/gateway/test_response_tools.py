"""Tools and items of the Responses API other than functions.

They are namespaces, the shell, and tools that only OpenAI understands.
"""

from __future__ import annotations

import json
from typing import get_args, get_type_hints

import pytest
from openai.types.responses import ResponseInputItemParam
from openai.types.responses.response_create_params import ResponseCreateParamsBase

from capabilities.core.message import Role, ToolCall
from capabilities.core.wire import Answer, Delta, Finish, ToolCallDelta
from routing_admin.gateway.chat_api import ChatCall
from routing_admin.gateway.errors import BadRequestError
from routing_admin.gateway.responses.events import ResponseEvents
from routing_admin.gateway.responses.parsing import PARSED_FIELDS, VENDORS_OWN, parse
from routing_admin.gateway.responses.rendering import ResponseHead, response_json
from routing_admin.gateway.responses.tools import join_name
from tests.lab.vendor_types import literals_in

ORIGIN = "0123456789ab"
MESSAGE = {"role": "user", "content": "x"}
CALLED = {"call_id": "c1", "name": "add", "output": "42"}
ENOUGH = {
    "message": MESSAGE,
    "additional_tools": {"role": "developer", "tools": []},
    "reasoning": {"summary": []},
    "local_shell_call_output": {"id": "c1", "output": "42"},
    **dict.fromkeys(("function_call", "function_call_output", "local_shell_call"), CALLED),
    **dict.fromkeys(("custom_tool_call", "custom_tool_call_output"), CALLED),
}
"""The required fields of each item type that is read."""
TOOL = {"type": "function", "name": "add", "parameters": {"type": "object"}}


def parse_call(*items: object, **more: object) -> ChatCall:
    return parse({"model": "m", "input": list(items), **more}, lambda _: None)


def read_events(stream: bytes) -> list[dict[str, object]]:
    return [json.loads(block.split("\ndata: ")[1]) for block in stream.decode().strip().split("\n\n")]


NAMESPACE = {
    "type": "namespace",
    "name": "files",
    "description": "Files of the project.",
    "tools": [{"type": "function", "name": "find", "parameters": {"type": "object"}}],
}


def test_namespace_tools_are_offered_under_joined_names():
    """Codex groups the tools of other servers in namespaces. The model is offered each tool under a joined name.

    The client receives the tool's own name in complete responses, in streams and in the next turn.
    """
    call = parse_call({"type": "additional_tools", "tools": [NAMESPACE]}, MESSAGE, tools=[TOOL])
    assert [tool.name for tool in call.chat.tools] == ["add", "files__find"]
    assert call.chat.inner == ("input[0].tools[0].description",)
    (item,) = response_json(Answer(tool_calls=(ToolCall("c1", "files__find", "{}"),)), call, "m", ORIGIN)["output"]
    assert (item["namespace"], item["name"]) == ("files", "find")
    events = ResponseEvents(ResponseHead("m", call.chat), ORIGIN, call.namespaces)
    stream = events.write_delta(Delta(tool_calls=(ToolCallDelta(0, "c1", "files__find", "{}"),)))
    streamed = read_events(stream + events.write_finish(Finish("tool_calls")))
    assert [(event["item"]["namespace"], event["item"]["name"]) for event in streamed if "item" in event] == [
        ("files", "find"),
        ("files", "find"),
    ]
    assert next(event["name"] for event in streamed if event["type"].endswith("arguments.done")) == "find"
    assert parse_call(item).chat.messages[0].tool_calls[0].name == "files__find"


def test_long_joined_names_are_shortened_to_unique_and_stable_names():
    """A joined name is cut to the 64 characters that every vendor accepts."""
    first, second = (join_name("n" * 60, name) for name in ("find", "list"))
    assert len(first) == len(second) == 64
    assert first != second
    assert first == join_name("n" * 60, "find")


def test_calls_of_openais_local_shell_become_ordinary_tool_calls():
    action = {"type": "exec", "command": ["ls"]}
    called, answered = parse_call(
        {"type": "local_shell_call", "call_id": "c1", "action": action},
        {"type": "local_shell_call_output", "id": "c1", "output": "notes.txt"},
    ).chat.messages
    assert (called.tool_calls[0].name, json.loads(called.tool_calls[0].arguments)) == ("local_shell", action)
    assert (answered.role, answered.tool_call_id, answered.text) == (Role.TOOL, "c1", "notes.txt")


KINDS = {kind for param in get_args(ResponseInputItemParam) for kind in literals_in(get_type_hints(param).get("type"))}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_item_type_of_openais_client_is_read_or_listed_or_refused(kind):
    """An item that is not read is listed as dropped, with its path.

    If a new version of the client adds a type, this test fails.
    """
    item = {"type": kind, **ENOUGH.get(kind, {})}
    if kind == "item_reference":
        with pytest.raises(BadRequestError):
            # A reference is replaced by its item before the request is parsed.
            parse_call(item)
    elif kind == "compaction_trigger":
        with pytest.raises(BadRequestError) as refused:
            parse_call(item)
        assert refused.value.code == "unsupported_value"
    else:
        chat = parse_call(item).chat
        named = [entry.path for message in chat.messages for entry in message.vendor]
        assert (named, chat.inner) == ([] if kind in ENOUGH else ["input[0]"], ())


THROUGH = {
    *("metadata", "moderation", "safety_identifier", "service_tier", "top_logprobs", "user"),
    *("prompt_cache_key", "prompt_cache_options", "prompt_cache_retention"),
}
"""Parameters that chat completions also have, and that are therefore passed on."""


def test_every_parameter_of_openais_client_is_read_or_passed_on_or_listed():
    """`client_metadata`, a parameter that only Codex sends, is accepted as well."""
    assert set(get_type_hints(ResponseCreateParamsBase)) - PARSED_FIELDS == THROUGH | VENDORS_OWN.keys() - {
        "client_metadata"
    }
    chat = parse_call(MESSAGE, **dict.fromkeys(sorted(VENDORS_OWN), "x")).chat
    assert [item.path for item in chat.vendor] == sorted(VENDORS_OWN)
    assert (chat.inner, chat.extra) == ((), {})


@pytest.mark.parametrize("is_first", [True, False])
def test_allowed_tools_belong_to_openai_if_any_of_them_does(is_first: bool) -> None:
    tools = [{"type": "function", "name": "add"}, {"type": "web_search_preview"}]
    choice = {"type": "allowed_tools", "mode": "auto", "tools": tools[::-1] if is_first else tools}
    chat = parse_call(MESSAGE, tools=[TOOL], tool_choice=choice).chat
    assert [(item.name, item.path) for item in chat.vendor] == [("web_search", "tool_choice")]
    assert (chat.tool_choice, chat.allowed_tools) == ("auto", ("add",))
