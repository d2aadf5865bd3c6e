"""Tables of hosts, model makers and name variants. They are used to find different sources' rows for the same model.

`HOSTS` contains each source's names for a host, `MAKERS` the vendor of each model, and `FORMS` the variants of model
names. All three are maintained manually (see docs/catalogue.md).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from types import MappingProxyType

ANY_HOST = "*"
"""In rows of models that their maker does not list, this means all hosts."""


@dataclass(frozen=True, slots=True)
class Host:
    """A company that serves models, with its names in LiteLLM's map and at models.dev, in order of precedence.

    `words` identify the host in a provider's name, preset or URL. `in_dollars` is a pattern for the DNS names at which
    the host bills in dollars, or empty if it never does.
    """

    name: str
    words: tuple[str, ...]
    litellm: tuple[str, ...] = ()
    models_dev: tuple[str, ...] = ()
    in_dollars: str = ""


HOSTS: tuple[Host, ...] = (
    Host("openrouter", ("openrouter",), (), ("openrouter",), in_dollars=r"openrouter\.ai"),
    Host("aihubmix", ("aihubmix",), ("aihubmix",), ("aihubmix",), in_dollars=r"aihubmix\.com"),
    Host("siliconflow", ("siliconflow",), (), ("siliconflow-cn", "siliconflow"), in_dollars=r"api\.siliconflow\.com"),
    Host(
        "azure",
        ("azure",),
        ("azure", "azure_ai", "azure_text"),
        ("azure", "azure-cognitive-services"),
        in_dollars=r".+\.(?:openai|cognitiveservices|services\.ai)\.azure\.com",
    ),
    Host(
        "bedrock",
        ("bedrock", "amazonaws"),
        ("bedrock_converse", "bedrock", "bedrock_mantle"),
        ("amazon-bedrock",),
        in_dollars=r"bedrock-(?:runtime|mantle)\..+\.amazonaws\.com|bedrock-mantle\..+\.api\.aws",
    ),
    Host(
        "vertex_ai",
        ("vertex", "aiplatform"),
        (
            "vertex_ai",
            "vertex_ai-language-models",
            "vertex_ai-anthropic_models",
            "vertex_ai-mistral_models",
            "vertex_ai-llama_models",
            "vertex_ai-ai21_models",
            "vertex_ai-deepseek_models",
            "vertex_ai-qwen_models",
            "vertex_ai-openai_models",
            "vertex_ai-zai_models",
            "vertex_ai-minimax_models",
            "vertex_ai-moonshot_models",
            "vertex_ai-text-models",
        ),
        ("google-vertex", "google-vertex-anthropic"),
        in_dollars=r"(?:.+-)?aiplatform\.googleapis\.com",
    ),
    Host(
        "gemini",
        ("gemini", "google", "generativelanguage"),
        ("gemini",),
        ("google",),
        in_dollars=r"generativelanguage\.googleapis\.com",
    ),
    Host("anthropic", ("anthropic", "claude"), ("anthropic",), ("anthropic",), in_dollars=r"api\.anthropic\.com"),
    Host(
        "openai",
        ("openai",),
        ("openai", "text-completion-openai"),
        ("openai",),
        in_dollars=r"api\.openai\.com",
    ),
    Host("deepseek", ("deepseek",), ("deepseek",), ("deepseek",), in_dollars=r"api\.deepseek\.com"),
    Host(
        "dashscope",
        ("dashscope", "aliyun", "qwen"),
        ("dashscope", "qwen_ai_platform", "qwencloud"),
        ("alibaba-cn", "alibaba"),
        in_dollars=r"dashscope-intl\.aliyuncs\.com",
    ),
    Host(
        "zai",
        ("bigmodel", "zhipu", "api.z.ai", "zai"),
        ("zai", "bigmodel"),
        ("zhipuai", "zai"),
        in_dollars=r"api\.z\.ai",
    ),
    Host(
        "moonshot",
        ("moonshot", "kimi"),
        ("moonshot",),
        ("moonshotai-cn", "moonshotai"),
        in_dollars=r"api\.moonshot\.ai",
    ),
    Host("volcengine", ("volces", "volcengine", "doubao"), ("volcengine",)),
    Host("tencent", ("hunyuan", "tencent"), ("tencent",), ("tencent-tokenhub",)),
    Host("minimax", ("minimax",), ("minimax",), ("minimax-cn", "minimax"), in_dollars=r"api\.minimax\.io"),
    Host("xiaomi", ("xiaomi", "mimo"), ("xiaomi_mimo",), ("xiaomi",)),
    Host("stepfun", ("stepfun",), (), ("stepfun", "stepfun-ai"), in_dollars=r"api\.stepfun\.ai"),
    Host(
        "mistral",
        ("mistral",),
        ("mistral", "codestral", "text-completion-codestral"),
        ("mistral",),
        in_dollars=r"api\.mistral\.ai",
    ),
    Host("xai", ("api.x.ai", "xai", "grok"), ("xai",), ("xai",), in_dollars=r"api\.x\.ai"),
    Host("groq", ("groq",), ("groq",), ("groq",), in_dollars=r"api\.groq\.com"),
    Host("together_ai", ("together",), ("together_ai",), ("togetherai",), in_dollars=r"api\.together\.(?:xyz|ai)"),
    Host("fireworks_ai", ("fireworks",), ("fireworks_ai",), ("fireworks-ai",), in_dollars=r"api\.fireworks\.ai"),
    Host("deepinfra", ("deepinfra",), ("deepinfra",), ("deepinfra",), in_dollars=r"api\.deepinfra\.com"),
    Host("novita", ("novita",), ("novita",), ("novita-ai",), in_dollars=r"api\.novita\.ai"),
    Host("perplexity", ("perplexity",), ("perplexity",), ("perplexity",), in_dollars=r"api\.perplexity\.ai"),
    Host("cerebras", ("cerebras",), ("cerebras",), ("cerebras",), in_dollars=r"api\.cerebras\.ai"),
    Host("sambanova", ("sambanova",), ("sambanova",), in_dollars=r"api\.sambanova\.ai"),
    Host(
        "nebius", ("nebius",), ("nebius",), ("nebius",), in_dollars=r"api\.(?:studio|tokenfactory)\.nebius\.(?:ai|com)"
    ),
    Host("ollama", ("ollama",), ("ollama",)),
    Host("cohere", ("cohere",), ("cohere_chat", "cohere"), ("cohere",), in_dollars=r"api\.cohere\.(?:ai|com)"),
    Host("databricks", ("databricks",), ("databricks",), ("databricks",)),
    Host(
        "meta",
        ("api.llama.com",),
        ("meta_llama", "meta"),
        ("llama", "meta"),
        in_dollars=r"api\.(?:llama\.com|meta\.ai)",
    ),
)
"""Hosts whose rows are stored separately. A provider belongs to the first host with one of its `words` in the
provider's name, preset or URL."""

