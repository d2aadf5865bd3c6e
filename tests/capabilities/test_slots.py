"""Slots define the files that a protocol accepts. Each slot and limit has a source and a date."""

from __future__ import annotations

import json
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery.limits import GET_ARTIFACT, MESSAGES, PROTOCOLS, TEMPLATES
from capabilities.core.delivery.model_endpoint import model_endpoint
from capabilities.core.delivery.slot_choice import GET_ARTIFACT_SLOTS, MESSAGE_SLOTS, slots_for
from capabilities.core.delivery.slots import SLOT_KINDS, Slot, Slots, ToolMedia, slot_key
from capabilities.core.delivery.slots_json import check_limits, from_json, to_json
from capabilities.core.providers.presets import PRESETS, HostPreset, limits_template
from capabilities.core.vocabulary import Capabilities, Kind
from capabilities.core.wire import Target

ALL = {**PROTOCOLS, **TEMPLATES, "messages": MESSAGES, "get_artifact": GET_ARTIFACT}


@pytest.mark.parametrize("name", list(ALL))
def test_shipped_slot_templates_pass_the_limits_check(name: str) -> None:
    assert check_limits(ALL[name]) == ()


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("template", [None, *TEMPLATES])
def test_every_slot_has_a_source_and_a_check_date(protocol: str, template: str | None) -> None:
    for slot in slots_for(protocol, template).by_kind.values():
        assert slot.source
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", slot.checked_on)
        assert slot.capabilities


OFFICE = {
    "text": "vnd.openxmlformats-officedocument.wordprocessingml.document",
    "show": "vnd.openxmlformats-officedocument.presentationml.presentation",
    "old": "vnd.oasis.opendocument.text,vnd.ms-powerpoint",
}
LINES = """
protocol  slot  name        carries                              MiB count pages pixels url tools
openai    image image_url   jpeg,png,webp,gif                    -   1500  -     5500   yes -
openai    audio input_audio wav,mpeg                             -   -     -     -      -   -
openai    file  file        pdf                                  -   -     -     -      -   -
openai-responses image input_image jpeg,png,webp,gif            -   1500  -     5500   yes yes
openai-responses file  input_file  pdf,msword,rtf,{text},{show},{old} - - - - yes yes
anthropic image image       jpeg,png,webp,gif                    7.5 100   -     8000   yes yes
anthropic file  document    pdf                                  -   -     100   -      yes yes
gemini    image inlineData  jpeg,png,webp,heic,heif              -   3600  -     12288  yes yes
gemini    audio inlineData  wav,mpeg,flac,ogg,aac,aiff,mp4       -   -     -     -      yes -
gemini    video inlineData  mp4,webm,quicktime,mpeg,x-msvideo,x-flv,x-ms-wmv,3gpp - - - - yes -
gemini    file  inlineData  pdf                                  50  -     1000  -      yes yes
echo      image image       anything                             -   -     -     -      yes yes
echo      audio audio       anything                             -   -     -     -      yes yes
echo      video video       anything                             -   -     -     -      yes yes
echo      file  file        anything                             -   -     -     -      yes yes
"""
"""The files that each protocol accepts according to the vendors' documentation: MIME subtypes and limits per file."""

MIB = 1024 * 1024
REQUEST_BYTES = {
    "openai": 512 * MIB,
    "openai-responses": 512 * MIB,
    "anthropic": 32 * MIB,
    "gemini": 100 * MIB,
    "echo": None,
}
TOOLS = {"openai": "hoist", "openai-responses": "native", "anthropic": "native", "gemini": "native", "echo": "native"}


def parse_line(line: str) -> tuple[object, ...]:
    """Split a table line into values. The order of the MIME types does not matter."""
    before, types, after = line.split()[:3], line.split()[3], line.split()[4:]
    return (*before, frozenset(types.split(",")), *after)


def format_slot(protocol: str, key: str, slot: Slot) -> str:
    types = ",".join(mime_type.split("/")[1] for mime_type in slot.mime_types or ["any/anything"])
    size = slot.max_bytes and f"{slot.max_bytes / MIB:g}"
    numbers = [str(limit or "-") for limit in (size, slot.max_count, slot.max_pages, slot.max_side)]
    marks = ["yes" if mark else "-" for mark in (slot.takes_url, slot.in_tool_result)]
    return " ".join([protocol, key, slot.name, types, *numbers, *marks])


def test_slots_equal_the_handwritten_table() -> None:
    """The expected table was written by hand, so that no number changes by accident."""
    rows = [
        format_slot(protocol, key, slot)
        for protocol in PROTOCOLS
        for key, kinds in SLOT_KINDS.items()
        for slot in [slots_for(protocol).get(kinds[0])]
        if slot is not None
    ]
    assert list(map(parse_line, rows)) == list(map(parse_line, LINES.format(**OFFICE).strip().splitlines()[1:]))
    assert {protocol: slots_for(protocol).max_request_bytes for protocol in PROTOCOLS} == REQUEST_BYTES
    assert {protocol: slots_for(protocol).tool_media.value for protocol in PROTOCOLS} == TOOLS


