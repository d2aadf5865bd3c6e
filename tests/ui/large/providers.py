"""Providers in every state and their model services, made from the product's presets and catalogue.

This module must not use Django, because it chooses the environment variables that hold keys before the settings are
loaded.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from enum import StrEnum
from random import Random

from capabilities.core.providers.catalogue import CELLS, FactVerdict, default_catalogue, find_maker
from capabilities.core.providers.catalogue.names import is_chat_model
from capabilities.core.providers.presets import PRESETS
from capabilities.core.vocabulary import Capabilities, Cell, Source
from routing_admin.core.configuration.specs import NO_KEY, KeyKind, KeySpec, ProviderSpec, ServiceSpec
from tests.ui.large import KEY_NAMES, WIDE, object_name

RETIRED_BY = date(2027, 1, 31)
"""Models that will be retired after this day count as available."""
LOCAL_DOMAIN = "llm.example.net"
"""The domain of the company's own servers. Since it is reserved for examples, no call can reach a real server."""


class ProviderState(StrEnum):
    """A provider's state. `ready` is the most frequent one."""

    READY = "ready"
    NO_KEY = "no_key"
    DISABLED = "disabled"
    FORBIDDEN = "forbidden"
    REFUSED = "refused"
    BUSY = "busy"
    SLOW = "slow"
    SEVERAL_KEYS = "several_keys"


SHARES: Mapping[ProviderState, float] = {
    ProviderState.NO_KEY: 0.11,
    ProviderState.DISABLED: 0.07,
    ProviderState.FORBIDDEN: 0.03,
    ProviderState.REFUSED: 0.03,
    ProviderState.BUSY: 0.03,
    ProviderState.SLOW: 0.03,
    ProviderState.SEVERAL_KEYS: 0.05,
}
"""The fraction of the providers that is in each state. At least one provider is in each state."""
CALLABLE = frozenset({ProviderState.READY, ProviderState.BUSY, ProviderState.SLOW, ProviderState.SEVERAL_KEYS})


@dataclass(frozen=True)
class ProviderTemplate:
    """A provider before a state is assigned. `models` are models that the catalogue does not list for `host`."""

    name: str
    endpoint: str
    host: str = ""
    models: tuple[str, ...] = ()
    protocol: str = "openai"
    display_name: str = ""
    needs_key: bool = True
    weight: int = 3


