"""Run third-party clients against a served `/v1`: `make test-clients`, or some of them with `ARGS="--only langchain"`.

The suites are LangChain's standard tests, openai-python's own tests (from its source distribution), agents of
pydantic-ai and of OpenAI, `llm`, the clients for Node, llm-comply, and the recipes in docs/recipes.md. They run in a
separate environment, `.venv-clients`, which `make test-clients` installs.

Our server runs in a separate process, with the fault lab's capable model behind each protocol. Known differences are
listed with their reasons in `differences.toml`. The run fails if there is a new difference or if a listed difference no
longer occurs. `ARGS="--write docs/compatibility.md"` writes the run's table to that document.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

from tests.clients.document import RECIPES, SUITES, Outcome, Suite, insert_tables, table
from tests.gateway.serving import Server, manage, server_environment, serving
from tests.lab import Lab

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENT = ROOT / ".venv-clients"
SOURCE = ENVIRONMENT / "openai-python"
"""The folder into which `make test-clients` unpacks openai's source distribution."""

REPLAYED_PROVIDER = "capable"
MODELS = {
    "openai": "capable-openai",
    "openai-responses": "capable-openai-responses",
    "anthropic": "capable-anthropic",
    "gemini": "capable-gemini",
}
"""Maps each protocol to the id of the model service that uses it."""
READER = "reader"
"""The provider and service of the route for recipes. Its model calls the tools that the question names."""
UPSTREAM_MODELS = {
    "openai": "capable",
    "openai-responses": "gpt-5.5-pro",
    "anthropic": "claude-sonnet-4-5",
    "gemini": "gemini-2.5-pro",
}
"""Maps a protocol to the provider's model name. The model must be one that supports reasoning."""
MODELS_IN_TESTS = (
    *("gpt-6-astra", "ft:gpt-4o-mini:acemeco:suffix:abc123", "text-embedding-3-small", "whisper-1"),
    *("gpt-4o-transcribe", "gpt-image-1.5", "gpt-image-2.5-flare"),
)
"""The model names in openai-python's tests."""
REASONING_MODELS = ("gpt-5", "claude-sonnet-4")
"""Model names that make llm-comply request reasoning."""

COMMON = ("-q", "-p", "known_differences", "-p", "no:cacheprovider", "-p", "no:xdist")
ARGUMENTS = {
    "langchain": ("-c", "clients.ini", "langchain_standard.py"),
    "openai-python": (
        *("-p", "placeholders", "-c", "pyproject.toml", "-o", "addopts=", "-o", "filterwarnings="),
        *("-m", "not respx2"),  # These tests use a mock instead of a server.
        *(f"tests/api_resources/{name}.py" for name in ("chat/test_completions", "test_models", "test_files")),
        *(f"tests/api_resources/{name}.py" for name in ("test_embeddings", "test_images")),
        *(f"tests/api_resources/audio/{name}.py" for name in ("test_transcriptions", "test_translations")),
    ),
    "openai-helpers": ("-c", "clients.ini", "openai_helpers.py"),
    "pydantic-ai": ("-c", "clients.ini", "pydantic_ai_agents.py"),
    "openai-agents": ("-c", "clients.ini", "openai_agents.py"),
    "llm": ("-c", "clients.ini", "-o", "asyncio_mode=strict", "llm_models.py"),
    "node": ("-c", "clients.ini", "node_clients.py"),
    "llm-comply": ("-c", "clients.ini", "comply.py"),
    **{
        suite.name: ("-c", "clients.ini", "-W", "ignore::pytest.PytestConfigWarning", "recipes.py")
        for suite in RECIPES.values()
    },
    "exchanges": ("test_exchanges.py",),
}
"""The pytest arguments of each suite."""


def providers(lab: Lab) -> dict[str, Any]:
    rows = [
        {
            "providerName": name,
            "apiKey": "NOT_NEEDED",
            "endpoint": lab.url(protocol, name),
            "defaultModel": UPSTREAM_MODELS[protocol],
            "protocol": protocol,
        }
        for protocol, name in (*MODELS.items(), ("openai", READER))
    ]
    return {"providers": rows, "routing": {"default": {"provider": MODELS["openai"]}, "planning": {"provider": READER}}}


