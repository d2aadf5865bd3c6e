"""Every row of the parameter table is tested with every protocol."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from capabilities.core.delivery.adaptation import CannotRead, text_style_for
from capabilities.core.delivery.model_endpoint import Prepared, model_endpoint, prepare
from capabilities.core.message import ChatRequest
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.protocols.parameters import (
    ALL_CHARS,
    MAX_NAMES,
    PARAMETERS,
    Treatment,
    abbreviate_names,
    with_table,
)
from capabilities.core.vocabulary import Capabilities
from capabilities.core.wire import Target
from routing_admin.gateway.chat.parsing import parse
from routing_admin.gateway.errors import BadRequestError
from tests.artifacts.samples import pdf

DOCUMENT = Path(__file__).parents[2] / "docs" / "compatibility.md"
PNG = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()
MP4 = "data:video/mp4;base64," + base64.b64encode(b"\x00\x00\x00\x18ftypmp42" + bytes(20)).decode()
WAV = base64.b64encode(b"RIFF$\0\0\0WAVEfmt " + bytes(20)).decode()
PDF = "data:application/pdf;base64," + base64.b64encode(pdf("one page")).decode()

TARGETS: Mapping[str, Target] = {
    "openai": Target(
        *("p", "https://llm.example/v1", "m", "k"),
        quirks={"cache_marks": "cache_control", "replay_reasoning": "keep", "video_part": "video_url"},
    ),
    "openai-responses": Target(
        *("p", "https://llm.example/v1", "m", "k"), quirks={"cache_marks": "prompt_cache_breakpoint"}
    ),
    "anthropic": Target("p", "https://llm.example/v1", "claude-opus-4-6", "k", quirks={"sampling": True}),
    "gemini": Target("p", "https://llm.example/v1beta", "gemini-3-flash", "k"),
    "echo": Target("p", "echo://", "echo-vision"),
}
TOOL = {"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
PROOF = {"extra_content": {"google": {"thought_signature": "S"}}}
BASE: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
WITH_TOOL = {**BASE, "tools": [TOOL]}
MARK = {"type": "ephemeral", "ttl": "1h"}


def turn(**fields: Any) -> dict[str, Any]:
    assistant = {"role": "assistant", "content": "yes", **fields}
    return {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}, assistant, {"role": "user", "content": "and"}],
    }


def part(value: dict[str, Any]) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": [value]}]}


def text(**fields: Any) -> dict[str, Any]:
    return part({"type": "text", "text": "hi", **fields})


def image(**fields: Any) -> dict[str, Any]:
    return part({"type": "image_url", "image_url": {"url": PNG, **fields}})


def file(**fields: Any) -> dict[str, Any]:
    return part({"type": "file", "file": {"file_data": PDF, "filename": "a.pdf", **fields}})


def tool(fields: Mapping[str, Any], function_fields: Mapping[str, Any]) -> dict[str, Any]:
    return {**BASE, "tools": [{**TOOL, **fields, "function": {**TOOL["function"], **function_fields}}]}


TOP: Mapping[str, Any] = {
    "temperature": 0.5,
    "top_p": 0.5,
    "top_k": 3,
    "stop": ["END"],
    "max_tokens": 7,
    "max_completion_tokens": 7,
    "seed": 1,
    "presence_penalty": 0.5,
    "frequency_penalty": 0.5,
    "logit_bias": {"1": 2},
    "logprobs": True,
    "top_logprobs": 2,
    "modalities": ["text", "image"],
    "audio": {"voice": "alloy", "format": "wav"},
    "service_tier": "default",
    "metadata": {"user_id": "u"},
    "cache_control": MARK,
    "prompt_cache_key": "k",
    "prompt_cache_options": {"ttl": "30m"},
    "prompt_cache_retention": "24h",
    "safety_identifier": "s",
    "user": "u",
    "store": True,
    "moderation": {"mode": "auto"},
    "verbosity": "low",
    "web_search_options": {"a": 1},
    "prediction": {"type": "content", "content": "x"},
    "reasoning": {"effort": "high"},
    "n": 9,
    "thinking": {"type": "enabled"},
    "reasoning_effort": "high",
    "reasoning_summary": "detailed",
    "response_format": {"type": "json_object"},
    "safetySettings": [{"category": "HARM_CATEGORY_HARASSMENT", "threshold": "BLOCK_NONE"}],
    "generationConfig.speechConfig": {"voiceConfig": {}},
    "generationConfig.imageConfig": {"aspectRatio": "1:1"},
    "generationConfig.mediaResolution": "MEDIA_RESOLUTION_LOW",
    "generationConfig.enableEnhancedCivicAnswers": True,
    "generationConfig.thinkingConfig.thinkingBudget": 512,
}
CUSTOM = {"type": "custom", "custom": {"name": "sql"}}
CUSTOM_CALL = {"id": "c1", "type": "custom", "custom": {"name": "sql", "input": "select"}}
ALLOWED = {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOL]}}
OTHER_TOOL = {"type": "function", "function": {"name": "smell"}}
Sample = tuple[dict[str, Any], dict[str, Any], str]
SAMPLES: Mapping[str, Sample] = {
    **{name: (BASE, {**BASE, name: value}, name) for name, value in TOP.items()},
    "metadata": ({**BASE, "store": True}, {**BASE, "store": True, "metadata": {"user_id": "u"}}, "metadata"),
    "tools": (BASE, WITH_TOOL, "tools"),
    "tool_choice": (WITH_TOOL, {**WITH_TOOL, "tool_choice": "required"}, "tool_choice"),
    "parallel_tool_calls": (WITH_TOOL, {**WITH_TOOL, "parallel_tool_calls": False}, "parallel_tool_calls"),
    "functions": (BASE, {**BASE, "functions": [TOOL["function"]]}, "functions"),
    "function_call": (WITH_TOOL, {**WITH_TOOL, "function_call": {"name": "look"}}, "tool_choice"),
    "stream_options.include_obfuscation": (
        {**BASE, "stream_options": {}},
        {**BASE, "stream_options": {"include_obfuscation": True}},
        "stream_options.include_obfuscation",
    ),
    "messages[].content[].text": (BASE, text(text="ho"), "messages[0].content[0].text"),
    "messages[].content[].refusal": (
        BASE,
        part({"type": "refusal", "refusal": "no"}),
        "messages[0].content[0].refusal",
    ),
    "messages[].content[].image_url": (BASE, image(), "messages[0].content[0].image_url"),
    "messages[].content[].video_url": (
        *(BASE, part({"type": "video_url", "video_url": {"url": MP4}})),
        "messages[0].content[0].video_url",
    ),
    "messages[].content[].input_audio": (
        *(BASE, part({"type": "input_audio", "input_audio": {"data": WAV, "format": "wav"}})),
        "messages[0].content[0].input_audio",
    ),
    "messages[].content[].file": (BASE, file(), "messages[0].content[0].file"),
    "messages[].content[].image_url.detail": (
        *(image(), image(detail="low")),
        "messages[0].content[0].image_url.detail",
    ),
    "messages[].content[].file.detail": (file(), file(detail="low"), "messages[0].content[0].file.detail"),
    "messages[].content[].cache_control": (
        *(text(), text(cache_control=MARK)),
        "messages[0].content[0].cache_control",
    ),
    "messages[].content[].prompt_cache_breakpoint": (
        *(text(), text(prompt_cache_breakpoint={"mode": "explicit"})),
        "messages[0].content[0].prompt_cache_breakpoint",
    ),
    "messages[].cache_control": (
        *(BASE, {**BASE, "messages": [{**BASE["messages"][0], "cache_control": MARK}]}),
        "messages[0].cache_control",
    ),
    "messages[].name": (turn(), turn(name="bob"), "messages[1].name"),
    "messages[].refusal": (turn(), turn(refusal="no"), "messages[1].refusal"),
    "messages[].tool_calls": (turn(), turn(tool_calls=[CALL]), "messages[1].tool_calls"),
    "messages[].tool_calls[].custom": (
        *(turn(), turn(tool_calls=[CUSTOM_CALL])),
        "messages[1].tool_calls[0].custom",
    ),
    "messages[].function_call": (
        *(turn(), turn(function_call={"name": "look", "arguments": "{}"})),
        "messages[1].function_call",
    ),
    "messages[].tool_calls[].extra_content": (
        *(turn(tool_calls=[CALL]), turn(tool_calls=[{**CALL, **PROOF}])),
        "messages[1].tool_calls[0].extra_content",
    ),
    **{
        f"messages[].{name}": (turn(), turn(**{name: value}), f"messages[1].{name}")
        for name, value in {
            "reasoning_content": "hm",
            "reasoning": "hm",
            "reasoning_details": [{"type": "reasoning.text", "text": "hm"}],
            "extra_content": PROOF["extra_content"],
            "thinking_blocks": [{"type": "thinking"}],
            "audio": {"id": "a1"},
            "annotations": [{"type": "url_citation"}],
        }.items()
    },
    "tools[].function.strict": (WITH_TOOL, tool({}, {"strict": True}), "tools[0].function.strict"),
    "tools[].cache_control": (WITH_TOOL, tool({"cache_control": MARK}, {}), "tools[0].cache_control"),
    "tools[].function.cache_control": (
        *(WITH_TOOL, tool({}, {"cache_control": MARK})),
        "tools[0].function.cache_control",
    ),
    "tools[].custom": (WITH_TOOL, {**BASE, "tools": [TOOL, CUSTOM]}, "tools[1].custom"),
    "toolConfig.functionCallingConfig.mode": (
        *(WITH_TOOL, {**WITH_TOOL, "toolConfig.functionCallingConfig.mode": "VALIDATED"}),
        "toolConfig.functionCallingConfig.mode",
    ),
    "tool_choice.allowed_tools": (
        {**BASE, "tools": [TOOL, OTHER_TOOL]},
        {**BASE, "tools": [TOOL, OTHER_TOOL], "tool_choice": ALLOWED},
        "tool_choice",
    ),
}
OUR_OWN = {"model", "messages", "stream", "stream_options"}
"""Fields that every request has. They need no sample value."""


def parse_chat(body: Mapping[str, Any]) -> ChatRequest:
    return parse(deepcopy(dict(body)), lambda ref: None).chat


def prepare_request(body: Mapping[str, Any], protocol: str) -> Prepared:
    chat = parse_chat(body)
    capabilities = Capabilities(("text", "vision", "audio", "video", "file"), ("text",))
    candidate = model_endpoint(protocol, TARGETS[protocol], capabilities)
    prepared = prepare(chat, candidate, text_style_for(chat, "en", lambda kind: ()))
    assert not isinstance(prepared, CannotRead)
    return prepared


def test_every_parameter_has_a_sample_value():
    """Without a sample value, the docs would list a parameter that is not tested."""
    assert set(PARAMETERS) - OUR_OWN == set(SAMPLES)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("name", list(SAMPLES))
def test_each_protocol_treats_each_parameter_as_documented_in_the_table(name: str, protocol: str):
    """A mapped or passed parameter changes the payload and is not reported. A dropped one changes nothing and is
    reported.

    A refused parameter causes a 400. A returned one gives back to the model what it sent, and is never reported.
    """
    base_body, full_body, path = SAMPLES[name]
    treatment = PARAMETERS[name].by(protocol)
    if treatment is Treatment.REFUSED:
        with pytest.raises(BadRequestError) as caught:
            parse_chat(full_body)
        assert caught.value.param == path
        return
    base, request = (prepare_request(body, protocol).request for body in (base_body, full_body))
    new = set(request.dropped_params) - set(base.dropped_params)
    assert new == ({path} if treatment is Treatment.DROPPED else set())
    # Parameters of the kind "returned" are tested in tests/protocols/test_reasoning.py.
    if treatment is not Treatment.RETURNED:
        assert (json.dumps(request.elide()) == json.dumps(base.elide())) is (treatment is Treatment.DROPPED)
    if treatment is Treatment.PASSED and name in TOP and protocol != "gemini":
        assert request.payload[name] == full_body[name]


@pytest.mark.parametrize("protocol", ["openai-responses", "anthropic", "gemini", "echo"])
def test_unknown_field_is_reported_as_dropped(protocol: str):
    """A field that only one vendor knows is not sent to other vendors, and the response lists it as dropped."""
    body = {**turn(mood="good"), "enable_thinking": True}
    body["messages"][0] = {"role": "user", "content": [{"type": "text", "text": "hi", "colour": "red"}]}
    dropped = prepare_request(body, protocol).request.dropped_params
    assert set(dropped) == {"enable_thinking", "messages[1].mood", "messages[0].content[0].colour"}


def test_unknown_parameter_is_sent_to_openai_compatible_hosts():
    """An unknown parameter may belong to the compatible host, so it is sent. Unknown fields of messages are dropped and
    reported.
    """
    request = prepare_request({**turn(mood="good"), "enable_thinking": True}, "openai").request
    assert request.payload["enable_thinking"] is True
    assert request.dropped_params == ("messages[1].mood",)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_parameter_of_the_wrong_type_never_raises_an_error(protocol: str):
    """A parameter of the wrong type is passed on or dropped."""
    for name in ("reasoning_effort", "thinking", "modalities", "service_tier", "metadata", "cache_control"):
        for value in ({"a": []}, [{"a": 1}], 5, "x"):
            request = prepare_request({**BASE, name: value}, protocol).request
            sent = json.dumps(request.elide())
            assert name in request.dropped_params or name in sent or f'"effort": "{value}"' in sent


@pytest.mark.parametrize(
    ("quirks", "body", "path"),
    [
        ({"image_url_as_string": True}, image(detail="low"), "messages[0].content[0].image_url.detail"),
        ({"file_part": "document_url"}, file(detail="low"), "messages[0].content[0].file.detail"),
        ({}, text(cache_control=MARK), "messages[0].content[0].cache_control"),
        ({"cache_marks": "cache_control"}, turn(content=None, tool_calls=[CALL], cache_control=MARK), "messages[1]"),
    ],
)
def test_parameter_excluded_by_a_quirk_is_reported_as_dropped(quirks: dict[str, Any], body: dict[str, Any], path: str):
    target = Target("p", "https://llm.example/v1", "m", "k", quirks=quirks)
    capabilities = Capabilities(("text", "vision", "audio", "video", "file"), ("text",))
    chat = parse_chat(body)
    prepared = prepare(
        chat, model_endpoint("openai", target, capabilities), text_style_for(chat, "en", lambda kind: ())
    )
    assert not isinstance(prepared, CannotRead)
    (name,) = prepared.request.dropped_params
    assert name.startswith(path)


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
def test_parameter_without_effect_is_not_reported_as_dropped(protocol: str):
    """Null, an empty list and the common default value have no effect, so they are not reported as dropped."""
    quiet = {"logprobs": False, "service_tier": "auto", "store": False, "seed": None, "n": 1, "presence_penalty": 0}
    body = {**turn(annotations=[], audio=None, refusal=None, tool_calls=[CALL], function_call=None), **quiet}
    body["messages"][0] = image(detail="auto")["messages"][0]
    assert prepare_request(body, protocol).request.dropped_params == ()


def test_dropped_parameter_names_are_abbreviated_to_ascii_for_the_header():
    """The response header has at most twenty ASCII names, in about a kilobyte, and the number of omitted names."""
    names = abbreviate_names([f"messages[{index}].名字" for index in range(30)])
    assert len(names) == MAX_NAMES + 1
    assert (names[0], names[-1]) == ("messages[0].\\u540d\\u5b57", "... and 10 more")
    assert len(", ".join(abbreviate_names("x" * 99 + str(index) for index in range(30)))) < ALL_CHARS + 30
    assert abbreviate_names(["a", "a"]) == ("a",)


def test_compatibility_document_matches_the_parameter_table():
    """docs/compatibility.md is the output of `python -m capabilities.core.protocols.parameters`."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert with_table(text) == text
