"""Each problem in a file is reported once, with its path. If a number is out of range, the range is reported."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from capabilities.core.problems import Problem
from capabilities.core.values import MAX_TOKENS
from routing_admin.console.routes.forms import CandidateForm, RouteForm
from routing_admin.core.files.llm_routing_checks import validate

BOUNDS = f"from 1 to {MAX_TOKENS[1]}"
INVALID: dict[str, Any] = {
    "providers": [
        {"providerName": "a", "apiKey": "NOT_NEEDED", "endpoint": "https://a.example/v1", "defaultModel": "m"},
        {"providerName": "", "apiKey": 5, "endpoint": "x"},
    ],
    "routing": {
        "default": {"provider": "a", "maxTokens": MAX_TOKENS[1] + 1, "temperature": 5},
        "other": {"provider": "nope", "fallback": ["neither"], "maxTokens": 0},
    },
}
PATHS = {problem.field for problem in validate(INVALID) if problem.severity == "error"}


def check_lines(lines: list[str]) -> None:
    assert {next(path for path in PATHS if line.startswith(path)) for line in lines} == PATHS
    for line in lines:
        path = next(candidate for candidate in PATHS if line.startswith(candidate))
        assert line.count(path) == 1


@pytest.mark.parametrize(
    ("problem", "line"),
    [
        (Problem("a.b", "a.b must be a text.", "type"), "a.b must be a text."),
        (Problem("a.b", "a.b: there is none.", "reference"), "a.b: there is none."),
        (Problem("a", "and so on.", "type"), "a: and so on."),
        (Problem("", "Nothing is there.", "required"), "Nothing is there."),
    ],
)
def test_problem_line_begins_with_the_field_path(problem: Problem, line: str) -> None:
    assert problem.line == line


@pytest.mark.django_db(databases=["default", "logs"])
def test_import_command_prints_one_line_per_problem(demo: None, tmp_path: Path) -> None:
    file = tmp_path / "llm-routing.json"
    file.write_text(json.dumps(INVALID))
    with pytest.raises(CommandError) as refused:
        call_command("import_config", str(file), stdout=StringIO(), stderr=StringIO())
    check_lines(str(refused.value).splitlines())


def test_api_error_contains_each_path_once(caller: Callable[..., Any]) -> None:
    answer = caller("text-agent", "config:write").post("/config/import", INVALID)
    assert answer.status_code == 422
    check_lines(answer.json()["message"].split("; "))
    assert {detail["path"] for detail in answer.json()["details"]} == PATHS


def test_import_page_shows_each_path_once_before_the_message(admin: Client, demo: None) -> None:
    page = admin.post("/config/import/", {"text": json.dumps(INVALID)}).content.decode()
    for path in PATHS:
        assert f"<code>{path}</code>" in page
        assert not re.search(rf"{re.escape(path)}(:? must| is missing|: )", page)


@pytest.mark.parametrize("value", [0, -1, MAX_TOKENS[1] + 1])
def test_token_limit_out_of_range_is_reported_with_the_range(value: int, caller: Callable[..., Any]) -> None:
    routing = {"routing": {"default": {"provider": "a", "maxTokens": value}}}
    (message,) = (
        problem.message for problem in validate(INVALID | routing) if problem.field == "routing.default.maxTokens"
    )
    assert BOUNDS in message
    for form in (RouteForm({"task_type": "t", "max_tokens": value}), CandidateForm({"max_tokens": value})):
        assert str(MAX_TOKENS[0 if value < 1 else 1]) in str(form.errors["max_tokens"])
    answer = caller("text-agent").post("/llm/send", {"prompt": "x", "maxTokens": value})
    assert answer.status_code == 422
    assert str(MAX_TOKENS[0 if value < 1 else 1]) in answer.json()["details"][0]["message"]