YUAN_HOSTS = frozenset(
    {"alibaba-cn", "siliconflow-cn", "zhipuai", "bigmodel", "moonshotai-cn", "minimax-cn", "stepfun"}
)
"""Names of hosts in China, as used by the sources. These hosts bill in yuan, but the sources state amounts converted to
dollars."""

MAKERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "openai": ("gpt-*", "chatgpt-*", "o1*", "o3*", "o4*", "codex-*", "computer-use-*", "davinci*", "babbage*"),
        "anthropic": ("claude*",),
        "gemini": ("gemini*", "gemma*", "learnlm*"),
        "deepseek": ("deepseek*",),
        "dashscope": ("qwen*", "qwq*", "qvq*"),
        "zai": ("glm-*",),
        "moonshot": ("kimi*", "moonshot*"),
        "volcengine": ("doubao*",),
        "tencent": ("hunyuan*", "hy3*"),
        "minimax": ("minimax*", "abab*"),
        "xiaomi": ("mimo*",),
        "stepfun": ("step-*",),
        "mistral": (
            "mistral*", "ministral*", "mixtral*", "pixtral*", "codestral*", "magistral*", "devstral*", "open-mi*tral*",
        ),
        "xai": ("grok*",),
        "meta": ("llama*", "muse*"),
        "cohere": ("command*", "c4ai*"),
        "perplexity": ("sonar*",),
    }
)  # fmt: skip
"""Maps makers to patterns for the names of their models. A maker's own row takes precedence over those of other
hosts."""