HOSTED = (
    ProviderTemplate("together", "https://api.together.xyz/v1", "together_ai", weight=6),
    ProviderTemplate("fireworks", "https://api.fireworks.ai/inference/v1", "fireworks_ai", weight=5),
    ProviderTemplate("xai", "https://api.x.ai/v1", "xai", weight=4),
    ProviderTemplate("deepinfra", "https://api.deepinfra.com/v1/openai", "deepinfra", weight=5),
    ProviderTemplate("cerebras", "https://api.cerebras.ai/v1", "cerebras"),
    ProviderTemplate("novita", "https://api.novita.ai/v3/openai", "novita", weight=4),
    ProviderTemplate("perplexity", "https://api.perplexity.ai", "perplexity"),
    ProviderTemplate("sambanova", "https://api.sambanova.ai/v1", "sambanova", weight=2),
    ProviderTemplate("nebius", "https://api.studio.nebius.ai/v1", "nebius", weight=4),
    ProviderTemplate("cohere", "https://api.cohere.ai/compatibility/v1", "cohere", weight=2),
    ProviderTemplate("aihubmix", "https://aihubmix.com/v1", "aihubmix", weight=5),
    ProviderTemplate("stepfun", "https://api.stepfun.com/v1", "stepfun", display_name="阶跃星辰"),
    ProviderTemplate("zai", "https://api.z.ai/api/paas/v4", "zai", display_name="Z.ai"),
    ProviderTemplate("moonshot-intl", "https://api.moonshot.ai/v1", "moonshot"),
    ProviderTemplate("minimax-intl", "https://api.minimax.io/v1", "minimax"),
    ProviderTemplate("dashscope-intl", "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", "dashscope", weight=5),
    ProviderTemplate(
        "databricks", "https://adb-3142857.7.azuredatabricks.net/serving-endpoints", "databricks", weight=4
    ),
    ProviderTemplate(
        "openai-batch", "https://api.openai.com/v1", "openai", display_name="OpenAI (batch account)", weight=5
    ),
    ProviderTemplate("openai-eu", "https://eu.api.openai.com/v1", "openai", display_name="OpenAI EU", weight=4),
    ProviderTemplate("anthropic-research", "https://api.anthropic.com/v1", "anthropic", protocol="anthropic", weight=4),
    ProviderTemplate(
        "deepseek-spare", "https://api.deepseek.com", "deepseek", display_name="DeepSeek 备用账号", weight=2
    ),
    ProviderTemplate(
        "siliconflow-team-b", "https://api.siliconflow.cn/v1", "siliconflow", display_name="硅基流动（二组）", weight=4
    ),
)
REGIONS = ("westeurope", "swedencentral", "eastus2", "francecentral", "japaneast", "uksouth", "australiaeast")
CLOUD_REGIONS = ("eu-central-1", "us-east-1", "us-west-2", "ap-southeast-1")
CITIES = ("berlin", "zurich", "lyon", "warsaw", "shanghai", "shenzhen", "austin", "dublin", "osaka")
OWN_TEAMS = ("search", "risk", "research", "mobile", "docs", "support")
OLLAMA_MODELS = ("llama3.3:70b", "qwen3:32b", "qwen2.5vl:7b", "gpt-oss:20b", "mistral-small3.2:24b", "deepseek-r1:32b")
VLLM_MODELS = (
    *("Qwen/Qwen2.5-VL-72B-Instruct", "deepseek-ai/DeepSeek-V3.2", "openai/gpt-oss-120b", "zai-org/GLM-4.6"),
    *("moonshotai/Kimi-K2-Thinking", "meta-llama/Llama-3.3-70B-Instruct", "Qwen/Qwen3-30B-A3B-Instruct-2507"),
)
EMBEDDINGS = ("text-embedding-3-large", "text-embedding-v4", "BAAI/bge-m3")
GATEWAYS = (
    ProviderTemplate(
        "vllm-berlin", f"http://vllm-berlin.{LOCAL_DOMAIN}:8000/v1", models=VLLM_MODELS[:2], needs_key=False
    ),
    ProviderTemplate(
        "gateway-responses",
        f"https://gateway.{LOCAL_DOMAIN}/v1/responses",
        models=("gpt-5.6-sol",),
        protocol="openai-responses",
        needs_key=False,
    ),
    ProviderTemplate(
        "gateway-claude",
        f"https://claude.{LOCAL_DOMAIN}/v1",
        models=("claude-haiku-4-5",),
        protocol="anthropic",
        needs_key=False,
    ),
    ProviderTemplate(
        "gateway-gemini",
        f"https://gemini.{LOCAL_DOMAIN}/v1beta",
        models=("gemini-3.8-flash",),
        protocol="gemini",
        needs_key=False,
    ),
)
"""The company's own servers, one per protocol. They need no key, and the real calls of `calls.py` go through them."""
OPENROUTER_NAMES: Mapping[str, str] = {
    "dashscope": "qwen",
    "gemini": "google",
    "meta": "meta-llama",
    "mistral": "mistralai",
    "moonshot": "moonshotai",
    "xai": "x-ai",
    "zai": "z-ai",
}
CHINESE_NAMES = ("文本对话", "长文写作", "视觉理解", "合同审核", "客服质检", "代码助手", "多模态问答", "报表解读")
CATALOGUE_HOSTS = {"zhipu": "zai", "ark": "volcengine", "hunyuan": "tencent", "mimo": "xiaomi", "qianfan": ""}


