"""The README and the reference documents for commands and settings match the product."""

from __future__ import annotations

import os
import re
from pathlib import Path

from routing_admin.program import COMPLETION, ENTRIES, NAME

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
COMMANDS = ROOT / "docs/commands.md"
REFERENCE = ROOT / "docs/settings.md"
BETWEEN = re.compile(r"(<!-- settings:begin .*?-->\n)(.*?)(<!-- settings:end -->)", re.DOTALL)


def settings_table() -> str:
    # This import needs Django's settings, which `__main__` configures first.
    from routing_admin.environment import SETTINGS

    rows = [f"| `{setting.name}` | {setting.default or '(none)'} | {setting.meaning} |" for setting in SETTINGS]
    return "\n".join(["| setting | default | meaning |", "|---|---|---|", *rows]) + "\n"


def test_settings_table_in_the_docs_is_up_to_date() -> None:
    """To update the table, run `python -m tests.test_readme`."""
    match = BETWEEN.search(REFERENCE.read_text(encoding="utf-8"))
    assert match is not None
    assert match[2] == settings_table()


def test_every_command_is_documented() -> None:
    rows = re.findall(r"^\| `([a-z-]+)[ `]", COMMANDS.read_text(encoding="utf-8"), re.MULTILINE)
    assert {*rows} == {NAME, COMPLETION, *ENTRIES}


def test_every_link_of_the_readme_leads_to_a_file() -> None:
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", README.read_text(encoding="utf-8"))
    assert [link for link in links if not (ROOT / link).exists()] == []


if __name__ == "__main__":
    import django

    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tests.settings")
    django.setup()
    text = REFERENCE.read_text(encoding="utf-8")
    REFERENCE.write_text(BETWEEN.sub(lambda match: match[1] + settings_table() + match[3], text), encoding="utf-8")
