"""For every provider preset, each file that is delivered natively is in the payload."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from fake_content import FakeContent
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.adaptation import Adapted, TextStyle, adapt
from capabilities.core.delivery.decision import Outcome, Reader
from capabilities.core.delivery.model_endpoint import Prepared, model_endpoint, prepare
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.message import ChatRequest, FilePart, Message, NativePart, Role, TextPart, ToolCall
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.providers.presets import PRESETS, HostPreset
from capabilities.core.vocabulary import Capabilities, Kind
from capabilities.core.wire import MediaData, Target

ECHO = HostPreset("echo", "Echo", "Echo", "echo://local", protocol="echo")
HOSTS = [*PRESETS, ECHO]
CAPABILITY_NAMES = ["vision", "audio", "video", "file"]


def make_file(kind: Kind, mime_type: str, number: int) -> FilePart:
    data = bytes((number * 37 + index) % 256 for index in range(48))
    return FilePart(kind, mime_type, f"file{number}", 48, f"id{number}", content=FakeContent(data, "words", None))


TYPES = [
    (Kind.IMAGE, "image/png"),
    (Kind.IMAGE, "image/gif"),
    (Kind.AUDIO, "audio/wav"),
    (Kind.AUDIO, "audio/flac"),
    (Kind.VIDEO, "video/mp4"),
    (Kind.DOCUMENT, "application/pdf"),
    (Kind.OTHER, "application/zip"),
    (Kind.TEXT, "text/plain"),
]
FILES = [make_file(kind, mime_type, number) for number, (kind, mime_type) in enumerate(TYPES)]
REMOTE = [
    FilePart(kind, mime_type, f"remote{number}", url=f"https://example.org/{number}")
    for number, (kind, mime_type) in enumerate(TYPES)
]


def conversation(files: list[FilePart]) -> ChatRequest:
    calls = (ToolCall("c1", "look", "{}"), ToolCall("c2", "look", "{}"))
    half = len(files) // 2
    return ChatRequest(
        (
            Message(Role.SYSTEM, (TextPart("be brief"),)),
            Message(Role.USER, (TextPart("look"), *files)),
            Message(Role.ASSISTANT, (TextPart("looking"),), calls),
            Message(Role.TOOL, tuple(files[:half]), tool_call_id="c1"),
            Message(Role.TOOL, tuple(files[half:]), tool_call_id="c2"),
            Message(Role.USER, (TextPart("well?"),)),
        )
    )


def make_reader(preset: HostPreset, capabilities: list[str]) -> Reader:
    slots = slots_for(preset.protocol, preset.slots, None, preset.quirks)
    return Reader(slots, Capabilities(("text", *capabilities)))


def encode(chat: ChatRequest, preset: HostPreset, capabilities: list[str]) -> tuple[Adapted, Mapping[str, Any]]:
    result = adapt(chat, make_reader(preset, capabilities), TextStyle("en"))
    assert isinstance(result, Adapted)
    target = Target(preset.name, preset.base_url, "some-model", "key", preset.quirks)
    return result, PROTOCOLS[preset.protocol].encode(result.chat, target, stream=False).payload


def list_leaf_values(value: Any) -> Iterator[Any]:
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from list_leaf_values(item)
    else:
        yield value


@pytest.mark.requirement("MCR-P2", "MCR-2.1", "MCR-2.3", "MCR-2.5")
@pytest.mark.parametrize("preset", HOSTS, ids=lambda host: host.name)
def test_every_native_file_is_in_the_payload(preset: HostPreset) -> None:
    result, payload = encode(conversation(FILES), preset, CAPABILITY_NAMES)
    natives = [part for message in result.chat.messages for part in message.parts if isinstance(part, NativePart)]
    written = [leaf for leaf in list_leaf_values(payload) if isinstance(leaf, MediaData)]
    assert sorted(id(media.blob) for media in written) == sorted(id(media.blob) for media in natives)
    assert "cannot be sent here" not in json.dumps(payload, default=str)
    assert any(delivery.delivery.outcome is Outcome.NATIVE for delivery in result.deliveries)


@pytest.mark.parametrize("preset", HOSTS, ids=lambda host: host.name)
def test_every_native_url_is_in_the_payload(preset: HostPreset) -> None:
    result, payload = encode(conversation(REMOTE), preset, CAPABILITY_NAMES)
    text = json.dumps(payload, default=str)
    assert "cannot be sent here" not in text
    for delivery in result.deliveries:
        assert delivery.file.url is not None
        assert delivery.file.url in text


@pytest.mark.requirement("MCR-P3", "ABR-INV1")
@given(
    preset=st.sampled_from(HOSTS),
    capabilities=st.lists(st.sampled_from(CAPABILITY_NAMES), unique=True),
    chosen=st.lists(st.sampled_from(FILES), max_size=6),
)
def test_payload_texts_never_contain_base64_of_a_file(
    preset: HostPreset, capabilities: list[str], chosen: list[FilePart]
) -> None:
    files = [replace(named, content=named.content) for named in chosen]
    _, payload = encode(conversation(files), preset, capabilities)
    text = "\n".join(leaf for leaf in list_leaf_values(payload) if isinstance(leaf, str))
    for file in files:
        assert isinstance(file.content, FakeContent)
        encoded = base64.b64encode(file.content.data).decode()
        assert not any(encoded[start : start + 22] in text for start in range(len(encoded) - 21))


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic"])
def test_payload_requests_a_stream_only_if_the_caller_does(protocol: str) -> None:
    endpoint = model_endpoint(protocol, Target("lab", "https://lab.example/v1", "m"), Capabilities(("text",)))
    requests = [prepare(conversation([]), endpoint, TextStyle("en"), **more) for more in ({}, {"stream": True})]
    payloads = [prepared.request.payload for prepared in requests if isinstance(prepared, Prepared)]
    assert [payload.get("stream", False) for payload in payloads] == [False, True]