def list_templates(taken: frozenset[str]) -> Iterator[ProviderTemplate]:
    """Yield the gateways, and then hosted, cloud and self-hosted providers in turn.

    Hosted providers with a name in `taken` are omitted, because the demo already has them.
    """
    yield from GATEWAYS
    hosted = [template for template in (*_presets(), *HOSTED) if template.name not in taken]
    kinds = (hosted, [*_clouds()], [*_own_servers()])
    for at in range(max(map(len, kinds))):
        for templates in kinds:
            yield from templates[at : at + 1]


def _presets() -> Iterator[ProviderTemplate]:
    for preset in PRESETS:
        host = CATALOGUE_HOSTS.get(preset.name, preset.name)
        shown = preset.label_zh if preset.label_zh != preset.label_en else preset.label_en
        endpoint = preset.base_url.replace("127.0.0.1", f"workstation.{LOCAL_DOMAIN}")
        yield ProviderTemplate(
            *(preset.name, endpoint, host, preset.models, preset.protocol, shown),
            needs_key=preset.needs_key,
            weight={"openrouter": 24, "siliconflow": 12, "dashscope": 12}.get(preset.name, 5),
        )


def _clouds() -> Iterator[ProviderTemplate]:
    for number in (1, 2):
        for region in REGIONS:
            name = f"azure-{region}-{number}"
            yield ProviderTemplate(
                name, f"https://acme-{region}-{number}.openai.azure.com/openai/v1", "azure", weight=6 - number
            )
    for region in CLOUD_REGIONS:
        endpoint = f"https://bedrock-runtime.{region}.amazonaws.com/openai/v1"
        yield ProviderTemplate(f"bedrock-{region}", endpoint, "bedrock", weight=4)
    for region in ("europe-west4", "us-central1"):
        base = f"https://{region}-aiplatform.googleapis.com/v1/projects/acme-llm/locations/{region}/endpoints/openapi"
        yield ProviderTemplate(f"vertex-{region}", base, "vertex_ai", weight=4)


def _own_servers() -> Iterator[ProviderTemplate]:
    for number in range(1, 25):
        endpoint = f"http://gpu-{number:02}.{LOCAL_DOMAIN}:11434/v1"
        models = tuple(OLLAMA_MODELS[(number + step) % len(OLLAMA_MODELS)] for step in range(2))
        yield ProviderTemplate(f"ollama-gpu-{number:02}", endpoint, models=models, needs_key=False, weight=2)
    for number, city in enumerate(CITIES[1:]):
        models = tuple(VLLM_MODELS[(number + step) % len(VLLM_MODELS)] for step in range(2))
        yield ProviderTemplate(
            f"vllm-{city}", f"http://vllm-{city}.{LOCAL_DOMAIN}:8000/v1", models=models, needs_key=False
        )
    for team in OWN_TEAMS:
        yield ProviderTemplate(f"gateway-{team}", f"https://{team}-gateway.{LOCAL_DOMAIN}/v1", "openai", weight=3)


@dataclass(frozen=True)
class Providers:
    """Providers with their states and services, and the keys and allowed origins of the whole installation."""

    specs: tuple[ProviderSpec, ...]
    services: tuple[ServiceSpec, ...]
    states: Mapping[str, ProviderState]
    literal_keys: Mapping[str, str]
    variables: Mapping[str, str]
    origins: tuple[str, ...]


