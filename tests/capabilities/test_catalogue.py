"""The catalogue: what a model reads, answered offline with source and date; unknown stays unknown."""

from __future__ import annotations

import gzip
import json
from datetime import date
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.catalogue import build
from capabilities.core.providers.catalogue import Catalogue, default_catalogue, lookup, names_of, provider_of
from capabilities.core.vocabulary import STANDARD_CAPABILITIES

SMALL = Catalogue(
    {
        "source": "litellm 0",
        "checkedOn": "2026-01-02",
        "models": {
            "bird": ["openai", "vft", 100, 10],
            "hosta/birds/Bird": ["hosta", "vat", 80, None],
            "hostb/bird": ["hostb", "v", 90, 20],
            "hosta/x/fish": ["hosta", "vs", 8, None],
            "hostb/fish": ["hostb", "vt", None, None],
            "hosta_eu/worm": ["hosta_eu", "A", None, None],
        },
    },
    {
        "source": "patterns",
        "checkedOn": "2026-03-04",
        "patterns": [{"pattern": "*-eye*", "input": ["text", "vision"], "output": ["text"], "maxInputTokens": 5}],
    },
)


@pytest.mark.parametrize(
    ("model", "reads"),
    [
        ("gpt-4", {"text"}),
        ("gpt-4-vision-preview", {"text", "vision"}),
        ("gpt-4o", {"text", "vision", "file"}),
        ("gpt-4o-audio-preview", {"text", "audio"}),
        ("claude-3-sonnet-20240229", {"text", "vision"}),
        ("claude-sonnet-4-5", {"text", "vision", "file"}),
        ("gemini-1.5-pro", {"text", "vision", "audio", "video", "file"}),
        ("gemini-2.5-pro", {"text", "vision", "audio", "video", "file"}),
        ("qwen-vl-max", {"text", "vision"}),
        ("qwen2.5-72b", {"text"}),
        ("deepseek-chat", {"text"}),
        ("deepseek-ai/DeepSeek-V3", {"text"}),
        ("glm-4v", {"text", "vision"}),
        ("llama3.2-vision:11b", {"text", "vision"}),
        ("moonshot-v1-8k", {"text"}),
        ("qwen2.5vl:7b", {"text", "vision"}),
        ("qwen2.5:7b", {"text"}),
        ("qwen3:8b", {"text"}),
        ("gpt-oss:20b", {"text"}),
        ("mistral-small3.1:24b", {"text", "vision"}),
    ],
)
def test_models_people_use_are_known(model: str, reads: set[str]) -> None:
    """The names that no single package resolves, and what each reads."""
    entry = lookup(None, model)
    assert entry is not None
    assert set(entry.capabilities.input) == reads


def test_what_gpt_4o_reads_is_answered_with_source_and_date() -> None:
    """Offline, with provenance, limits in tokens."""
    entry = lookup("openai", "gpt-4o")
    assert entry is not None
    assert entry.capabilities.input == ("text", "vision", "file")
    assert entry.capabilities.output == ("text", "structured_output", "tool_calling")
    assert (entry.max_input_tokens, entry.max_output_tokens) == (128_000, 16_384)
    assert (entry.source, entry.checked_on) == ("litellm 1.109.1", date(2026, 11, 20))
    assert (entry.matched_by, entry.matched) == ("provider", "gpt-4o")


@pytest.mark.parametrize(
    "model",
    ["gpt-4o-mini-tts", "gpt-4o-transcribe", "gpt-4o-realtime-preview", "qwen3-embedding-8b", "qwen3-reranker-8b"],
)
def test_a_model_that_does_not_chat_is_not_taken_for_its_namesake(model: str) -> None:
    """The pattern of a family of chat models says nothing of its speech, embedding and picture models."""
    assert lookup(None, model) is None


@pytest.mark.parametrize("model", ["unheard-of", "", "text-embedding-3-small", "constructor", "__class__"])
def test_a_model_nobody_lists_stays_unknown(model: str) -> None:
    """Unknown is None, so that it is shown as unknown, not as text only."""
    assert lookup("openai", model) is None


@pytest.mark.parametrize(
    ("hint", "model", "matched_by", "reads", "limit"),
    [
        ("https://api.openai.com/v1", "bird", "provider", ("text", "vision", "file"), 100),
        (None, "bird", "vendor", ("text", "vision", "file"), 100),
        ("somewhere", "BIRD-latest", "vendor", ("text", "vision", "file"), 100),
        (None, "ocean/fish", "hosts", ("text", "vision"), 8),
        (None, "fish-20260101", "hosts", ("text", "vision"), 8),
        (None, "hawk-eye-2", "pattern", ("text", "vision"), 5),
    ],
)
def test_the_asked_provider_comes_first_then_the_vendor_then_what_hosts_agree_on(
    hint: str | None, model: str, matched_by: str, reads: tuple[str, ...], limit: int
) -> None:
    """A capability is a property of (provider, model); the answer says how it was found."""
    entry = SMALL.lookup(hint, model)
    assert entry is not None
    assert (entry.matched_by, entry.capabilities.input, entry.max_input_tokens) == (matched_by, reads, limit)