def services(lab: Lab) -> dict[str, Any]:
    names = {name: (protocol, name) for protocol, name in MODELS.items()}
    names[READER] = ("openai", READER)
    names |= dict.fromkeys(MODELS_IN_TESTS, ("openai", MODELS["openai"]))
    names |= {
        f"{name}-over-{protocol}": (protocol, MODELS[protocol]) for name, protocol in product(REASONING_MODELS, MODELS)
    }
    return {
        "services": [
            {
                "id": service,
                "name": service,
                "baseURL": lab.url(protocol, provider),
                "model": UPSTREAM_MODELS[protocol],
                "apiKey": "NOT_NEEDED",
                "capabilityTags": [],
                "capabilities": {
                    "input": ["text", "vision", "audio", "video", "file"],
                    "output": ["text", "structured_output", "tool_calling"],
                },
                "description": "",
            }
            for service, (protocol, provider) in names.items()
        ]
    }


@contextmanager
def served(directory: Path) -> Iterator[Server]:
    with (
        Lab({**dict.fromkeys(MODELS.values(), REPLAYED_PROVIDER), READER: "tool_reader"}) as lab,
        serving(directory, lab, [providers(lab), services(lab)]) as server,
    ):
        yield server


def run_suite(suite: Suite, server: Server, directory: Path, arguments: list[str]) -> Outcome:
    report = directory / f"{suite.name}.json"
    recipe = next((heading for heading, recipe_suite in RECIPES.items() if recipe_suite is suite), "")
    variables = {
        "PYTHONPATH": str(HERE / "plugins"),
        "NO_PROXY": "127.0.0.1",
        "CLIENTS_SUITE": suite.name,
        "CLIENTS_URL": f"{server.url}/v1",
        "CLIENTS_KEY": server.key,
        "CLIENTS_VISION_KEY": manage(server_environment(directory, server.lab), "issue_agent_key", "vision-agent"),
        "CLIENTS_RECIPE": recipe,
        "CLIENTS_MODELS": json.dumps(MODELS),
        "CLIENTS_REPORT": str(report),
        "TEST_API_BASE_URL": f"{server.url}/v1",  # Only openai-python's tests read this variable.
    }
    print(f"\n{suite.title}", flush=True)
    python = sys.executable if not suite.package else str(ENVIRONMENT / suite.place / "bin" / "python")
    command = [python, "-m", "pytest", *COMMON, *ARGUMENTS[suite.name], *arguments]
    working_directory = SOURCE if suite.name == "openai-python" else HERE
    result = subprocess.run(command, cwd=working_directory, env=os.environ | variables, check=False)
    return Outcome(suite, result.returncode, json.loads(report.read_text()) if report.exists() else {})


def main() -> int:
    """Run the named suites, or all. Return 1 if a test failed or a listed difference no longer occurs."""
    parser = argparse.ArgumentParser(description="Other people's clients against a served /v1.")
    parser.add_argument("--only", action="append", choices=[suite.name for suite in SUITES], help="this suite")
    parser.add_argument("--write", type=Path, metavar="FILE", help="the document whose table becomes that of this run")
    options, arguments = parser.parse_known_args()
    if options.write and (options.only or arguments):
        parser.error("the document has the table of whole runs")
    with tempfile.TemporaryDirectory() as directory, served(Path(directory)) as server:
        outcomes = [
            run_suite(suite, server, Path(directory), arguments)
            for suite in SUITES
            if not options.only or suite.name in options.only
        ]
    print(f"\n{table(outcomes)}")
    if options.write:
        options.write.write_text(insert_tables(options.write.read_text("utf-8"), outcomes), "utf-8")
    return int(any(outcome.status for outcome in outcomes))


if __name__ == "__main__":
    sys.exit(main())
