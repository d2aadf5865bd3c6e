"""A conversation's prefix: in later turns, a candidate receives each earlier message in the same form as before.

A turn is one request from a client. It ends with the user's text or with the results of all tool calls. The next turn
repeats it and appends an answer and more messages.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from fake_content import FakeContent
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.adaptation import Adapted, TextStyle, adapt
from capabilities.core.delivery.decision import Reader, parse_policies
from capabilities.core.delivery.model_endpoint import ModelEndpoint, prepare
from capabilities.core.delivery.prefix import describe_prediction, find_break, predict_break
from capabilities.core.delivery.size_budget import SIZE_LIMIT_CODES
from capabilities.core.delivery.slot_choice import slots_for
from capabilities.core.delivery.slots_json import with_limits
from capabilities.core.delivery.text_limit import TextLimit
from capabilities.core.message import (
    CacheBreakpoint,
    ChatRequest,
    Converted,
    FilePart,
    Message,
    Role,
    TextPart,
    ToolCall,
    make_blob,
)
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.thoughts import ReasoningBlock, ThoughtForm, reasoning_origin
from capabilities.core.vocabulary import Capabilities, Kind
from capabilities.core.wire import Target
from routing_admin.core.planning.language import inject_directive

EVERYTHING = Capabilities(("text", "vision", "audio", "file", "video"))
ENGLISH = TextStyle("en", lambda _: ("seer", "listener"))


def picture(number: int, size: int = 30) -> FilePart:
    return FilePart(Kind.IMAGE, "image/png", f"{number}.png", size, f"id{number}", content=FakeContent(b"x" * size))


def reader(
    limits: dict[str, Any], protocol: str = "openai", policy: str = "describe", window: int | None = None
) -> Reader:
    slots = with_limits(slots_for(protocol), limits)
    # In such a small window, the text before a file determines how much of the file's text is sent.
    return Reader(slots, EVERYTHING, parse_policies(policy), text_limit=TextLimit(unknown_chars=25), window=window)


def adapted(messages: Sequence[Message], candidate: Reader) -> Adapted:
    result = adapt(ChatRequest(tuple(messages)), candidate, ENGLISH)
    assert isinstance(result, Adapted)
    return result


def growing_conversation(*groups: int, size: int = 30) -> list[tuple[Message, ...]]:
    """Return the turns of a conversation in which the user sends `groups[n]` images in turn n."""
    conversations_so_far, messages, number = [], (), 0
    for count in groups:
        files = tuple(picture(number + offset, size) for offset in range(count))
        messages += (Message(Role.USER, (TextPart("look"), *files)),)
        number += count
        conversations_so_far.append(messages)
        messages += (Message(Role.ASSISTANT, (TextPart("I see"),)),)
    return conversations_so_far


def encode_parts(messages: Sequence[Message], candidate: Reader) -> str:
    """Return `N` for each file sent natively and `d` for each file replaced by a description, in order."""
    return "".join("N" if delivery.natives else "d" for delivery in adapted(messages, candidate).deliveries)


@pytest.mark.parametrize(
    ("max_count", "groups", "expected"),
    [
        (8, (1,) * 8, "NNNNNNNN"),
        (8, (1,) * 9, "ddddNNNNN"),
        (8, (1,) * 12, "ddddNNNNNNNN"),
        (8, (1,) * 13, "ddddddddNNNNN"),
        (3, (1,) * 4, "ddNN"),
        (2, (1,) * 3, "dNN"),
        (1, (1,) * 3, "ddN"),
        (4, (3, 3), "ddNNNN"),
        (4, (6,), "NNNNdd"),
        (4, (6, 1), "ddNNddN"),
        (4, (1, 6), "dNNNNdd"),
    ],
)
def test_exceeding_the_file_count_limit_describes_the_older_half(
    max_count: int, groups: tuple[int, ...], expected: str
) -> None:
    """When a limit on files is exceeded, descriptions replace the oldest files; files of one message stay together."""
    assert encode_parts(growing_conversation(*groups)[-1], reader({"image": {"maxCount": max_count}})) == expected


def test_exceeding_the_byte_limit_describes_the_older_half() -> None:
    """An image that by itself exceeds the byte limit does not displace other images."""
    candidate = reader({"image": {"maxTotalBytes": 400}})
    assert encode_parts(growing_conversation(1, 1, 1, 1, size=100)[-1], candidate) == "NNNN"
    assert encode_parts(growing_conversation(1, 1, 1, 1, 1, size=100)[-1], candidate) == "ddNNN"
    huge = Message(Role.USER, (picture(9, 401),))
    assert encode_parts((*growing_conversation(1, 1, 1, 1, size=100)[-1], huge), candidate) == "NNNNd"


def test_text_exceeding_the_request_size_describes_older_files() -> None:
    candidate = reader({"maxRequestBytes": 2000})
    before = growing_conversation(1, 1, size=600)[-1]
    assert encode_parts(before, candidate) == "NN"
    long_turns = Message(Role.ASSISTANT, (TextPart("x" * 600),)), Message(Role.USER, (TextPart("and?"),))
    assert encode_parts((*before, *long_turns), candidate) == "dd"


def test_ninth_image_breaks_the_prefix_and_the_next_three_do_not() -> None:
    """With a limit of 8 images, the prefix changes once per four new images."""
    candidate, turns = reader({"image": {"maxCount": 8}}), growing_conversation(*(1,) * 14)
    states = [adapted(turn, candidate) for turn in turns]
    breaks = [find_break(*pair) for pair in itertools.pairwise(states)]
    assert [index + 2 for index, prefix_break in enumerate(breaks) if prefix_break] == [9, 13]
    assert [prefix_break.message for prefix_break in breaks if prefix_break] == [0, 8]


@pytest.mark.parametrize(
    ("count", "sentence"),
    [
        (7, "Prefix kept if the next turn adds another file like this."),
        (
            8,
            "If the next turn adds another file like this, the prefix breaks at message 1, because a limit "
            "is full and half of it is freed. With this file, the number of files for image_url would be 9; the limit "
            "is 8.",
        ),
    ],
)
def test_preview_predicts_how_one_more_file_changes_the_prefix(count: int, sentence: str) -> None:
    """The preview counts messages from 1."""
    candidate, chat = reader({"image": {"maxCount": 8}}), ChatRequest(growing_conversation(*(1,) * count)[-1])
    predicted = predict_break(chat, adapted(chat.messages, candidate), candidate, ENGLISH)
    assert describe_prediction(predicted) == sentence


LIMITS = st.fixed_dictionaries(
    {},
    optional={
        "image": st.fixed_dictionaries(
            {}, optional={"maxCount": st.integers(1, 5), "maxTotalBytes": st.integers(40, 200)}
        ),
        "maxRequestBytes": st.integers(300, 4000),
    },
)
POLICIES = st.sampled_from(["describe", "extract", "convert", "extract+convert"])
QUIRKS = st.fixed_dictionaries(
    {},
    optional={
        "system_role": st.sampled_from(["system", "developer", "first_user"]),
        "structured": st.sampled_from(["json_schema", "json_object", "prompt"]),
        "tool_media": st.sampled_from(["native", "hoist", "text"]),
        "replay_reasoning": st.sampled_from(["keep", "empty", "drop", "required"]),
        "cache_marks": st.sampled_from(["none", "cache_control", "prompt_cache_breakpoint"]),
    },
)
JSON_SHAPE = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object", "properties": {}}}}


@st.composite
def files(draw: st.DrawFn) -> FilePart:
    kind, mime_type = draw(
        st.sampled_from(
            [
                (Kind.IMAGE, "image/png"),
                (Kind.IMAGE, "image/tiff"),
                (Kind.AUDIO, "audio/wav"),
                (Kind.DOCUMENT, "application/pdf"),
                (Kind.TEXT, "text/csv"),
            ]
        )
    )
    size = draw(st.integers(1, 90))
    image = Converted(make_blob(b"y" * draw(st.integers(1, 90))), "image/png")
    name, known = draw(st.sampled_from([None, "a", "b"])), draw(st.sampled_from([None, "id1", "id2"]))
    content = FakeContent(
        b"x" * size, draw(st.sampled_from([None, "words", "long words " * 9, "long words\n" * 400])) or "w", image
    )
    return FilePart(
        kind,
        mime_type,
        name,
        size,
        known,
        introduced=draw(st.booleans()),
        cache=draw(st.none() | st.just(CacheBreakpoint())),
        content=content,
    )


CACHE_MARKS = st.none() | st.just(CacheBreakpoint())
TEXTS = st.builds(TextPart, st.text(max_size=60), CACHE_MARKS)
PARTS = st.lists(files() | TEXTS, min_size=1, max_size=4).map(tuple)
ORIGINS = [reasoning_origin(name, "some", "m") for name in PROTOCOLS]
REASONING = st.lists(
    st.builds(
        ReasoningBlock, st.sampled_from(ThoughtForm), st.just("hm"), st.just("proof"), origin=st.sampled_from(ORIGINS)
    ),
    max_size=2,
).map(tuple)
SYSTEM = st.builds(Message, st.just(Role.SYSTEM), st.just((TextPart("be brief"),)))
USER = st.builds(Message, st.just(Role.USER), PARTS)


@st.composite
def conversations(draw: st.DrawFn) -> list[tuple[Message, ...]]:
    messages: tuple[Message, ...] = (*draw(st.lists(SYSTEM, max_size=2)), draw(USER))
    conversations_so_far = [messages]
    for number in range(draw(st.integers(1, 6))):
        origin = draw(st.sampled_from(ORIGINS))
        calls = tuple(
            ToolCall(f"c{number}{n}", "shot", "{}", draw(st.none() | st.just("proof")), origin=origin)
            for n in range(draw(st.integers(0, 2)))
        )
        texts = (TextPart(draw(st.sampled_from(["I see", "yes "]))),) if not calls or draw(st.booleans()) else ()
        reasoning = draw(st.none() | st.just("hm"))
        answer = Message(Role.ASSISTANT, texts, calls, reasoning=reasoning, thoughts=draw(REASONING))
        results = tuple(Message(Role.TOOL, draw(PARTS), tool_call_id=call.id) for call in calls)
        next_messages = draw(st.lists(SYSTEM | USER, min_size=0 if calls else 1, max_size=2))
        messages = (*messages, answer, *results, *next_messages)
        conversations_so_far.append(messages)
    return conversations_so_far


def make_endpoint(
    protocol: str, limits: dict[str, Any], quirks: dict[str, Any], policy: str, window: int | None
) -> ModelEndpoint:
    target = Target("some", "https://models.example/v1", "m", quirks=quirks)
    return ModelEndpoint(PROTOCOLS[protocol], target, reader(limits, protocol, policy, window))


def without_cache_marks(value: Any) -> Any:
    """Remove cache marks. They move to the newest turns, and the model does not read them."""
    if isinstance(value, dict):
        marks = ("cache_control", "prompt_cache_breakpoint")
        return {key: without_cache_marks(item) for key, item in value.items() if key not in marks}
    return [without_cache_marks(item) for item in value] if isinstance(value, list) else value


def assert_continues(protocol: str, earlier: dict[str, Any], later: dict[str, Any]) -> None:
    name = {"gemini": "contents", "openai-responses": "input"}.get(protocol, "messages")
    messages_before, messages_after = earlier.pop(name), later.pop(name)
    assert later == earlier
    if protocol in ("openai", "openai-responses", "echo"):
        assert messages_after[: len(messages_before)] == messages_before
        return
    assert messages_after[: len(messages_before) - 1] == messages_before[:-1]
    parts_field = "parts" if protocol == "gemini" else "content"
    assert messages_after[len(messages_before) - 1]["role"] == messages_before[-1]["role"]
    assert (
        messages_after[len(messages_before) - 1][parts_field][: len(messages_before[-1][parts_field])]
        == messages_before[-1][parts_field]
    )


@pytest.mark.parametrize("protocol", ["openai", "openai-responses", "anthropic", "gemini", "echo"])
@given(
    turns=conversations(),
    limits=LIMITS,
    quirks=QUIRKS,
    policy=POLICIES,
    shape=st.none() | st.just(JSON_SHAPE),
    window=st.sampled_from([None, 3_000, 20_000]),
)
def test_each_turn_begins_with_the_payload_of_the_previous_turn(
    protocol: str,
    turns: list[tuple[Message, ...]],
    limits: dict[str, Any],
    quirks: dict[str, Any],
    policy: str,
    shape: dict[str, Any] | None,
    window: int | None,
) -> None:
    """Only an exceeded limit can change the beginning, and everything before that change stays the same.

    Where a protocol merges consecutive messages of one role, the last turn may grow.
    """
    candidate = make_endpoint(protocol, limits, quirks, policy, window)
    chats = [inject_directive(ChatRequest(turn, response_format=shape), "Please respond in English.") for turn in turns]
    for earlier, later in itertools.pairwise(chats):
        before, after = prepare(earlier, candidate, ENGLISH), prepare(later, candidate, ENGLISH)
        broken = find_break(Adapted(before.chat, before.deliveries), Adapted(after.chat, after.deliveries))
        kept_count = len(before.chat.messages) if broken is None else broken.message
        assert after.chat.messages[:kept_count] == before.chat.messages[:kept_count]
        if broken is not None:
            assert broken.reason.code in SIZE_LIMIT_CODES
            continue
        assert_continues(protocol, *(without_cache_marks(prepared.request.elide()) for prepared in (before, after)))


GROUPS = st.lists(st.integers(0, 7), min_size=1, max_size=12)


def count_breaks(turns: Sequence[Sequence[Message]], candidate: Reader) -> int:
    states = [adapted(turn, candidate) for turn in turns]
    return sum(find_break(*pair) is not None for pair in itertools.pairwise(states))


@given(groups=GROUPS, max_count=st.integers(1, 9))
def test_file_count_limit_breaks_the_prefix_at_most_once_per_half_limit(groups: list[int], max_count: int) -> None:
    breaks = count_breaks(growing_conversation(*groups), reader({"image": {"maxCount": max_count}}))
    assert breaks * max_count <= 2 * sum(groups)


@given(groups=GROUPS, size=st.integers(1, 100), max_bytes=st.integers(1, 500))
def test_byte_limit_breaks_the_prefix_at_most_once_per_half_limit(groups: list[int], size: int, max_bytes: int) -> None:
    breaks = count_breaks(growing_conversation(*groups, size=size), reader({"image": {"maxTotalBytes": max_bytes}}))
    assert breaks * max_bytes <= 2 * sum(groups) * size


@given(groups=GROUPS, max_count=st.integers(1, 9))
def test_newest_message_sends_as_many_files_as_the_limit_allows(groups: list[int], max_count: int) -> None:
    sent_forms = encode_parts(growing_conversation(*groups)[-1], reader({"image": {"maxCount": max_count}}))
    assert sent_forms.count("N") <= max_count
    assert sent_forms[len(sent_forms) - groups[-1] :].count("N") == min(groups[-1], max_count)


def test_smaller_size_limit_for_many_images_breaks_the_prefix_once() -> None:
    """If a request has many images, a smaller limit on the side length applies to all of them."""
    candidate = reader({"image": {"maxSide": 100, "crowdCount": 2, "crowdMaxSide": 10}})
    wide = [
        [replace(part, width=50) if isinstance(part, FilePart) else part for part in message.parts]
        for message in growing_conversation(*(1,) * 6)[-1]
    ]
    messages = [
        replace(message, parts=tuple(parts))
        for message, parts in zip(growing_conversation(*(1,) * 6)[-1], wide, strict=True)
    ]
    assert count_breaks([messages[: 2 * number + 1] for number in range(6)], candidate) == 1


def test_prefix_prediction_assumes_another_file_like_the_last_file() -> None:
    candidate = reader({"image": {"maxTotalBytes": 100}})
    small, large = picture(0, 10), picture(1, 60)
    for files, breaks in (((small, large), True), ((large, small), False)):
        chat = ChatRequest(tuple(Message(Role.USER, (TextPart("look"), file)) for file in files))
        assert (predict_break(chat, adapted(chat.messages, candidate), candidate, ENGLISH) is not None) is breaks
