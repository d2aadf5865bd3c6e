"""The tables of well-known hosts (presets) and their deviations (quirks) are complete and valid."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.delivery import limits
from capabilities.core.protocols import PROTOCOLS
from capabilities.core.providers.presets import BY_NAME, PRESETS, endpoint_protocol, preset_for_host, quirks_for
from capabilities.core.providers.quirks import QUIRKS, check_quirks, quirk

ANYTHING = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
EXPECTED_URLS = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "gemini": "https://generativelanguage.googleapis.com/v1beta",
    "deepseek": "https://api.deepseek.com",
    "dashscope": "https://dashscope.aliyuncs.com/compatible-mode/v1",
    "zhipu": "https://open.bigmodel.cn/api/paas/v4",
    "moonshot": "https://api.moonshot.cn/v1",
    "ark": "https://ark.cn-beijing.volces.com/api/v3",
    "minimax": "https://api.minimaxi.com/v1",
    "qianfan": "https://qianfan.baidubce.com/v2",
    "hunyuan": "https://api.hunyuan.cloud.tencent.com/v1",
    "siliconflow": "https://api.siliconflow.cn/v1",
    "mistral": "https://api.mistral.ai/v1",
    "groq": "https://api.groq.com/openai/v1",
    "openrouter": "https://openrouter.ai/api/v1",
    "ollama": "http://127.0.0.1:11434/v1",
    "vllm": "http://127.0.0.1:8000/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
}
"""Presets that must exist, with their base URLs, to which the providers' keys are sent."""


def test_every_provider_preset_is_complete() -> None:
    """A preset has names in both languages, a URL without a trailing slash, a protocol, valid quirks and a source."""
    assert {name: BY_NAME[name].base_url for name in EXPECTED_URLS} == EXPECTED_URLS
    assert {preset.name: preset.protocol for preset in PRESETS if preset.protocol != "openai"} == {
        "openai-responses": "openai-responses",
        "anthropic": "anthropic",
        "gemini": "gemini",
    }
    assert len(BY_NAME) == len(PRESETS)
    for preset in PRESETS:
        assert preset.label_en
        assert preset.label_zh
        assert preset.protocol in PROTOCOLS
        assert preset.base_url.startswith("https://" if preset.needs_key else "http://127.0.0.1:")
        assert not preset.base_url.endswith("/")
        assert check_quirks(preset.quirks) == ()
        assert preset.source
        assert preset.checked_on
        assert bool(preset.key_url) is preset.needs_key


def test_slot_limits_of_a_preset_refer_to_an_existing_template() -> None:
    templates = set(limits.TEMPLATES)
    for name in ("mistral", "openrouter", "vllm", "ollama", "dashscope", "deepseek", "groq", "minimax", "mimo"):
        assert BY_NAME[name].slots in templates


@pytest.mark.parametrize(
    ("host", "name"),
    [
        ("api.deepseek.com", "deepseek"),
        ("API.DeepSeek.com.", "deepseek"),
        ("dashscope-intl.aliyuncs.com", "dashscope"),
        ("api.moonshot.ai", "moonshot"),
        ("evil-api.deepseek.com.example", None),
        ("127.0.0.1", None),
        ("", None),
    ],
)
def test_preset_is_found_only_by_the_complete_host_name(host: str, name: str | None) -> None:
    preset = preset_for_host(host)
    assert (preset.name if preset else None) == name


@pytest.mark.parametrize(
    ("endpoint", "protocol"),
    [
        ("https://api.openai.com/v1/chat/completions", "openai"),
        ("https://api.anthropic.com/v1/messages", "anthropic"),
        ("https://proxy.example/anthropic/v1/messages/", "anthropic"),
        ("https://generativelanguage.googleapis.com/v1beta", "gemini"),
        ("https://generativelanguage.googleapis.com/v1beta/openai/", "openai"),
        ("https://api.deepseek.com", "openai"),
        ("echo://local", "echo"),
        ("no url [", "openai"),
    ],
)
def test_protocol_is_detected_from_path_before_host(endpoint: str, protocol: str) -> None:
    assert endpoint_protocol(endpoint) == protocol


def test_provider_quirk_overrides_the_preset_quirk_of_the_host() -> None:
    endpoint = "https://api.mistral.ai/v1"
    assert quirks_for(endpoint, {})["input_audio_shape"] == "string"
    assert quirks_for(endpoint, {"input_audio_shape": "object"})["input_audio_shape"] == "object"
    assert quirks_for(endpoint, {"input_audio_shape": None})["input_audio_shape"] == "string"


@pytest.mark.parametrize(
    ("quirks", "field", "constraint", "severity"),
    [
        ({"max_tokens_field": "tokens"}, "quirks.max_tokens_field", "enum", "error"),
        ({"max_tokens_field": 3}, "quirks.max_tokens_field", "type", "error"),
        ({"sampling": "no"}, "quirks.sampling", "type", "error"),
        ({"drop_params": ["a", 3]}, "quirks.drop_params", "type", "error"),
        ({"anthropic_version": "2023\n"}, "quirks.anthropic_version", "type", "error"),
        ({"wings": True}, "quirks.wings", "enum", "warning"),
        ([], "quirks", "type", "error"),
    ],
)
def test_invalid_quirk_is_an_error_and_an_unknown_one_a_warning(
    quirks: Any, field: str, constraint: str, severity: str
) -> None:
    (problem,) = check_quirks(quirks)
    assert (problem.field, problem.constraint, problem.severity) == (field, constraint, severity)
    assert field in problem.message


@given(
    st.dictionaries(
        st.sampled_from(list(QUIRKS)), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
    )
)
def test_effective_quirks_are_always_valid(quirks: dict[str, Any]) -> None:
    for protocol in PROTOCOLS:
        effective = {name: quirk(quirks, name, protocol) for name in QUIRKS}
        assert check_quirks(effective) == ()


def test_every_quirk_is_documented_in_at_most_two_sentences() -> None:
    """A quirk's `by_protocol` contains only protocol names."""
    for known in QUIRKS.values():
        assert known.meaning.endswith(".")
        assert known.meaning[:-1].count(". ") <= 1
        assert set(known.by_protocol) <= set(PROTOCOLS)
