"""The model catalogue says what a model reads, with sources and a date, and needs no network.

A model that no source mentions has no entry.
"""

from __future__ import annotations

import json
from datetime import date
from importlib.resources import files

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capabilities.core.providers.catalogue import (
    Catalogue,
    Fact,
    FactVerdict,
    Retirement,
    StatedLimit,
    default_catalogue,
    find_host,
    list_lookup_names,
    lookup,
    retirement,
)
from capabilities.core.providers.catalogue.document import CatalogueDocument, SourceNote
from capabilities.core.providers.catalogue.judgement import Statement, Witness, judge_fact, judge_limit
from capabilities.core.providers.catalogue.names import FORMS, NameForm, version_name
from capabilities.core.vocabulary import STANDARD_CAPABILITIES

FIRST, SECOND = SourceNote("List", "1", "2026-01-02", "MIT"), SourceNote("Index", "2", "2026-02-03", "MIT")
SMALL = Catalogue(
    CatalogueDocument(
        (FIRST, SECOND),
        {
            "openai": {"gpt-bird": "vf-a,100,10;vf-a,100,12", "gpt-fish": "v,90,;", "gpt-owl": "v-f,1000,;f-v,500,"},
            "groq": {"gpt-bird": "v-fa,80,;"},
            "*": {"fish": "v-a~f,8,;v,,20"},
        },
        {
            "openai": {"gpt-bird": [[2, "2026-11-30"], [0, "2026-12-01"]], "gpt-fish": [[0, "2027-01-01"]]},
            "azure": {"gpt-bird": [[0, "2027-06-01"]]},
        },
        (SourceNote("Maker", "3", "2026-01-01"),),
    ),
    {
        "source": "patterns",
        "checkedOn": "2026-03-04",
        "patterns": [{"pattern": "*-eye*", "input": ["text", "vision"], "output": ["text"], "maxInputTokens": 5}],
    },
    {
        "source": "by hand",
        "checkedOn": "2026-03-04",
        "retirements": [
            {"host": "openai", "model": "gpt-bird", "successor": "gpt-hawk", "source": "https://example.org/ends"},
            {
                "host": "openai",
                "model": "gpt-owl",
                "ends": "2026-12-24",
                "successor": "gpt-hawk",
                "source": "https://example.org/ends",
            },
        ],
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
def test_catalogue_knows_models_in_common_use(model: str, reads: set[str]) -> None:
    """No single source lists all models in common use."""
    entry = lookup(None, model)
    assert entry is not None
    assert set(entry.capabilities.input) == reads


def test_catalogue_entry_has_token_limits_sources_and_date() -> None:
    entry = lookup("openai", "gpt-4o")
    assert entry is not None
    assert entry.capabilities.input == ("text", "vision", "file")
    assert entry.capabilities.output == ("text", "structured_output", "tool_calling")
    assert (entry.max_input_tokens, entry.max_output_tokens) == (128_000, 16_384)
    assert (entry.source, entry.checked_on) == ("LiteLLM 1.109.1, models.dev 2026-08-18", date(2026, 11, 20))
    assert (entry.matched_by, entry.matched) == ("provider", "gpt-4o")


@pytest.mark.parametrize(
    "model",
    ["gpt-4o-mini-tts", "gpt-4o-transcribe", "gpt-4o-realtime-preview", "qwen3-embedding-8b", "qwen3-reranker-8b"],
)
def test_non_chat_model_does_not_match_the_pattern_of_its_family(model: str) -> None:
    """Speech, embedding, reranking and transcription models cannot chat."""
    assert lookup(None, model) is None


@pytest.mark.parametrize("model", ["unheard-of", "", "text-embedding-3-small", "constructor", "__class__"])
def test_unknown_model_has_no_catalogue_entry(model: str) -> None:
    """An unknown model must not be shown as reading text only."""
    assert lookup("openai", model) is None


@pytest.mark.parametrize(
    ("hint", "model", "matched_by", "reads", "limit"),
    [
        ("https://api.openai.com/v1", "gpt-bird", "provider", ("text", "vision", "file"), 100),
        ("groq", "gpt-bird", "provider", ("text", "vision"), 80),
        (None, "GPT-Bird", "maker", ("text", "vision", "file"), 100),
        ("somewhere", "gpt-bird-latest", "maker", ("text", "vision", "file"), 100),
        ("groq", "gpt-fish", "maker", ("text", "vision"), 90),
        (None, "ocean/fish", "hosts", ("text", "vision"), 8),
        (None, "fish-20260101", "hosts", ("text", "vision"), 8),
        (None, "hawk-eye-2", "pattern", ("text", "vision"), 5),
    ],
)
def test_entry_of_the_provider_precedes_entries_of_maker_and_other_hosts(
    hint: str | None, model: str, matched_by: str, reads: tuple[str, ...], limit: int
) -> None:
    entry = SMALL.lookup(hint, model)
    assert entry is not None
    assert (entry.matched_by, entry.capabilities.input, entry.max_input_tokens) == (matched_by, reads, limit)


def test_entry_matched_by_pattern_has_the_source_and_date_of_the_pattern() -> None:
    entry = SMALL.lookup(None, "hawk-eye")
    assert entry is not None
    assert (entry.source, entry.checked_on, entry.matched) == ("patterns", date(2026, 3, 4), "*-eye*")
    assert {fact.verdict for fact in entry.facts.values()} == {FactVerdict.PATTERN}


def test_sources_that_agree_or_disagree_determine_the_verdict_of_a_fact() -> None:
    """A fact about which the sources disagree counts as "no"."""
    bird, fish, owl = (SMALL.lookup("openai", name) for name in ("gpt-bird", "gpt-fish", "gpt-owl"))
    assert bird
    assert fish
    assert owl
    assert bird.facts["input", "vision"] == Fact(True, FactVerdict.AGREED, ("List 1", "Index 2"))
    assert bird.facts["input", "audio"] == Fact(False, FactVerdict.AGREED, (), ("List 1", "Index 2"))
    assert ("input", "video") not in bird.facts
    assert fish.facts["input", "vision"] == Fact(True, FactVerdict.ONE_SOURCE, ("List 1",))
    assert owl.facts["input", "vision"] == Fact(False, FactVerdict.CONTESTED, ("List 1",), ("Index 2",))
    assert owl.capabilities.input == ("text",)
    assert set(owl.contested) == {("input", "vision"), ("input", "file")}


def test_fact_is_contested_if_hosts_within_one_source_disagree() -> None:
    entry = SMALL.lookup(None, "fish")
    assert entry is not None
    assert entry.facts["input", "file"] == Fact(False, FactVerdict.CONTESTED, ("List 1",), ("List 1",))


def test_smallest_token_limit_is_used_and_differences_beyond_rounding_are_contested() -> None:
    """The limits 1,000,000 and 1,048,576 count as equal, but 10 and 12 do not."""
    bird, owl = SMALL.lookup(None, "gpt-bird"), SMALL.lookup(None, "gpt-owl")
    assert bird
    assert bird.max_output
    assert owl
    assert owl.max_input == StatedLimit(500, FactVerdict.CONTESTED, (("List 1", 1000), ("Index 2", 500)))
    assert (bird.max_output.tokens, bird.max_output.verdict) == (10, FactVerdict.CONTESTED)
    assert judge_limit([("a", 1_000_000), ("b", 1_048_576)]) == StatedLimit(
        1_000_000, FactVerdict.AGREED, (("a", 1_000_000), ("b", 1_048_576))
    )


def test_provider_model_list_settles_a_contested_fact_only_with_another_source() -> None:
    yes, no = Statement(yes="v"), Statement(no="v")
    with_second_list = judge_fact("v", [Witness("a", yes), Witness("b", no), Witness("own", no, own=True)])
    own_list_alone = judge_fact("v", [Witness("a", yes), Witness("b", yes), Witness("own", no, own=True)])
    assert with_second_list == Fact(False, FactVerdict.AGREED, ("a",), ("b", "own"))
    assert own_list_alone == Fact(False, FactVerdict.CONTESTED, ("a", "b"), ("own",))


def test_contested_vision_of_deepseek_v4_flash_counts_as_unsupported() -> None:
    """LiteLLM says that the model reads images. models.dev says no, and four bug reports say that it returns 400."""
    entry = lookup("deepseek", "deepseek-v4-flash")
    assert entry is not None
    assert entry.capabilities.input == ("text",)
    assert entry.contested == {
        ("input", "vision"): Fact(False, FactVerdict.CONTESTED, ("LiteLLM 1.109.1",), ("models.dev 2026-08-18",))
    }


@pytest.mark.parametrize(
    ("hint", "model", "day", "source"),
    [
        ("openai", "gpt-bird", date(2026, 11, 30), "Maker 3"),
        (None, "gpt-bird", date(2026, 11, 30), "Maker 3"),
        ("my gateway", "openai/gpt-bird", date(2026, 11, 30), "Maker 3"),
        ("azure", "gpt-bird", date(2027, 6, 1), "List 1"),
        ("openai", "gpt-fish", date(2027, 1, 1), "List 1"),
        ("openai", "gpt-owl", date(2026, 12, 24), "by hand"),
    ],
)
def test_retirement_date_from_the_host_precedes_the_date_from_the_maker(
    hint: str | None, model: str, day: date, source: str
) -> None:
    last_day = SMALL.retirement(hint, model)
    assert last_day is not None
    assert (last_day.day, last_day.source) == (day, source)


def test_retirement_date_of_the_maker_does_not_apply_to_another_host() -> None:
    """A reseller may serve a model that its maker has retired."""
    assert SMALL.retirement("groq", "gpt-bird") is None
    assert SMALL.retirement(None, "gpt-bird-2026-01-01") is None
    assert SMALL.retirement(None, "unheard-of") is None


def test_retirement_names_disagreeing_sources_and_the_successor_model() -> None:
    last_day = SMALL.retirement("openai", "gpt-bird")
    assert last_day == Retirement(
        model="gpt-bird",
        day=date(2026, 11, 30),
        source="Maker 3",
        others=(("List 1", date(2026, 12, 1)),),
        successor="gpt-hawk",
        successor_source="https://example.org/ends",
    )
    assert (SMALL.retirement("openai", "gpt-fish") or last_day).successor == ""


@pytest.mark.parametrize(
    ("hint", "model", "day"),
    [
        ("openai", "gpt-4", date(2026, 10, 23)),
        ("anthropic", "claude-sonnet-4-5", date(2026, 11, 30)),
        ("deepseek", "deepseek-chat", date(2026, 7, 24)),
        ("moonshot", "moonshot-v1-8k", date(2026, 8, 31)),
        ("gemini", "gemini-2.5-pro", date(2026, 12, 1)),
    ],
)
def test_retirement_dates_of_common_models_are_known(hint: str, model: str, day: date) -> None:
    """The dates come from LiteLLM and the SDKs of OpenAI and Anthropic."""
    last_day = retirement(hint, model)
    assert last_day is not None
    assert last_day.day == day


@pytest.mark.parametrize(
    ("hint", "provider"),
    [
        ("https://generativelanguage.googleapis.com/v1beta", "gemini"),
        ("https://open.bigmodel.cn/api/paas/v4", "zai"),
        ("https://ark.cn-beijing.volces.com/api/v3", "volcengine"),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", "dashscope"),
        ("Azure OpenAI", "azure"),
        ("siliconflow", "siliconflow"),
        ("https://api.xiaomimimo.com/v1", "xiaomi"),
        ("my gateway", None),
        ("", None),
        (None, None),
    ],
)
def test_provider_is_recognized_by_name_preset_or_url(hint: str | None, provider: str | None) -> None:
    """An unknown host belongs to no known provider, so its models are looked up only by name."""
    assert find_host(hint) == provider


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.example.split(" ")[0])
def test_each_model_name_pattern_works_as_documented_by_its_example(form: NameForm) -> None:
    spelling, _, name = form.example.partition(" is ")
    assert name.removeprefix("a ") in list(list_lookup_names(spelling))
    assert form.version == (version_name(spelling) == name) == (not name.startswith("a "))


def test_model_name_is_looked_up_unchanged_then_without_tag_and_date() -> None:
    assert list(list_lookup_names("openai/GPT-4o-2024-08-06")) == ["gpt-4o-2024-08-06", "gpt-4o"]
    assert list(list_lookup_names("qwen-max-latest")) == ["qwen-max-latest", "qwen-max"]
    assert list(list_lookup_names("llama3.2-vision:11b")) == ["llama3.2-vision:11b", "llama3.2-vision"]
    assert list(list_lookup_names("us.anthropic.claude-opus-4-5-20251101-v1:0"))[1] == "claude-opus-4-5-20251101"
    assert list(list_lookup_names("deepseek-v3")) == ["deepseek-v3"]


@given(st.none() | st.text(), st.text() | st.from_regex(r"[a-z/:@*\[\]-]+(-latest|-20250101)*", fullmatch=True))
def test_lookup_of_any_name_returns_only_standard_capabilities(hint: str | None, model: str) -> None:
    entry = lookup(hint, model)
    if entry is not None:
        for names in (entry.capabilities.input, entry.capabilities.output):
            assert names[0] == "text"
            assert set(names) <= set(STANDARD_CAPABILITIES)


def test_shipped_catalogue_is_below_50_kb_and_loaded_once() -> None:
    assert len(files("capabilities.catalogue").joinpath("models.json.gz").read_bytes()) < 50_000
    assert default_catalogue() is default_catalogue()


def test_every_announced_successor_model_is_in_the_catalogue_and_not_retiring() -> None:
    table = json.loads(files("capabilities.catalogue").joinpath("retirements.json").read_text())
    for row in table["retirements"]:
        assert row["source"].startswith("https://"), row
        assert lookup(row["host"], row["successor"]) is not None, row
        assert retirement(row["host"], row["successor"]) is None, row
        last_day = retirement(row["host"], row["model"])
        assert last_day is not None, row
        assert last_day.successor == row["successor"], row


def test_no_catalogue_pattern_is_shadowed_by_an_earlier_pattern() -> None:
    document = json.loads(files("capabilities.catalogue").joinpath("patterns.json").read_text())
    only_patterns = Catalogue(CatalogueDocument((FIRST,), {}, {}), document)
    for entry in document["patterns"]:
        # Build a name that matches the pattern.
        sample = entry["pattern"].replace("[4-9]", "4").replace("[1-9]", "1").replace("*", "x")
        match = only_patterns.lookup(None, sample)
        assert match is not None
        assert match.matched == entry["pattern"], sample
        assert set(entry["input"] + entry["output"]) <= set(STANDARD_CAPABILITIES)
