"""The Messages API's content blocks other than text, files and calls.

They are search results, and blocks that only Anthropic understands.
"""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest
from anthropic.types.beta import BetaContentBlockParam
from anthropic.types.beta.message_create_params import MessageCreateParamsBase

from capabilities.core.message import Message
from capabilities.core.protocols.vendor_tools import BETA_HEADER
from routing_admin.gateway.messages.parsing import BETAS, PARSED_FIELDS, VENDORS_OWN, parse
from tests.lab.vendor_types import literals_in

PARAMS = [param for param in get_args(BetaContentBlockParam) if param.__name__.endswith("Param")]
TEXT = {"type": "text", "text": "x"}
IMAGE = {"type": "url", "url": "https://example.org/a.png"}
ENOUGH = {
    "text": {"text": "x"},
    "image": {"source": IMAGE},
    "document": {"source": {"type": "text", "media_type": "text/plain", "data": "x"}},
    "search_result": {"title": "Notes", "source": "wiki/1", "content": [TEXT]},
    "tool_result": {"tool_use_id": "t1", "content": "42"},
    "tool_use": {"id": "t1", "name": "add", "input": {}},
    "thinking": {"thinking": "hm", "signature": ""},
    "redacted_thinking": {"data": "x"},
}
"""The required fields of each block type that is read."""
OF_A_MODEL = ("tool_use", "thinking", "redacted_thinking")


def read(*blocks: object, role: str = "user") -> tuple[tuple[Message, ...], tuple[str, ...]]:
    turns = [{"role": role, "content": list(blocks)}, {"role": "user", "content": "and?"}]
    chat = parse({"model": "m", "max_tokens": 9, "messages": turns}, lambda _: None).chat
    return chat.messages, chat.inner


KINDS = {kind for param in PARAMS for kind in literals_in(get_type_hints(param)["type"])}


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_every_block_type_of_anthropics_client_is_read_or_kept_as_vendor_specific(kind):
    """A conversation that began with Anthropic can therefore continue.

    If a new version of the client adds a type, this test fails.
    """
    roles = ("assistant",) if kind in OF_A_MODEL else ("user",) if kind in ENOUGH else ("user", "assistant")
    for role in roles:
        messages, inner = read({"type": kind, **ENOUGH.get(kind, {})}, role=role)
        named = [item.path for message in messages for item in message.vendor]
        assert (named, inner) == ([] if kind in ENOUGH else ["messages[0].content[0]"], ())


THROUGH = {"metadata", "service_tier", "thinking", "cache_control"}
"""Parameters that other vendors also have, and that are therefore passed on."""


REFUSED = {"thread"}
"""Parameters that are refused, because dropping them would change the meaning of a call."""


def test_every_parameter_of_anthropics_client_is_read_or_passed_on_or_listed():
    """Claude Code sends parameters such as `context_management`. None of them is refused."""
    known = set(get_type_hints(MessageCreateParamsBase))
    assert known == (known & PARSED_FIELDS) | THROUGH | (VENDORS_OWN.keys() - {BETA_HEADER}) | {BETAS} | REFUSED
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "x"}]}
    chat = parse(body | dict.fromkeys((*sorted(VENDORS_OWN), BETAS), "x"), lambda _: None).chat
    assert [item.path for item in chat.vendor] == sorted(VENDORS_OWN)
    assert chat.inner == (BETAS,)
    assert chat.extra == {}


def test_search_results_and_tool_references_become_text():
    search_result = {"type": "search_result", **ENOUGH["search_result"]}
    result = {
        "type": "tool_result",
        "tool_use_id": "t1",
        "content": [search_result, {"type": "tool_reference", "tool_name": "add"}],
    }
    messages, inner = read(result)
    assert messages[0].text == "Notes\nwiki/1\nx\nadd"
    assert inner == ()
