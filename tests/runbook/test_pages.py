"""All pages of the runbook have the same structure, and the metrics, commands, options and alerts they name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import get_commands, load_command_class
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from routing_admin.core.alerts.kinds import AlertKind
from routing_admin.platform.server.metrics import request_metrics
from routing_admin.program import ENTRIES
from tests.runbook.pages import BLOCK, FOLDER, PAGES, ROOT, find_blocks, read_page

DEPLOYED = [path for path in (ROOT / "deploy").iterdir() if path.is_file()]
DOCUMENTS = sorted([*(ROOT / "docs").rglob("*.md"), *DEPLOYED, ROOT / "README.md"])
FORM = (
    "What you see",
    "What it means",
    "Fix it",
    "Check that it is over",
    "Prevent it",
)
ROWS = {"alert", "page", "metric", "log"}
METRIC = re.compile(r"\b(routing_admin_[a-z_]+[a-z])(?:\{([^}]*)\})?(?!_)")
COMMAND = re.compile(r"(?:`|^|bin/)routing-admin ([a-z][a-z-]*)\b([^\n`#&|;<]*)", re.MULTILINE)
TESTS = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))


@pytest.mark.parametrize("page", PAGES)
def test_every_runbook_page_has_the_same_sections(page: str) -> None:
    text = read_page(page)
    assert tuple(re.findall(r"^## (.+)$", text, re.MULTILINE)) == FORM
    symptoms = text.split("## What it means")[0]
    assert set(re.findall(r"^\| (alert|page|metric|log) \|", symptoms, re.MULTILINE)) == ROWS
    check = text.split(f"## {FORM[3]}")[1].split("\n## ")[0]
    assert METRIC.search(check)
    assert BLOCK.search(check)


def test_runbook_index_links_every_page_and_names_every_alert() -> None:
    text = read_page("README")
    assert {f"{page}.md" for page in PAGES} <= set(re.findall(r"\]\(([^)]+)\)", text))
    assert set(AlertKind) <= set(re.findall(r"`(\w+)`", text))


@pytest.mark.parametrize("page", ["README", *PAGES])
def test_every_runbook_link_leads_to_an_existing_file_and_heading(page: str) -> None:
    for link in re.findall(r"\]\((?!https?:)([^)]+)\)", read_page(page)):
        name, _, anchor = link.partition("#")
        target = FOLDER / name if name else FOLDER / f"{page}.md"
        assert target.exists(), link
        headings = re.findall(r"^#+ (.+)$", target.read_text(), re.MULTILINE)
        anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in anchors, link


@pytest.mark.django_db(databases=["default", "logs"])
def test_every_documented_metric_is_exposed_with_its_labels(demo: None) -> None:
    request_metrics().count_request("design", "v1", "ok", 0.1)
    request_metrics().count_attempt("design", "echo", "echo-text", "http_401")
    request_metrics().count_refused_key("v1", "key_invalid")
    request_metrics().count_cost("design", "echo", "echo-text", "CNY", 1)
    text = Client(REMOTE_ADDR="127.0.0.1").get("/metrics").content.decode()
    exposed = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    for document in DOCUMENTS:
        for name, selector in METRIC.findall(document.read_text("utf-8")):
            assert name in exposed, f"{document.name}: {name}"
            labels = {label for sample in samples if sample.name == name for label in sample.labels}
            assert set(re.findall(r"(\w+)=", selector)) <= labels, f"{document.name}: {name}{{{selector}}}"


def test_every_documented_command_exists_with_its_options() -> None:
    apps = get_commands()
    commands = {
        (document.name, name, tuple(re.findall(r"(?<![\w-])--[a-z-]+", options_text)))
        for document in DOCUMENTS
        for name, options_text in COMMAND.findall(document.read_text("utf-8"))
    }
    assert len(commands) > 20
    for document, name, options in commands:
        assert name in ENTRIES, f"{document}: {name}"
        command = ENTRIES[name].command
        parser = load_command_class(str(apps[command]), command).create_parser("routing-admin", name)
        assert [option for option in options if option not in parser.format_help()] == [], f"{document}: {name}"


@pytest.mark.parametrize("page", ["README", *PAGES])
def test_every_named_code_block_is_run_by_a_test(page: str) -> None:
    """A test in this folder names the page and the block. On each page, block names are unique."""
    assert len(dict(find_blocks(page))) == len(find_blocks(page))
    for name, _commands in find_blocks(page):
        assert name
        assert f'"{page}", "{name}"' in TESTS, f"{page}: {name}"
