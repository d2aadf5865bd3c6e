"""The tables of well-known hosts (presets) and of their deviations (quirks) are complete and valid."""

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
"""Hosts that must be known, with their base URLs. Keys are sent to no other address."""


def test_every_well_known_host_has_a_whole_row() -> None:
    """A row has names in both languages, a URL without trailing slash, a protocol, valid quirks and a source."""
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


def test_a_row_s_slots_are_a_template_or_its_protocol_alone() -> None:
    """Hosts with their own limits refer to an existing template."""
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
def test_a_host_is_known_by_its_whole_name(host: str, name: str | None) -> None:
    """A host's preset is found by its whole name, and a local server has no preset."""
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
def test_the_protocol_is_read_from_the_endpoint(endpoint: str, protocol: str) -> None:
    """The protocol follows from the endpoint's path, else from its host. The default is openai."""
    assert endpoint_protocol(endpoint) == protocol


def test_a_providers_own_option_takes_precedence_over_its_hosts() -> None:
    """A provider's own quirk takes precedence over its host's. Null counts as absent."""
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
def test_invalid_option_is_reported_with_its_path(quirks: Any, field: str, constraint: str, severity: str) -> None:
    """An invalid value of a quirk is an error, an unknown quirk a warning."""
    (problem,) = check_quirks(quirks)
    assert (problem.field, problem.constraint, problem.severity) == (field, constraint, severity)
    assert field in problem.message


@given(
    st.dictionaries(
        st.sampled_from(list(QUIRKS)), st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())
    )
)
def test_an_option_in_effect_is_always_valid(quirks: dict[str, Any]) -> None:
    """No matter what is configured, the effective value of a quirk is valid: an invalid value counts as absent."""
    for protocol in PROTOCOLS:
        effective = {name: quirk(quirks, name, protocol) for name in QUIRKS}
        assert check_quirks(effective) == ()


def test_every_option_says_what_it_means_in_two_sentences_at_most() -> None:
    """A quirk's meaning has at most two sentences, and its `by_protocol` names only protocols."""
    for known in QUIRKS.values():
        assert known.meaning.endswith(".")
        assert known.meaning[:-1].count(". ") <= 1
        assert set(known.by_protocol) <= set(PROTOCOLS)