def make_providers(rng: Random, count: int, service_count: int, taken: frozenset[str]) -> Providers:
    """Return `count` providers with `service_count` services in total. Providers with long names are first."""
    templates = list(list_templates(taken))[: count - 1]
    if len(templates) < count - 1:
        raise ValueError(f"at most {len(templates) + 1} providers are known")
    states = _choose_states(rng, templates)
    wide = ProviderTemplate(
        object_name("provider", 0), f"https://wide.{LOCAL_DOMAIN}/v1", display_name=WIDE, models=(WIDE,)
    )
    states[wide.name] = ProviderState.SEVERAL_KEYS
    specs, literal_keys, variables, origins = [], {}, {}, []
    models = _share_models(rng, templates, service_count - 1)
    for template in (*templates, wide):
        state = states[template.name]
        key, more_keys = _make_keys(rng, template, state)
        if key.kind is KeyKind.STORED:
            literal_keys[template.name] = f"sk-made-up-{rng.getrandbits(96):024x}"
            key = replace(key, kind=KeyKind.ENV)
        elif key.kind is KeyKind.ENV and state is not ProviderState.NO_KEY:
            variables[key.variable] = f"sk-made-up-{rng.getrandbits(96):024x}"
        variables |= {more.variable: f"sk-made-up-{rng.getrandbits(96):024x}" for more in more_keys if more.enabled}
        if LOCAL_DOMAIN in template.endpoint and state is not ProviderState.FORBIDDEN:
            origins.append("/".join(template.endpoint.split("/")[:3]))
        slow = {"firstContent": 240, "total": 900} if state is ProviderState.SLOW else {}
        specs.append(
            ProviderSpec(
                *(template.name, template.endpoint, (models.get(template.name) or template.models or ("default",))[0]),
                protocol=template.protocol,
                key=key,
                more_keys=more_keys,
                display_name=template.display_name,
                enabled=state is not ProviderState.DISABLED,
                timeouts=slow,
            )
        )
    services = _make_services(rng, [*templates], models)
    wide_service = ServiceSpec(
        object_name("service", 0),
        WIDE,
        wide.name,
        WIDE,
        capabilities=Capabilities(("text", "vision")),
        description=WIDE,
    )
    return Providers(
        tuple(specs), (wide_service, *services), states, literal_keys, variables, tuple(dict.fromkeys(origins))
    )


def _choose_states(rng: Random, templates: Sequence[ProviderTemplate]) -> dict[str, ProviderState]:
    # Gateways stay ready, because the real calls go through them.
    states = {template.name: ProviderState.READY for template in templates}
    free = [template for template in templates if template not in GATEWAYS]
    for state, share in SHARES.items():
        fitting = [template for template in free if _can_have_state(template, state)]
        for template in rng.sample(fitting, min(len(fitting), max(1, round(share * len(templates))))):
            states[template.name] = state
            free.remove(template)
    return states


def _can_have_state(template: ProviderTemplate, state: ProviderState) -> bool:
    if state is ProviderState.FORBIDDEN:
        return template.endpoint.startswith("http://")
    return template.needs_key or state in (ProviderState.DISABLED, ProviderState.BUSY, ProviderState.SLOW)


def _make_keys(rng: Random, template: ProviderTemplate, state: ProviderState) -> tuple[KeySpec, tuple[KeySpec, ...]]:
    variable = f"LLM_PROVIDER_{''.join(c if c.isalnum() else '_' for c in template.name.upper())}_API_KEY"
    if not template.needs_key:
        return NO_KEY, ()
    if state is ProviderState.NO_KEY:
        return KeySpec(KeyKind.ENV, variable), ()
    if state is ProviderState.SEVERAL_KEYS:
        names = KEY_NAMES if template.display_name == WIDE else ("team-b", "until-december")
        more = tuple(
            KeySpec(KeyKind.ENV, f"{variable}_{number}", name=name, enabled=number != 3)
            for number, name in enumerate(names, 2)
        )
        return KeySpec(KeyKind.ENV, variable, name="team-a"), more
    return KeySpec(KeyKind.STORED if rng.random() < 0.45 else KeyKind.ENV, variable), ()


