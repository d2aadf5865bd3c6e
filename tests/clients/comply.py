"""llm-comply checks our APIs against their vendors' published schemas, with a model behind each protocol.

llm-comply only warns about a missing endpoint for compaction. Here, the warning is a failure, so `differences.toml`
must list it.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import llm_comply
import pytest
from llm_comply.config import ComplianceConfig
from llm_comply.runner import TestRunner as Runner
from llm_comply.schema import SpecLoader
from llm_comply.tests import get_tests

MODELS: dict[str, str] = json.loads(os.environ["CLIENTS_MODELS"])
SPECS = Path(llm_comply.__file__).with_name("specs")
FORMATS: dict[str, dict[str, Any]] = {
    "openai-chat": {"spec": "openai_chat.json", "model": "gpt-5-over-{}"},
    "open-responses": {"spec": "openresponses.json", "model": "gpt-5-over-{}"},
    "anthropic": {
        "spec": "anthropic.json",
        "model": "claude-sonnet-4-over-{}",
        "auth_header": "x-api-key",
        "use_bearer_prefix": False,
        "extra_headers": {"anthropic-version": "2023-06-01"},
    },
}
"""The settings with which llm-comply calls each of our APIs.

From the model names, it concludes that the models can reason.
"""


def load_specification(name: str) -> SpecLoader:
    """Load a vendor's schemas, with fields that default to null made optional.

    Anthropic's schemas require such fields, but its clients do not need them, and the AI SDK rejects `citations: null`.
    """
    loader = SpecLoader(str(SPECS / name))
    for schema in filter(None, map(loader.get_schema, loader.schema_names)):
        fields = schema.get("properties", {})
        if "required" in schema:
            schema["required"] = [
                field for field in schema["required"] if fields.get(field, {}).get("default", "") is not None
            ]
    return loader


CASES = [
    pytest.param(shape, protocol, case, id=f"{shape}-{protocol}-{case.id}")
    for shape in FORMATS
    for protocol in MODELS
    for case in get_tests(shape)
]


@pytest.mark.parametrize(("shape", "protocol", "case"), CASES)
def test_api_complies_with_the_vendors_schema(shape: str, protocol: str, case: Any) -> None:
    options = dict(FORMATS[shape])
    spec, model = options.pop("spec"), options.pop("model").format(protocol)
    config = ComplianceConfig(
        base_url=os.environ["CLIENTS_URL"], api_key=os.environ["CLIENTS_KEY"], model=model, **options
    )
    result = Runner(config, [case], load_specification(spec)).run_one(case)
    assert (result.status.value, result.errors) == ("passed", [])
    assert "compact" not in case.id or not result.warnings