def test_hosts_that_disagree_are_taken_at_their_least() -> None:
    """Only what every host lists is promised, with the smallest limit."""
    entry = SMALL.lookup(None, "fish")
    assert entry is not None
    assert entry.capabilities.output == ("text",)
    assert entry.max_output_tokens is None


def test_a_pattern_tells_its_own_source_and_date() -> None:
    """Provenance of the hand-kept table is its own."""
    entry = SMALL.lookup(None, "hawk-eye")
    assert entry is not None
    assert (entry.source, entry.checked_on, entry.matched) == ("patterns", date(2026, 3, 4), "*-eye*")


@pytest.mark.parametrize(
    ("hint", "provider"),
    [
        ("https://generativelanguage.googleapis.com/v1beta", "gemini"),
        ("https://open.bigmodel.cn/api/paas/v4", "zai"),
        ("https://ark.cn-beijing.volces.com/api/v3", "volcengine"),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "dashscope"),
        ("Azure OpenAI", "azure"),
        ("siliconflow", None),
        ("", None),
        (None, None),
    ],
)
def test_a_providers_name_preset_or_address_tells_who_it_is(hint: str | None, provider: str | None) -> None:
    """Unknown hosts are nobody: their models are looked up by name alone."""
    assert provider_of(hint) == provider


def test_a_name_is_tried_as_it_is_then_without_tag_and_date() -> None:
    """The exact version wins over the family."""
    assert list(names_of("openai/GPT-4o-2024-08-06")) == ["gpt-4o-2024-08-06", "gpt-4o"]
    assert list(names_of("qwen-max-latest")) == ["qwen-max-latest", "qwen-max"]
    assert list(names_of("llama3.2-vision:11b")) == ["llama3.2-vision:11b", "llama3.2-vision"]


@given(st.none() | st.text(), st.text() | st.from_regex(r"[a-z/:@*\[\]-]+(-latest|-20250101)*", fullmatch=True))
def test_any_question_is_answered_with_standard_words_or_none(hint: str | None, model: str) -> None:
    """Never raises; what it says are standard capabilities that begin with text."""
    entry = lookup(hint, model)
    if entry is not None:
        for side in (entry.capabilities.input, entry.capabilities.output):
            assert side[0] == "text"
            assert set(side) <= set(STANDARD_CAPABILITIES)


def test_the_extract_is_small_and_read_once() -> None:
    """At most 50 KB in the repository; the second question reads no file."""
    data = files("capabilities.catalogue").joinpath("models.json.gz").read_bytes()
    assert len(data) < 50_000
    assert default_catalogue() is default_catalogue()
    document = json.loads(gzip.decompress(data))
    assert len(document["models"]) > 2_000
    assert "Permission is hereby granted" in files("capabilities.catalogue").joinpath("NOTICE").read_text()


def test_every_hand_kept_pattern_can_be_reached() -> None:
    """No pattern stands behind a wider one that always answers first, and all say standard words."""
    document = json.loads(files("capabilities.catalogue").joinpath("patterns.json").read_text())
    only_patterns = Catalogue({"source": "", "checkedOn": "2026-01-01", "models": {}}, document)
    for entry in document["patterns"]:
        sample = entry["pattern"].replace("[4-9]", "4").replace("[1-9]", "1").replace("*", "x")
        found = only_patterns.lookup(None, sample)
        assert found is not None
        assert found.matched == entry["pattern"], sample
        assert set(entry["input"] + entry["output"]) <= set(STANDARD_CAPABILITIES)


def test_the_extract_takes_chat_models_that_say_something() -> None:
    """The build keeps flags and limits; a model that declares nothing, or does not chat, stays out."""
    models = {
        "chatty": {
            "mode": "chat",
            "litellm_provider": "p",
            "supports_vision": True,
            "supports_pdf_input": False,
            "supported_modalities": ["text", "audio"],
            "supported_output_modalities": ["text", "audio"],
            "supports_function_calling": True,
            "max_input_tokens": 10.0,
            "max_output_tokens": "as many as you like",
        },
        "silent": {"mode": "chat", "max_input_tokens": 10},
        "painter": {"mode": "image_generation", "supports_vision": True},
        "reader": {"mode": "responses", "supports_vision": False},
    }
    assert dict(build.rows(models)) == {"chatty": ["p", "vatA", 10, None], "reader": ["", "", None, None]}