def _share_models(rng: Random, templates: Sequence[ProviderTemplate], count: int) -> dict[str, tuple[str, ...]]:
    """Distribute `count` models among the providers by weight. Each provider that has models gets at least one.

    Models that the catalogue does not list are used first.
    """
    known = {
        template.name: [*dict.fromkeys((*template.models, *_choose_listed_models(rng, template)))]
        for template in templates
    }
    chosen: dict[str, list[str]] = {template.name: [] for template in templates}
    turns = [template for template in templates for _ in range(template.weight)]
    rng.shuffle(turns)
    turns = [*templates, *turns] * 4
    for template in turns:
        if sum(map(len, chosen.values())) == count:
            break
        if known[template.name]:
            chosen[template.name].append(known[template.name].pop(0))
    missing = count - sum(map(len, chosen.values()))
    if missing:
        raise ValueError(f"{missing} services more than these providers have models")
    return {name: tuple(models) for name, models in chosen.items()}


def _choose_listed_models(rng: Random, template: ProviderTemplate) -> list[str]:
    catalogue = default_catalogue()
    names = sorted(name for name in catalogue.document.models.get(template.host, ()) if is_chat_model(name))
    rng.shuffle(names)
    # Only a few services use a model that its provider has retired.
    retired = {name for name in names if (end := catalogue.retirement(template.host, name)) and end.day <= RETIRED_BY}
    names = [name for name in names if name not in retired or rng.random() < 0.05]
    if template.host == "openrouter":
        makers = [find_maker(name) for name in names]
        return [
            f"{OPENROUTER_NAMES.get(maker, maker)}/{name}" for maker, name in zip(makers, names, strict=True) if maker
        ]
    return names


def _make_services(
    rng: Random, templates: Sequence[ProviderTemplate], models: Mapping[str, Sequence[str]]
) -> Iterator[ServiceSpec]:
    used: set[str] = set()
    pairs = [(template, model) for template in templates for model in models[template.name]]
    disabled = set(rng.sample(range(len(pairs)), max(3, len(pairs) // 25)))
    overridden = set(rng.sample(range(len(pairs)), max(3, len(pairs) // 20)))
    for at, (template, model) in enumerate(pairs):
        short = model.rpartition("/")[2].lower().replace(":", "-")
        service_id = short if short not in used else f"{short}@{template.name}"
        used.add(service_id)
        name = f"{CHINESE_NAMES[at % len(CHINESE_NAMES)]}（{short}）" if at % 5 == 2 else _title(short)
        own_price = {"currency": rng.choice(("USD", "CNY")), "input": 0.4, "output": 1.6} if at % 17 == 3 else {}
        spec = ServiceSpec(
            *(service_id, name, template.name, model),
            description="" if at % 3 else f"{_title(short)} at {template.display_name or template.name}",
            capability_tags=("文本对话",) if at % 5 == 2 else (),
            price=own_price,
            limits={"contextTokens": 32_768} if at % 29 == 5 else {},
            enabled=at not in disabled,
        )
        yield _with_capabilities(spec, template, override=at in overridden)


def _title(short: str) -> str:
    return " ".join(word.upper() if word in ("gpt", "glm") else word.capitalize() for word in short.split("-"))


def _with_capabilities(spec: ServiceSpec, template: ProviderTemplate, *, override: bool) -> ServiceSpec:
    """Return the service with the capabilities that its page fills in from the catalogue. `override` changes some of
    them.
    """
    entry = default_catalogue().entry_at(template.name, template.endpoint, spec.model)
    if entry is None:
        return spec
    sources: dict[str, Source] = {}
    present: list[Cell] = []
    for cell in CELLS:
        fact = entry.facts.get(cell)
        value, source = False, Source.UNKNOWN
        if fact is not None:
            value = fact.value
            source = Source.CONTESTED if fact.verdict is FactVerdict.CONTESTED else Source.CATALOGUE
        if override and cell == ("input", "vision"):
            value, source = not value, Source.DECLARED
        if value:
            present.append(cell)
        if not value or source is not Source.DECLARED:
            sources[":".join(cell)] = source
    sides = [tuple(name for side, name in present if side == wanted) for wanted in ("input", "output")]
    return replace(spec, capabilities=Capabilities(*sides), sources=sources)