NOT_CHAT = ("*embed*", "*rerank*", "*-tts*", "*-asr*", "*-transcribe*", "*-realtime*", "*image-generation*", "*-image*")
"""Patterns for the names of speech, embedding and image models. They prevent, for example, `gpt-4o-mini-tts` from being
treated as a gpt-4o."""


@dataclass(frozen=True, slots=True)
class NameForm:
    """A rule that shortens a model name to another name of the same model: a pattern and its replacement.

    `version` means that the shorter name still identifies the same version. A name without a date or tag may refer to a
    later version.
    """

    pattern: re.Pattern[str]
    replacement: str
    version: bool
    example: str


def _form(pattern: str, replacement: str, example: str, *, version: bool = True) -> NameForm:
    return NameForm(re.compile(pattern), replacement, version, example)


FORMS: tuple[NameForm, ...] = (
    _form(r"^.*/", "", "accounts/fireworks/models/glm-5 is glm-5"),
    _form(r"^ft:([^:]+).*", r"\1", "ft:gpt-4o-mini-2024-07-18:acme is gpt-4o-mini-2024-07-18"),
    _form(
        r"^(?:[a-z]{2}(?:-gov)?\.|apac\.|global\.)?(?:anthropic|meta|amazon|cohere|mistral|ai21|deepseek|qwen|openai"
        r"|moonshotai|moonshot|minimax|zai|google|nvidia|writer)\.(.+?)(?:-v\d+(?::\d+)?|-\d+:\d+)?$",
        r"\1",
        "us.anthropic.claude-haiku-4-5-20251001-v1:0 is claude-haiku-4-5-20251001",
    ),
    _form(r"@default$", "", "claude-opus-4-6@default is claude-opus-4-6"),
    _form(r"@(\d{8})$", r"-\1", "claude-haiku-4-5@20251001 is claude-haiku-4-5-20251001"),
    _form(r"^(claude-(?:[a-z]+-)?\d)\.(\d)", r"\1-\2", "claude-sonnet-4.6 is claude-sonnet-4-6"),
    _form(r"[:@].*", "", "qwen2.5vl:7b is a qwen2.5vl", version=False),
    _form(r"-(?:\d{4}-\d{2}-\d{2}|\d{8}|\d{6})$", "", "gpt-4o-2024-08-06 is a gpt-4o", version=False),
    _form(r"-latest$", "", "qwen-max-latest is a qwen-max", version=False),
)
"""Rules that shorten names. A name is looked up in lower case, first unchanged and then after each rule, in this
order."""


def list_lookup_names(model: str, *, version: bool = False) -> Iterator[str]:
    """Yield the names to look up, most exact first. With `version`, yield only names of the same model version."""
    name = model.strip().lower()
    # If the name has a path, look it up only without the path, which the first rule removes.
    if FORMS[0].pattern.search(name) is None and name:
        yield name
    for form in FORMS:
        shorter = form.pattern.sub(form.replacement, name, count=1) if form.version or not version else name
        if shorter != name:
            name = shorter
            if name:
                yield name


@cache
def version_name(model: str) -> str:
    """Return the shortest form of a model's name that still identifies its version."""
    return "".join([*list_lookup_names(model, version=True)][-1:])


def is_chat_model(name: str) -> bool:
    """Return whether a model with this name may be a chat model."""
    return not any(fnmatchcase(name, excluded) for excluded in NOT_CHAT)


def find_host(hint: str | None) -> str | None:
    """Return the host identified by a provider's name, preset or URL, or None if it is not in `HOSTS`."""
    text = (hint or "").lower()
    return next((host.name for host in HOSTS if any(host_word in text for host_word in host.words)), None)


@lru_cache(maxsize=2000)
def dollar_host(address: str) -> str | None:
    """Return the host that bills in dollars at this DNS name, or None if there is none."""
    # The entire DNS name must match, because a relay may include a vendor's name in its own DNS name.
    fitting = (host.name for host in HOSTS if host.in_dollars and re.fullmatch(host.in_dollars, address.lower()))
    return next(fitting, None)


def find_maker(name: str) -> str | None:
    """Return the maker of this model, or None if it is unknown. Makers are named as in `HOSTS`."""
    return next(
        (
            host
            for host, patterns in MAKERS.items()
            if any(fnmatchcase(name, maker_pattern) for maker_pattern in patterns)
        ),
        None,
    )
