"""Code examples for calling an agent's model at this installation's URL, one per client library."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.translation import get_language

from artifacts.core.delivery.tools import tool_definitions
from capabilities.models import Agent
from routing_admin.configuration import snapshot
from routing_admin.configuration.snapshot import Snapshot
from routing_admin.console.routes.queries import RouteStatus, find_status
from routing_admin.core.configuration.specs import DEFAULT_ROUTE, CandidateSpec, RouteSpec, ServiceSpec
from routing_admin.core.planning.model_names import task_name
from routing_admin.core.planning.plan import NoRouteError, resolve_route


@dataclass(frozen=True, slots=True)
class Snippet:
    """A code example with its client library and programming language."""

    name: str
    language: str
    text: str


SNIPPETS: Mapping[tuple[str, str], str] = {
    ("curl", "shell"): """\
curl {base}/v1/chat/completions \\
  -H "Authorization: Bearer $ROUTING_ADMIN_KEY" \\
  -H "Content-Type: application/json" \\
  -d '{{"model": "{model}", "messages": [{{"role": "user", "content": "Hello"}}]}}'""",
    ("OpenAI SDK", "python"): """\
import os

from openai import OpenAI

client = OpenAI(base_url="{base}/v1", api_key=os.environ["ROUTING_ADMIN_KEY"])
answer = client.chat.completions.create(
    model="{model}", messages=[{{"role": "user", "content": "Hello"}}]
)
print(answer.choices[0].message.content)""",
    ("OpenAI JS", "javascript"): """\
import OpenAI from "openai";

const client = new OpenAI({{ baseURL: "{base}/v1", apiKey: process.env.ROUTING_ADMIN_KEY }});
const answer = await client.chat.completions.create({{
  model: "{model}",
  messages: [{{ role: "user", content: "Hello" }}],
}});
console.log(answer.choices[0].message.content);""",
    ("Anthropic SDK", "python"): """\
import os

from anthropic import Anthropic

client = Anthropic(base_url="{base}", api_key=os.environ["ROUTING_ADMIN_KEY"])  # without /v1
answer = client.messages.create(
    model="{model}", max_tokens=1024, messages=[{{"role": "user", "content": "Hello"}}]
)
print(answer.content[0].text)""",
    ("Google GenAI", "python"): """\
import os

from google import genai

client = genai.Client(
    api_key=os.environ["ROUTING_ADMIN_KEY"], http_options={{"base_url": "{base}"}}  # without /v1
)
print(client.models.generate_content(model="{model}", contents="Hello").text)""",
    ("LangChain", "python"): """\
import os

from langchain_openai import ChatOpenAI

model = ChatOpenAI(
    model="{model}", base_url="{base}/v1", api_key=os.environ["ROUTING_ADMIN_KEY"], max_retries=0
)
print(model.invoke("Hello").text)""",
    ("Claude Code", "shell"): """\
export ANTHROPIC_BASE_URL={base}  # without /v1
export ANTHROPIC_AUTH_TOKEN="$ROUTING_ADMIN_KEY"
export ANTHROPIC_MODEL={model}
claude""",
}
"""Code examples by client and programming language, with the placeholders `{base}` and `{model}`."""


DEFAULT_MODEL = "auto"
"""Model name that selects the default route."""


def name_model(row: Agent) -> str:
    if row.task_type:
        return task_name(row.task_type)
    return row.service.service_id if row.service else DEFAULT_MODEL


def find_service(state: Snapshot, row: Agent) -> ServiceSpec | None:
    return state.configuration.service(row.service.service_id) if row.service else None


def find_model_standing(state: Snapshot, row: Agent) -> RouteStatus | None:
    """Return whether the agent's service or route can answer and, if not, why. Return None if there is no route."""
    if service := find_service(state, row):
        return find_status(state, RouteSpec(service.id, (CandidateSpec(service.provider, service.model),)))
    return find_route_standing(state, row.task_type)


def find_route_standing(state: Snapshot, task_type: str = "") -> RouteStatus | None:
    try:
        return find_status(state, resolve_route(state.configuration, task_type)[0])
    except NoRouteError:
        return None


def write_snippets(model: str, key: str = "") -> tuple[Snippet, ...]:
    """Return the code examples. They read the key from an environment variable unless `key` is given."""
    values = {"base": settings.PUBLIC_URL.rstrip("/"), "model": model}
    texts = ((*heading, text.format(**values)) for heading, text in SNIPPETS.items())
    return tuple(Snippet(name, language, _insert_key(text, key) if key else text) for name, language, text in texts)


def _insert_key(text: str, key: str) -> str:
    # With the key inserted, the Python examples need not import `os`.
    text = text.removeprefix("import os\n\n").replace("$ROUTING_ADMIN_KEY", key)
    for variable in ('os.environ["ROUTING_ADMIN_KEY"]', "process.env.ROUTING_ADMIN_KEY"):
        text = text.replace(variable, f'"{key}"')
    return text


def describe_use(row: Agent, key: str = "") -> dict[str, Any]:
    """Return the template context for the code examples.

    If the agent's model cannot answer, the examples call the default route.
    """
    language = "zh" if (get_language() or "").startswith("zh") else "en"
    state, own, allowed = snapshot.current(), name_model(row), row.limits.get("models")
    use, default = find_model_standing(state, row), find_route_standing(state)
    has_detour = default is not None and default.ready and (allowed is None or task_name(DEFAULT_ROUTE) in allowed)
    is_silent = use is not None and not use.ready
    model = DEFAULT_MODEL if is_silent and has_detour else own
    service = find_service(state, row)
    return {
        "own_model": own,
        "called_model": model,
        "why_silent": " ".join(use.reasons) if use and is_silent else "",
        "is_silent": is_silent,
        "silent_provider": service.provider if service else "",
        "snippets": write_snippets(model, key),
        "tool_server": describe_tool_server(),
        "tools": {"tools": tool_definitions(language)},
    }


def describe_tool_server() -> dict[str, Any]:
    url, headers = f"{settings.PUBLIC_URL.rstrip('/')}/mcp", {"Authorization": "Bearer ${ROUTING_ADMIN_KEY}"}
    return {"mcpServers": {"artifacts": {"type": "http", "url": url, "headers": headers}}}
