"""The documentation site: how `make site` changes the Markdown of the documents."""

from __future__ import annotations

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

SITE = Path(__file__).parents[2] / "deploy" / "site"


@pytest.mark.parametrize(
    ("path", "written", "shown"),
    [
        ("alerts.md", "see [the page](runbook/restore.md#after)", "see [the page](runbook/restore.md#after)"),
        ("runbook/restore.md", "[copies](../backup.md)", "[copies](../backup.md)"),
        ("alerts.md", "the [chart](../deploy/helm/), and [more](../README.md#use)", "the chart, and more"),
        ("runbook/restore.md", "[changes](../../CHANGELOG.md)", "changes"),
        ("scale.md", "```sh run agent\nls\n```", "```sh\nls\n```"),
        ("scale.md", "```\nls\n```", "```\nls\n```"),
    ],
)
def test_links_out_of_the_site_become_text_and_code_keeps_its_language(path: str, written: str, shown: str) -> None:
    adapt = runpy.run_path(str(SITE / "pages.py"))["on_page_markdown"]
    assert adapt(written, page=SimpleNamespace(file=SimpleNamespace(src_uri=path))) == shown