def test_anthropic_accepts_only_smaller_images_if_there_are_more_than_20() -> None:
    images = slots_for("anthropic").get(Kind.IMAGE)
    assert images is not None
    assert (images.side(20), images.side(21)) == (8000, 2000)


@pytest.mark.parametrize("kind", list(Kind))
def test_every_content_kind_belongs_to_exactly_one_slot(kind: Kind) -> None:
    assert [key for key, kinds in SLOT_KINDS.items() if kind in kinds] == [slot_key(kind)]


def test_ollama_template_overrides_only_its_own_slot_fields() -> None:
    openai, ollama = slots_for("openai"), slots_for("openai", "ollama")
    image, before = ollama.by_kind[Kind.IMAGE], openai.by_kind[Kind.IMAGE]
    assert not image.carries("image/gif")
    assert image.carries("image/png")
    assert (image.takes_url, image.name, image.max_count) == (False, before.name, before.max_count)
    assert ollama.get(Kind.DOCUMENT) is None
    assert ollama.get(Kind.AUDIO) == openai.get(Kind.AUDIO)
    assert ollama.tool_media is ToolMedia.HOIST


def test_configured_slot_limits_override_single_fields() -> None:
    slots = slots_for(
        "openai",
        "vllm",
        {
            "image": {"maxCount": 1},
            "file": {"mimeTypes": ["application/pdf"]},
            "audio": None,
            "toolMedia": "text",
            "maxRequestBytes": 1000,
        },
    )
    assert slots.by_kind[Kind.IMAGE].max_count == 1
    assert slots.by_kind[Kind.IMAGE].carries("image/png")
    assert slots.by_kind[Kind.OTHER].carries("application/pdf")
    assert slots.get(Kind.AUDIO) is None
    assert (slots.tool_media, slots.max_request_bytes) == (ToolMedia.TEXT, 1000)


@pytest.mark.parametrize(
    ("endpoint", "model", "expected"),
    [
        ("https://api.anthropic.com/v1", "claude-haiku-4-5", (7.5, 100, 100, True)),
        ("https://api.anthropic.com/v1", "claude-sonnet-4-20250514", (7.5, 100, 100, True)),
        ("https://api.anthropic.com/v1", "claude-sonnet-4-6", (7.5, 600, 600, True)),
        ("https://api.anthropic.com/v1", "claude-haiku-5-5", (7.5, 600, 600, True)),
        ("https://bedrock-mantle.us-east-1.api.aws/anthropic/v1", "anthropic.claude-opus-5", (3.75, 600, 100, False)),
        ("https://bedrock-runtime.eu-west-1.amazonaws.com/v1", "claude-opus-4-5", (3.75, 100, 100, False)),
        ("https://us-east5-aiplatform.googleapis.com/v1", "claude-opus-5", (3.75, 600, 100, False)),
        ("https://aiplatform.eu.rep.googleapis.com/v1", "claude-opus-5", (3.75, 600, 100, False)),
        ("https://bedrock.example.com/v1", "claude-opus-5", (7.5, 600, 600, True)),
    ],
)
def test_claude_slot_limits_depend_on_model_and_host(
    endpoint: str, model: str, expected: tuple[float, int, int, bool]
) -> None:
    """The model endpoint built for a call to Claude has the same slots."""
    slots = slots_for("anthropic", limits_template(endpoint, "anthropic"), None, None, model)
    image, file = slots.by_kind[Kind.IMAGE], slots.by_kind[Kind.DOCUMENT]
    assert ((image.max_bytes or 0) / MIB, image.max_count, file.max_pages, image.takes_url) == expected
    assert file.takes_url is image.takes_url
    assert model_endpoint("anthropic", Target("p", endpoint, model), Capabilities(("text",))).reader.slots.by_kind == (
        slots.by_kind
    )


def test_non_claude_model_on_a_cloud_host_has_the_protocol_limits() -> None:
    assert limits_template("https://bedrock-mantle.us-east-1.api.aws/v1", "openai") is None
    assert slots_for("openai", None, None, None, "claude-opus-5") == slots_for("openai")


def test_unknown_template_changes_nothing_and_unknown_protocol_accepts_no_media() -> None:
    assert slots_for("openai", "unknown-model") == slots_for("openai")
    assert slots_for("telepathy").by_kind == {}


