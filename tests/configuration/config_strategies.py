"""Hypothesis strategies for valid configuration files and arbitrary JSON."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

# Some of these names are special in JavaScript, or contain a dot, a space or Chinese characters.
SEED_TASKS = ["planning", "design", "chapter_generation", "a.b", "constructor", "__proto__", "规划", "with space"]

words = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=8).filter(
    lambda text: text.strip()
)
storable = st.characters(exclude_categories=["Cs"], exclude_characters="\0")
scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(10**6), 10**6)
    # Use 0.0 instead of -0.0, because databases return 0.0 for both.
    | st.floats(-1e6, 1e6).map(lambda number: number or 0.0)
    | st.text(storable, max_size=8)
)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(storable, max_size=6), inner, max_size=3),
    max_leaves=8,
)
unknown_fields = st.dictionaries(words.map(lambda text: f"x-{text}"), json_values, max_size=3)
hosts = st.sampled_from(["api.openai.com", "api.example.com", "open.bigmodel.cn", "10.0.0.5:8080", "localhost:11434"])
paths = st.sampled_from(["/v1", "/v1/chat/completions", "/v1/messages", "/api/paas/v4", "/v1/", ""])
urls = st.builds(lambda host, path: f"https://{host}{path}", hosts, paths)
temperatures = st.integers(0, 2) | st.floats(0, 2)
literal_keys = st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz0123456789"), min_size=12, max_size=20).map(
    lambda text: f"sk-{text}"
)
key_fields = (
    st.sampled_from(["NOT_NEEDED", "", "xxx", "YOUR_API_KEY_HERE", "${LLM_PROVIDER_SHARED_API_KEY}", "${SECRET_KEY}"])
    | literal_keys
)
names = st.sampled_from(["openai", "anthropic", "a/b", "a", "提供商", "Qwen-2.5", "zhipu"]) | words


def optional(fields: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=fields)


key_names = st.text(st.sampled_from("ab 密-"), max_size=6).map(str.strip)

own_provider_keys = optional(
    {
        "displayName": st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6),
        "protocol": st.sampled_from(["openai", "openai-responses", "anthropic", "gemini", "echo", None]),
        "enabled": st.booleans() | st.none(),
        "quirks": st.dictionaries(words, st.booleans(), max_size=2),
        "timeouts": st.dictionaries(words, st.integers(1, 60), max_size=2),
        "proxy": st.sampled_from(["default", "none", "http://proxy:3128"]),
        "vendorTools": st.lists(words, max_size=2) | st.none(),
        "keyName": st.sampled_from(["", "first", "主密钥", None]),
        "keyEnabled": st.booleans() | st.none(),
    }
)
own_route_keys = optional(
    {
        "onDrop": st.sampled_from(["drop", "refuse", None]),
        "onOverflow": st.sampled_from(["send", "skip", None]),
        "directive": st.sampled_from(["language", "none", None]),
        "allowN": st.sampled_from([True, False, None]),
        "keepAliveSeconds": st.integers(0, 60) | st.floats(0, 9) | st.none(),
        "onError": st.sampled_from(["seed", "resilient", "strict", {"http_404": "next"}, {}, None]),
        "retries": st.integers(0, 5) | st.none(),
        "deadline": st.integers(1, 600) | st.fixed_dictionaries({"total": st.floats(1, 9), "firstContent": st.just(5)}),
        "content": st.dictionaries(words, st.booleans(), max_size=2),
        "enabled": st.booleans(),
    }
)


def further_keys(keys: st.SearchStrategy[str]) -> st.SearchStrategy[dict[str, Any]]:
    fields = {"name": key_names.filter(bool), "apiKey": keys}
    entries = st.fixed_dictionaries(fields, optional={"enabled": st.just(False)})
    several = st.lists(entries, max_size=3, unique_by=lambda item: item["name"])
    return optional({"keys": several | st.none()})


@st.composite
def provider_entries(
    draw: st.DrawFn, *, with_own_fields: bool = True, keys: st.SearchStrategy[str] = key_fields
) -> dict[str, Any]:
    entry = {
        "providerName": draw(names),
        "apiKey": draw(keys),
        "endpoint": draw(urls),
        "defaultModel": draw(words),
    }
    return entry | (
        draw(own_provider_keys) | draw(further_keys(keys)) | draw(unknown_fields) if with_own_fields else {}
    )


@st.composite
def route_entries(draw: st.DrawFn, providers: list[str], *, with_own_fields: bool = True) -> dict[str, Any]:
    name = st.sampled_from(providers)
    parameters = {"model": words, "temperature": temperatures, "maxTokens": st.integers(1, 10**5)}
    fallback: st.SearchStrategy[Any] = name
    if with_own_fields:
        parameters |= {"model": words | st.just("") | st.none(), "temperature": temperatures | st.none()}
        fallback |= st.builds(lambda provider, model: f"{provider}/{model}", name, words).filter(
            lambda text: text in providers or text.partition("/")[0] in providers
        )
        own_candidate = {"provider": name}
        fallback |= st.fixed_dictionaries(own_candidate, optional=parameters | {"x-note": json_values})
    chain = st.lists(fallback, max_size=3)
    entry = draw(st.fixed_dictionaries({"provider": name}, optional=parameters | {"fallback": chain}))
    return entry | (draw(own_route_keys) | draw(unknown_fields) if with_own_fields else {})


@st.composite
def routing_files(
    draw: st.DrawFn, *, with_own_fields: bool = True, keys: st.SearchStrategy[str] = key_fields
) -> dict[str, Any]:
    """Build a valid `llm-routing.json`.

    If `with_own_fields` is true, add fields that only this program has, unusual but legal notation, and unknown fields.
    """
    entries = st.lists(
        provider_entries(with_own_fields=with_own_fields, keys=keys),
        min_size=1,
        max_size=4,
        unique_by=lambda item: item["providerName"],
    )
    providers = draw(entries)
    provider_names = [item["providerName"] for item in providers]
    tasks = draw(st.lists(st.sampled_from(SEED_TASKS) | words, max_size=3, unique=True))
    routing = {
        task: draw(route_entries(provider_names, with_own_fields=with_own_fields)) for task in [*tasks, "default"]
    }
    value: dict[str, Any] = {"providers": providers, "routing": routing}
    if draw(st.booleans()):
        value["defaultLanguage"] = draw(st.sampled_from(["en", "zh", "zh-CN"]))
    return value | (draw(unknown_fields) if with_own_fields else {})


capability_lists = st.lists(
    st.sampled_from(["text", "vision", "audio", "file", "structured_output", "tool_calling", "自定义", "video"]),
    max_size=4,
    unique=True,
)
capabilities = st.fixed_dictionaries({"input": capability_lists, "output": capability_lists})
odd_capabilities = (
    st.none()
    | st.just({})
    | st.fixed_dictionaries({"input": capability_lists})
    | st.fixed_dictionaries({"input": st.just(["text", "text"]), "output": st.just(["text"])})
    | st.sampled_from(["text", [1], {"input": "vision"}, {"input": [1, ""]}])
)


@st.composite
def service_entries(draw: st.DrawFn, *, keys: st.SearchStrategy[str] = key_fields) -> dict[str, Any]:
    entry = {
        "id": draw(words),
        "name": draw(words),
        "baseURL": draw(urls),
        "model": draw(words),
        "apiKey": draw(keys),
        "capabilityTags": draw(st.lists(words, max_size=2)),
        "description": draw(st.text(st.characters(exclude_categories=["Cs", "Cc"]), max_size=6)),
    }
    if draw(st.booleans()):
        entry["capabilities"] = draw(capabilities | odd_capabilities)
    ours = {
        "enabled": st.booleans(),
        "routed": st.booleans(),
        "timeouts": st.dictionaries(words, st.integers(1, 60), max_size=2),
        "extraBody": st.dictionaries(words, scalars, max_size=2),
    }
    own_fields = optional({**ours, "maxTokens": scalars, "timeout": scalars})
    return entry | draw(own_fields) | draw(unknown_fields)


@st.composite
def services_files(draw: st.DrawFn, *, keys: st.SearchStrategy[str] = key_fields) -> dict[str, Any]:
    entries = st.lists(service_entries(keys=keys), max_size=4, unique_by=lambda item: item["id"])
    return {"services": draw(entries)} | draw(unknown_fields)
