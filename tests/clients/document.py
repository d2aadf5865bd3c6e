"""The result tables in docs/compatibility.md: each suite's counts, and each known difference with its reason."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from capabilities.core.protocols.parameters import put_between

BEGIN = "<!-- written by make test-clients -->\n"
END = "<!-- end of what is written -->\n"
REQUIREMENTS = Path(__file__).with_name("requirements.txt")
LOCK = Path(__file__).parent / "node" / "package-lock.json"
NODE = ("@anthropic-ai/sdk", "@anthropic-ai/claude-code", "@openai/codex", "ai", "opencode-ai")


@dataclass(frozen=True)
class Suite:
    """A suite: its short name, its title, and the package whose version is shown (empty for our own suites).

    If the suite has its own environment, `place` is its folder within the shared one.
    """

    name: str
    title: str
    package: str
    place: str = ""

    @property
    def version(self) -> str:
        if self.package in NODE:
            return str(json.loads(LOCK.read_text("utf-8"))["packages"][f"node_modules/{self.package}"]["version"])
        requirements = REQUIREMENTS.with_name(f"requirements-{self.place}.txt") if self.place else REQUIREMENTS
        pinned_version = re.search(rf"^{re.escape(self.package)}==(\S+)", requirements.read_text("utf-8"), re.M)
        return pinned_version[1] if pinned_version else ""


RECIPES = {
    "LangGraph": Suite("langgraph", "the recipe for LangGraph", "langgraph"),
    "AutoGen": Suite("autogen", "the recipe for AutoGen", "autogen-agentchat"),
    "CrewAI": Suite("crewai", "the recipe for CrewAI", "crewai", "crewai"),
    "OpenAI's Agents SDK": Suite("openai-agents-mcp", "the recipe for OpenAI's Agents SDK", "openai-agents"),
    "pydantic-ai": Suite("pydantic-ai-mcp", "the recipe for pydantic-ai", "pydantic-ai-slim"),
    "LlamaIndex": Suite("llamaindex", "the recipe for LlamaIndex", "llama-index-core", "mcp-2"),
    "Google's ADK": Suite("google-adk", "the recipe for Google's ADK", "google-adk", "mcp-2"),
    "instructor": Suite("instructor", "the recipe for instructor", "instructor", "mcp-2"),
    "litellm": Suite("litellm", "the recipe for litellm", "litellm", "mcp-2"),
    "AI SDK": Suite("ai-sdk", "the recipe for the AI SDK", "ai"),
    "Claude Code": Suite("claude-code", "the recipe for Claude Code", "@anthropic-ai/claude-code"),
    "Codex": Suite("codex", "the recipe for Codex", "@openai/codex"),
    "opencode": Suite("opencode", "the recipe for opencode", "opencode-ai"),
}
"""The suites that run a recipe from docs/recipes.md, by the recipe's heading."""

SUITES = (
    Suite("langchain", "LangChain's standard tests, at each API", "langchain-tests"),
    Suite("openai-python", "openai-python's tests of chat, models, files, embeddings, sound, images", "openai"),
    Suite("openai-helpers", "openai-python's helpers: parse, stream, pages", "openai"),
    Suite("pydantic-ai", "agents of pydantic-ai, at each API", "pydantic-ai-slim"),
    Suite("openai-agents", "OpenAI's Agents SDK", "openai-agents"),
    Suite("llm", "`llm` with its plug-in for Anthropic, at each API", "llm", "llm"),
    Suite("node", "the vendors' clients for Node", "@anthropic-ai/sdk"),
    Suite("llm-comply", "llm-comply: chat, Responses, Messages", "llm-comply"),
    *RECIPES.values(),
    Suite("exchanges", "exchanges shaped as programs have them, program × protocol × content", ""),
)


@dataclass(frozen=True)
class Outcome:
    """A suite's result: pytest's exit status, and the counts that the plugin `known_differences` made."""

    suite: Suite
    status: int
    report: Mapping[str, Any]

    def count(self, result: str) -> int:
        return int(self.report.get("counts", {}).get(result, 0))


def table(outcomes: Iterable[Outcome]) -> str:
    outcomes = list(outcomes)
    head = "| suite | version | passed | failed | differ | not run |\n|---|---|---|---|---|---|\n"
    lines = [
        f"| {outcome.suite.title} | {f'{outcome.suite.package} {outcome.suite.version}'.strip() or 'ours'} | "
        + " | ".join(str(outcome.count(result)) for result in ("passed", "failed", "differs", "skipped"))
        + " |\n"
        for outcome in outcomes
    ]
    return head + "".join(lines) + "\n" + _reasons(outcomes)


def _reasons(outcomes: Iterable[Outcome]) -> str:
    head = "| tests | of | what differs, or is not run, and why |\n|---|---|---|\n"
    rows = [
        f"| {count} | {outcome.suite.name} | {kind}{reason} |\n"
        for outcome in outcomes
        for kind, key in (("", "differing"), ("not run: ", "skipped"))
        for reason, count in outcome.report.get(key, {}).items()
    ]
    return head + "".join(rows)


def insert_tables(text: str, outcomes: Iterable[Outcome]) -> str:
    """Return the document with this run's tables. Raise `ValueError` if one of its two markers is missing."""
    return put_between(text, BEGIN, END, table(outcomes))