@pytest.mark.parametrize(
    ("data", "field", "severity"),
    [
        ([], "limits", "error"),
        ({"image": []}, "limits.image", "error"),
        ({"image": {"maxBytes": "10 MB"}}, "limits.image.maxBytes", "error"),
        ({"image": {"maxBytes": -1}}, "limits.image.maxBytes", "error"),
        ({"image": {"maxBytes": True}}, "limits.image.maxBytes", "error"),
        ({"image": {"mimeTypes": "image/png"}}, "limits.image.mimeTypes", "error"),
        ({"image": {"capabilities": []}}, "limits.image.capabilities", "error"),
        ({"image": {"takesUrl": 1}}, "limits.image.takesUrl", "error"),
        ({"toolMedia": "throw away"}, "limits.toolMedia", "error"),
        ({"toolMedia": []}, "limits.toolMedia", "error"),
        ({"image": {"maxByte": 1}}, "limits.image.maxByte", "warning"),
        ({"smell": {}}, "limits.smell", "warning"),
    ],
)
def test_invalid_slot_limit_is_reported_with_its_path_and_ignored(data: object, field: str, severity: str) -> None:
    problems = check_limits(data)
    assert [(problem.field, problem.severity) for problem in problems] == [(field, severity)]
    assert slots_for("openai", None, data) == slots_for("openai")  # type: ignore[arg-type]


@pytest.mark.parametrize("protocol", list(PROTOCOLS))
@pytest.mark.parametrize("template", [None, "ollama", "openrouter", "deepseek"])
def test_slots_written_as_json_are_read_back_unchanged(protocol: str, template: str | None) -> None:
    """Administrators edit slots as JSON."""
    slots = slots_for(protocol, template)
    restored, problems = from_json(json.loads(json.dumps(to_json(slots))), slots.name)
    assert (restored, problems) == (slots, ())


@given(
    data=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(["image", "file", "maxBytes", "mimeTypes", "toolMedia", "name"]), inner, max_size=4
            )
        ),
        max_leaves=10,
    )
)
def test_any_json_parses_to_slots_and_problems(data: object) -> None:
    slots, problems = from_json(data)
    assert isinstance(slots, Slots)
    assert all(problem.message and problem.field.startswith("limits") for problem in problems)


@pytest.mark.parametrize(
    "preset", [preset for preset in PRESETS if preset.protocol == "openai"], ids=lambda preset: preset.name
)
def test_slots_of_a_preset_agree_with_its_quirks(preset: HostPreset) -> None:
    """A contradiction between slots and quirks would lose a file when the request is encoded."""
    unbounded = slots_for("openai", preset.slots)
    bounded = slots_for("openai", preset.slots, None, preset.quirks)
    assert preset.slots in TEMPLATES
    assert set(bounded.by_kind) == set(unbounded.by_kind)
    assert bounded.tool_media is unbounded.tool_media
    for kind, slot in bounded.by_kind.items():
        assert (slot.takes_url, slot.in_tool_result) == (
            unbounded.by_kind[kind].takes_url,
            unbounded.by_kind[kind].in_tool_result,
        )


@pytest.mark.parametrize(
    ("quirks", "kinds"),
    [
        ({"string_content_only": True}, set()),
        ({"file_part": "none"}, {Kind.IMAGE, Kind.AUDIO}),
        ({"video_part": "video_url"}, {Kind.IMAGE, Kind.AUDIO, Kind.VIDEO, Kind.DOCUMENT, Kind.OTHER}),
    ],
)
def test_override_cannot_add_a_slot_that_the_encoder_cannot_write(quirks: dict[str, object], kinds: set[Kind]) -> None:
    assert set(slots_for("openai", None, {"file": {"maxCount": 3}}, quirks).by_kind) == kinds


def test_quirks_determine_remote_urls_and_tool_result_media() -> None:
    slots = slots_for("openai", None, None, {"no_remote_image_urls": True, "tool_media": "native"})
    assert not slots.by_kind[Kind.IMAGE].takes_url
    assert slots.by_kind[Kind.IMAGE].in_tool_result
    assert slots_for("anthropic", None, None, {}) == slots_for("anthropic")
    assert slots_for("anthropic", None, None, {"tool_media": "text"}).tool_media is ToolMedia.TEXT


def test_agent_message_slots_and_get_artifact_slots_have_no_limits() -> None:
    for slots in (MESSAGE_SLOTS, GET_ARTIFACT_SLOTS):
        for slot in slots.by_kind.values():
            assert slot.carries("application/x-never-heard-of")
            assert (slot.max_bytes, slot.max_count, slot.max_side, slot.min_bytes) == (None, None, None, 0)


@pytest.mark.parametrize(
    ("template", "kind", "mib", "count"),
    [
        ("dashscope", Kind.IMAGE, 15, 250),
        ("dashscope", Kind.VIDEO, 15, None),
        ("deepseek", Kind.IMAGE, 24, 600),
        ("minimax", Kind.IMAGE, 7.5, None),
        ("nebius", Kind.IMAGE, 7.5, None),
    ],
)
def test_host_limit_of_20_mib_base64_allows_15_mib_files(
    template: str, kind: Kind, mib: float, count: int | None
) -> None:
    slot = slots_for("openai", template).by_kind[kind]
    assert (slot.max_bytes or 0) / MIB == mib
    if count is not None:
        assert slot.max_count == count
