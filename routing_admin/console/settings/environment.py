"""Every setting of the environment, its value in force and where it comes from; of secrets only that they are set."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext_lazy

from routing_admin.core.files.keys import OPENAI_URL
from routing_admin.environment import BASE_DIR, SETTINGS, Setting

ASSIGNMENT = re.compile(r"^[ \t]*(?:export[ \t]+)?(\w+)[ \t]*=[ \t]*+(\S*(?:[ \t]+\S+)*)", re.MULTILINE)
KEPT = {"ROUTING_ADMIN_SECRET_KEY": "secret_key", "ROUTING_ADMIN_KEYS": "keys"}
"""Secrets that are generated into a file of the data directory."""

DEFAULT = "default"
"""The source of a value that nobody set."""

WORDED = {
    "files in the data directory": gettext_lazy("files in the data directory"),
    "single sign-on": gettext_lazy("single sign-on"),
}
"""Defaults that are words for people: they are shown in the reader's language."""


@dataclass(frozen=True, slots=True)
class SettingRow:
    """A setting as the page shows it.

    `source` is environment, dotenv, generated or default; `value` is empty for a secret, which is only `is_set`.
    """

    setting: Setting
    value: str
    source: str
    is_set: bool


def values_in_force() -> dict[str, list[SettingRow]]:
    """Every setting, in the order of routing_admin/environment.py: the `explicit` ones, and the `default` ones."""
    rows = setting_rows(os.environ, read_dotenv(BASE_DIR / ".env"), settings.DATA_DIR)
    return {
        "explicit": [row for row in rows if row.source != DEFAULT],
        "default": [row for row in rows if row.source == DEFAULT],
    }


def read_dotenv(path: Path) -> dict[str, str]:
    """The assignments of a `.env` file, quotes removed; nothing when there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        return {}
    return {name: value.strip("'\"") for name, value in ASSIGNMENT.findall(text)}


def setting_rows(environment: Mapping[str, str], dotenv: Mapping[str, str], data_dir: Path) -> list[SettingRow]:
    """The settings as this environment, this file and this data directory give them."""
    found: list[SettingRow] = []
    for setting in SETTINGS:
        names = variables(setting, environment)
        if names:
            found.append(setting_row(setting, names, environment, dotenv))
        else:
            found.append(build_unset_row(setting, data_dir))
    return found


def variables(setting: Setting, environment: Mapping[str, str]) -> list[str]:
    """The variables that are set for this setting; for `LLM_PROVIDER_{NAME}_API_KEY` there may be several."""
    pattern = re.compile(re.escape(setting.name).replace(re.escape("{NAME}"), r"\w+"))
    return sorted(name for name, value in environment.items() if value and pattern.fullmatch(name))


def setting_row(
    setting: Setting, names: list[str], environment: Mapping[str, str], dotenv: Mapping[str, str]
) -> SettingRow:
    """A setting that somebody set; a secret one shows at most the names of its variables."""
    source = "dotenv" if all(dotenv.get(name) == environment[name] for name in names) else "environment"
    value = environment[names[0]]
    if setting.secret:
        value = ", ".join(names) if "{NAME}" in setting.name else ""
    return SettingRow(setting, strip_password(value), source, is_set=True)


def build_unset_row(setting: Setting, data_dir: Path) -> SettingRow:
    """A setting nobody set: what holds instead."""
    if setting.name in KEPT:
        return SettingRow(setting, "", "generated", is_set=(data_dir / KEPT[setting.name]).exists())
    in_force = {
        "ROUTING_ADMIN_DATA_DIR": str(data_dir),
        "ROUTING_ADMIN_PUBLIC_URL": settings.PUBLIC_URL,
        "LLM_ENDPOINT": OPENAI_URL,
    }
    value = in_force.get(setting.name, setting.default)
    return SettingRow(setting, "" if setting.secret else str(WORDED.get(value, value)), DEFAULT, is_set=False)


def strip_password(value: str) -> str:
    """An address without the user and password it may carry."""
    return re.sub(r"(?<=://)[^/@\s]+@", "", value)


def sizes(paths: Iterable[Path]) -> int:
    """Bytes of these files; those that are gone count nothing."""
    total = 0
    for path in paths:
        try:
            total += path.stat().st_size
        except OSError:
            continue
    return total
